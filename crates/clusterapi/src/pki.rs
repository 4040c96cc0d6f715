//! Keys and certificates of a cluster, and their Secrets.
//!
//! ```text
//!   pki            generates and parses key pairs, CA certificates, client certificates (no I/O)
//!   pki::judge     checks of key material from users (no I/O)
//!   pki::versions  versions of the Secrets, as seen by a watch
//!   pki::store     Secrets `<cluster>-ca`, `-etcd`, `-proxy`, `-sa`: read, or created once
//! ```
//!
//! Keys and certificates have the form of `kubeadm init`, so that kubeadm uses them unchanged. An encoded private key
//! is a [`SecretString`], and never logged.

mod judge;
pub mod store;
pub mod versions;

use std::sync::Arc;
use std::time::Duration;

use api::bootstrap::v1beta2::EncryptionAlgorithm;
use api::k8s_openapi::jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    Issuer, KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384,
    PKCS_RSA_SHA256,
};
use rsa::pkcs1::{DecodeRsaPrivateKey, EncodeRsaPrivateKey};
use rsa::pkcs8::{EncodePrivateKey, LineEnding};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use x509_parser::prelude::FromDer;
use zeroize::Zeroizing;

/// Start of a certificate's validity before now, because clocks differ.
const BACKDATE: Duration = Duration::from_secs(300);
const DAY: Duration = Duration::from_secs(86_400);
/// Default validity of CA certificates: 10 years, as in kubeadm.
pub const CA_DAYS: i32 = 3650;
/// Validity of the administrator's client certificate: a year.
pub const CLIENT_VALIDITY: Duration = Duration::from_secs(365 * 86_400);

/// Error about a key or a certificate.
#[derive(Debug, thiserror::Error)]
pub enum PkiError {
    /// A key could not be generated.
    #[error("cannot generate a {algorithm} key")]
    Generate {
        /// Algorithm of the key.
        algorithm: &'static str,
        /// The cause.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A certificate could not be signed.
    #[error("cannot sign the certificate of {subject}")]
    Sign {
        /// Subject of the certificate.
        subject: String,
        /// The cause.
        #[source]
        source: rcgen::Error,
    },
    /// A text is not a private key in a supported format.
    #[error("{what} is not a private key in PEM form (PKCS#8, PKCS#1 or SEC 1; RSA or ECDSA)")]
    Key {
        /// Source of the text; never the key.
        what: &'static str,
    },
    /// A text is not a certificate.
    #[error("{what} is not a certificate in PEM form")]
    Certificate {
        /// Source of the text.
        what: &'static str,
    },
    /// The blocking task that generates a key did not finish.
    #[error("key generation was interrupted")]
    Interrupted,
}

/// Private key with its certificate (or, for service accounts, its public key), both in PEM.
#[derive(Clone)]
pub struct KeyMaterial {
    /// Certificate; for service accounts the public key.
    pub public: Arc<str>,
    /// Private key; absent if a user supplied a CA without its key.
    pub private: Option<SecretString>,
}

impl std::fmt::Debug for KeyMaterial {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyMaterial")
    }
}

/// Purpose of key material.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Purpose {
    /// The CA of the cluster.
    Cluster,
    /// The CA of etcd.
    Etcd,
    /// The CA of the aggregation layer's front proxy.
    FrontProxy,
    /// The key that signs service account tokens.
    ServiceAccount,
    /// Client certificate of the API servers for an external etcd, supplied by users.
    EtcdClient,
}

impl Purpose {
    /// [`Purpose`]s with generated material unless supplied by users, in the order of the files on machines.
    pub const ALL: [Purpose; 4] = [
        Purpose::Cluster,
        Purpose::Etcd,
        Purpose::FrontProxy,
        Purpose::ServiceAccount,
    ];

    /// Suffix of the Secret's name.
    pub fn suffix(self) -> &'static str {
        match self {
            Purpose::Cluster => "ca",
            Purpose::Etcd => "etcd",
            Purpose::FrontProxy => "proxy",
            Purpose::ServiceAccount => "sa",
            Purpose::EtcdClient => "apiserver-etcd-client",
        }
    }

    /// Name of the Secret of `cluster`.
    pub fn secret_name(self, cluster: &str) -> String {
        format!("{cluster}-{}", self.suffix())
    }

    /// Default algorithm of the key: kubeadm's default if clients other than the control plane verify signatures, and
    /// otherwise an algorithm with cheap key generation (docs/adr/0018).
    pub fn default_algorithm(self) -> EncryptionAlgorithm {
        match self {
            Purpose::Cluster | Purpose::ServiceAccount => EncryptionAlgorithm::default(),
            Purpose::Etcd | Purpose::FrontProxy | Purpose::EtcdClient => {
                EncryptionAlgorithm::EcdsaP256
            }
        }
    }

    /// Paths of the certificate (public key) and the key below `/etc/kubernetes/pki`.
    pub fn files(self) -> (&'static str, &'static str) {
        match self {
            Purpose::Cluster => ("ca.crt", "ca.key"),
            Purpose::Etcd => ("etcd/ca.crt", "etcd/ca.key"),
            Purpose::FrontProxy => ("front-proxy-ca.crt", "front-proxy-ca.key"),
            Purpose::ServiceAccount => ("sa.pub", "sa.key"),
            Purpose::EtcdClient => ("apiserver-etcd-client.crt", "apiserver-etcd-client.key"),
        }
    }
}

/// Generates the [`KeyMaterial`] of `purpose`. RSA takes up to seconds: call this on a blocking thread.
///
/// # Errors
/// When the key cannot be generated or the certificate cannot be signed.
pub fn generate(
    purpose: Purpose,
    algorithm: EncryptionAlgorithm,
    validity_days: i32,
    now: Timestamp,
) -> Result<KeyMaterial, PkiError> {
    let (key, pem) = generate_key(algorithm)?;
    let public = match purpose {
        Purpose::ServiceAccount => key.public_key_pem(),
        _ => ca_certificate(&key, validity_days, now)?,
    };
    Ok(KeyMaterial {
        public: public.into(),
        private: Some(pem),
    })
}

/// Generates a key and a client certificate signed by `ca`. RSA takes up to seconds.
///
/// # Errors
/// When the CA has no usable key or the certificate cannot be signed.
pub fn client(
    ca: &KeyMaterial,
    common_name: &str,
    organisation: &str,
    algorithm: EncryptionAlgorithm,
    now: Timestamp,
) -> Result<KeyMaterial, PkiError> {
    let (key, pem) = generate_key(algorithm)?;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    if !organisation.is_empty() {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organisation);
    }
    params
        .distinguished_name
        .push(DnType::CommonName, common_name);
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
    ];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let (from, until) = validity(now, CLIENT_VALIDITY);
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    (params.not_before, params.not_after) = (epoch + from, epoch + until);
    let sign = |source| PkiError::Sign {
        subject: common_name.to_owned(),
        source,
    };
    let signer = key_pair(ca)?;
    let issuer = Issuer::from_ca_cert_pem(&ca.public, signer).map_err(sign)?;
    let certificate = params.signed_by(&key, &issuer).map_err(sign)?;
    Ok(KeyMaterial {
        public: certificate.pem().into(),
        private: Some(pem),
    })
}

/// `sha256:<hex>` of a certificate's SubjectPublicKeyInfo, kubeadm's pin of a CA.
///
/// # Errors
/// When `certificate` cannot be parsed.
pub fn public_key_hash(certificate: &str) -> Result<String, PkiError> {
    with_certificate(certificate, |parsed| {
        let digest = Sha256::digest(parsed.public_key().raw);
        let mut text = String::from("sha256:");
        for byte in digest {
            text.push_str(&format!("{byte:02x}"));
        }
        text
    })
}

/// End of the validity of a certificate.
///
/// # Errors
/// When `certificate` cannot be parsed.
pub fn expiry(certificate: &str) -> Result<Timestamp, PkiError> {
    let seconds = with_certificate(certificate, |parsed| {
        parsed.validity().not_after.timestamp()
    })?;
    Timestamp::from_second(seconds).map_err(|_| PkiError::Certificate {
        what: "the certificate",
    })
}

/// True if `certificate` was signed by `ca`: the issuer name matches and the signature verifies.
pub fn is_signed_by(certificate: &str, ca: &str) -> bool {
    let (Ok(leaf), Ok(ca)) = (der(certificate), der(ca)) else {
        return false;
    };
    let parse = x509_parser::certificate::X509Certificate::from_der;
    let (Ok((_, leaf)), Ok((_, ca))) = (parse(&leaf), parse(&ca)) else {
        return false;
    };
    leaf.issuer() == ca.subject() && signature_holds(&leaf, &ca)
}

fn signature_holds(
    leaf: &x509_parser::certificate::X509Certificate<'_>,
    ca: &x509_parser::certificate::X509Certificate<'_>,
) -> bool {
    use ring::signature::{
        ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA384_ASN1, RSA_PKCS1_2048_8192_SHA256,
        RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, UnparsedPublicKey,
        VerificationAlgorithm,
    };
    let algorithms: [&dyn VerificationAlgorithm; 5] = [
        &RSA_PKCS1_2048_8192_SHA256,
        &ECDSA_P256_SHA256_ASN1,
        &ECDSA_P384_SHA384_ASN1,
        &RSA_PKCS1_2048_8192_SHA384,
        &RSA_PKCS1_2048_8192_SHA512,
    ];
    let key = ca.public_key().subject_public_key.data.as_ref();
    let (message, signature) = (
        leaf.tbs_certificate.as_ref(),
        leaf.signature_value.data.as_ref(),
    );
    algorithms.into_iter().any(|algorithm| {
        UnparsedPublicKey::new(algorithm, key)
            .verify(message, signature)
            .is_ok()
    })
}

fn with_certificate<T>(
    pem: &str,
    read: impl FnOnce(&x509_parser::certificate::X509Certificate<'_>) -> T,
) -> Result<T, PkiError> {
    let der = der(pem)?;
    let (_, parsed) = x509_parser::certificate::X509Certificate::from_der(&der).map_err(|_| {
        PkiError::Certificate {
            what: "the certificate",
        }
    })?;
    Ok(read(&parsed))
}

fn der(pem: &str) -> Result<CertificateDer<'static>, PkiError> {
    CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|_| PkiError::Certificate {
        what: "the certificate",
    })
}

fn ca_certificate(key: &KeyPair, days: i32, now: Timestamp) -> Result<String, PkiError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::CommonName, "kubernetes");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::KeyEncipherment,
        KeyUsagePurpose::KeyCertSign,
    ];
    let (from, until) = validity(now, DAY.saturating_mul(u32::try_from(days).unwrap_or(1)));
    // rcgen uses the types of the crate `time`; they are computed from the epoch.
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    (params.not_before, params.not_after) = (epoch + from, epoch + until);
    let certificate = params.self_signed(key).map_err(|source| PkiError::Sign {
        subject: "the CA".to_owned(),
        source,
    })?;
    Ok(certificate.pem())
}

/// Validity, from [`BACKDATE`] before now, in seconds since 1970.
fn validity(now: Timestamp, length: Duration) -> (Duration, Duration) {
    let now = Duration::from_secs(u64::try_from(now.as_second()).unwrap_or(0));
    (now.saturating_sub(BACKDATE), now.saturating_add(length))
}

/// New key, and its PEM in kubeadm's format: PKCS#1 for RSA, PKCS#8 otherwise.
fn generate_key(algorithm: EncryptionAlgorithm) -> Result<(KeyPair, SecretString), PkiError> {
    match algorithm {
        EncryptionAlgorithm::Rsa2048 => generate_rsa(2048),
        EncryptionAlgorithm::Rsa3072 => generate_rsa(3072),
        EncryptionAlgorithm::Rsa4096 => generate_rsa(4096),
        EncryptionAlgorithm::EcdsaP256 => generate_ecdsa(&PKCS_ECDSA_P256_SHA256),
        EncryptionAlgorithm::EcdsaP384 => generate_ecdsa(&PKCS_ECDSA_P384_SHA384),
    }
}

fn generate_rsa(bits: u32) -> Result<(KeyPair, SecretString), PkiError> {
    let failed = |source: Box<dyn std::error::Error + Send + Sync>| PkiError::Generate {
        algorithm: "RSA",
        source,
    };
    let key = keys::generate(bits).map_err(failed)?;
    let pem = key
        .to_pkcs1_pem(LineEnding::LF)
        .map_err(|source| failed(source.into()))?;
    let pair = rsa_pair(&key).map_err(|source| failed(source.into()))?;
    Ok((pair, SecretString::from(pem.as_str())))
}

fn rsa_pair(key: &rsa::RsaPrivateKey) -> Result<KeyPair, rcgen::Error> {
    let pkcs8 = key
        .to_pkcs8_der()
        .map_err(|_| rcgen::Error::CouldNotParseKeyPair)?;
    let der = PrivatePkcs8KeyDer::from(pkcs8.as_bytes());
    KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_RSA_SHA256)
}

fn generate_ecdsa(
    algorithm: &'static rcgen::SignatureAlgorithm,
) -> Result<(KeyPair, SecretString), PkiError> {
    let pair = KeyPair::generate_for(algorithm).map_err(|source| PkiError::Generate {
        algorithm: "ECDSA",
        source: source.into(),
    })?;
    let pem = Zeroizing::new(pair.serialize_pem());
    Ok((pair, SecretString::from(pem.as_str())))
}

/// Parses the private key of a CA, possibly supplied by a user.
fn key_pair(ca: &KeyMaterial) -> Result<KeyPair, PkiError> {
    let unusable = || PkiError::Key {
        what: "the CA's tls.key",
    };
    let pem = ca
        .private
        .as_ref()
        .ok_or_else(unusable)?
        .expose_secret()
        .as_bytes();
    match PrivateKeyDer::from_pem_slice(pem).map_err(|_| unusable())? {
        PrivateKeyDer::Pkcs8(der) => KeyPair::try_from(&der).map_err(|_| unusable()),
        PrivateKeyDer::Pkcs1(der) => {
            let key = rsa::RsaPrivateKey::from_pkcs1_der(der.secret_pkcs1_der())
                .map_err(|_| unusable())?;
            rsa_pair(&key).map_err(|_| unusable())
        }
        PrivateKeyDer::Sec1(der) => [
            (&PKCS_ECDSA_P256_SHA256, P256_PREFIX),
            (&PKCS_ECDSA_P384_SHA384, P384_PREFIX),
        ]
        .into_iter()
        .find_map(|(algorithm, curve)| {
            let pkcs8 = Zeroizing::new(sec1_to_pkcs8(der.secret_sec1_der(), curve)?);
            let der = PrivatePkcs8KeyDer::from(pkcs8.as_slice());
            KeyPair::from_pkcs8_der_and_sign_algo(&der, algorithm).ok()
        })
        .ok_or_else(unusable),
        _ => Err(unusable()),
    }
}

/// DER of AlgorithmIdentifier { id-ecPublicKey, prime256v1 } (RFC 5480).
const P256_PREFIX: &[u8] = &[
    0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
    0xce, 0x3d, 0x03, 0x01, 0x07,
];
/// DER of AlgorithmIdentifier { id-ecPublicKey, secp384r1 } (RFC 5480).
const P384_PREFIX: &[u8] = &[
    0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81, 0x04,
    0x00, 0x22,
];

/// PrivateKeyInfo (RFC 5958) of an ECPrivateKey (RFC 5915), in ring's form. OpenSSL's parameters field is removed,
/// because ring rejects it.
fn sec1_to_pkcs8(sec1: &[u8], curve: &[u8]) -> Option<Vec<u8>> {
    let inner = without_parameters(sec1)?;
    let mut body = vec![0x02, 0x01, 0x00];
    body.extend_from_slice(curve);
    body.extend(tlv(0x04, &inner));
    let pkcs8 = tlv(0x30, &body);
    body.iter_mut().for_each(|byte| *byte = 0);
    Some(pkcs8)
}

fn without_parameters(sec1: &[u8]) -> Option<Vec<u8>> {
    let (tag, mut rest, _) = split_tlv(sec1)?;
    (tag == 0x30).then_some(())?;
    let mut body = Vec::new();
    while !rest.is_empty() {
        let (tag, value, after) = split_tlv(rest)?;
        if tag != 0xa0 {
            body.extend(tlv(tag, value));
        }
        rest = after;
    }
    Some(tlv(0x30, &body))
}

fn tlv(tag: u8, value: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    match u8::try_from(value.len()) {
        Ok(short) if short < 0x80 => out.push(short),
        Ok(medium) => out.extend([0x81, medium]),
        // Keys of these curves are far shorter than 64 KiB.
        Err(_) => {
            out.push(0x82);
            out.extend(u16::try_from(value.len()).unwrap_or(u16::MAX).to_be_bytes());
        }
    }
    out.extend_from_slice(value);
    out
}

/// First DER element: tag, value, and the rest.
fn split_tlv(der: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&tag, rest) = der.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        short if short < 0x80 => (usize::from(short), rest),
        0x81 => (usize::from(*rest.first()?), rest.get(1..)?),
        0x82 => (
            usize::from(u16::from_be_bytes([*rest.first()?, *rest.get(1)?])),
            rest.get(2..)?,
        ),
        _ => return None,
    };
    Some((tag, rest.get(..length)?, rest.get(length..)?))
}

#[cfg(test)]
mod tests;
