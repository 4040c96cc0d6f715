//! Certificates of `/etc/kubernetes/pki`: read from user data, validated as by kubeadm, and used to issue the
//! certificates that kubeadm issues.

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PublicKeyData as _, SanType,
};
use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use tokio_rustls::TlsAcceptor;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// kubeadm's default certificate directory.
const DIRECTORY: &str = "/etc/kubernetes/pki";

/// Default validity of the certificates that kubeadm issues: a year.
pub(crate) const VALIDITY: Duration = Duration::from_secs(365 * 86_400);
/// How long before now the validity starts, because clocks differ.
const BACKDATE: Duration = Duration::from_secs(300);

/// Certificate to issue.
struct Request<'a> {
    /// Name of kubeadm's file, for errors.
    what: &'static str,
    common_name: &'a str,
    names: &'a [String],
    /// Usages besides key exchange.
    usages: Vec<ExtendedKeyUsagePurpose>,
    validity: Duration,
}

/// Why a certificate or key cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("couldn't load the {what} file {path}: it is not in the user data")]
    Absent {
        /// Certificate, private key or public key.
        what: &'static str,
        /// Expected path.
        path: String,
    },
    #[error("couldn't load the {what} file {path}: {problem}")]
    Unreadable {
        /// Certificate, private key or public key.
        what: &'static str,
        /// Path.
        path: String,
        /// Error.
        problem: String,
    },
    #[error("certificate {path} is not a CA")]
    NotAuthority {
        /// Path.
        path: String,
    },
    #[error("certificate {path} is not valid now: it holds from {from} to {until}")]
    Expired {
        /// Path.
        path: String,
        /// Start of validity.
        from: String,
        /// End of validity.
        until: String,
    },
    #[error("{path}: the key does not belong to the certificate")]
    Mismatch {
        /// Path of the certificate.
        path: String,
    },
    #[error("cannot issue the certificate for {0}: {1}")]
    Issue(&'static str, String),
}

/// Certificate authority with its key.
pub(crate) struct Authority {
    /// Certificate as PEM, verbatim from the user data.
    pub(crate) pem: String,
    /// Certificate as DER.
    pub(crate) der: CertificateDer<'static>,
    key: KeyPair,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority")
            .field("hash", &spki_hash(&self.der))
            .finish_non_exhaustive()
    }
}

/// Keys and certificates of a control plane machine.
#[derive(Debug)]
pub(crate) struct Pki {
    /// CA of the cluster, for servers and clients.
    pub(crate) ca: Authority,
    /// etcd's CA; `None` if etcd is external.
    pub(crate) etcd: Option<Authority>,
    /// Private key of service account tokens, as PEM.
    pub(crate) service_account_key: SecretString,
}

impl Pki {
    /// Reads the CAs from the files of a machine and validates each: parsable, a CA, valid at `now` (seconds since the
    /// epoch), and with a matching key.
    pub(crate) fn load(
        files: &BTreeMap<String, Vec<u8>>,
        external_etcd: bool,
        now: i64,
    ) -> Result<Self, Error> {
        let ca = authority(files, "ca", now)?;
        let etcd = match external_etcd {
            true => None,
            false => Some(authority(files, "etcd/ca", now)?),
        };
        authority(files, "front-proxy-ca", now)?;
        let service_account_key = service_account(files)?;
        Ok(Self {
            ca,
            etcd,
            service_account_key,
        })
    }
}

impl Authority {
    /// Returns `sha256:<hex>` of the public key, as in `discovery-token-ca-cert-hash`.
    pub(crate) fn hash(&self) -> String {
        spki_hash(&self.der).unwrap_or_default()
    }

    /// Returns the TLS configuration of an API server: a new certificate for `names`; client certificates of this CA
    /// are requested but not required, so that bootstrap tokens and discovery work.
    pub(crate) fn server_config(
        &self,
        names: &[String],
        validity: Duration,
    ) -> Result<Arc<ServerConfig>, Error> {
        const WHAT: &str = "kube-apiserver";
        let (chain, key) = self.issue(Request {
            what: WHAT,
            common_name: WHAT,
            names,
            usages: vec![ExtendedKeyUsagePurpose::ServerAuth],
            validity,
        })?;
        let fail = |error: &dyn fmt::Display| Error::Issue(WHAT, error.to_string());
        let config = apiserver::server_config(&chain, key.expose_secret(), Some(&self.pem));
        let mut config = config.map_err(|error| fail(&error))?;
        // A process can have many guests, and each store of sessions takes 30 KB. Go's servers keep none either.
        Arc::make_mut(&mut config).session_storage = Arc::new(NoServerSessionStorage {});
        Ok(config)
    }

    /// Returns the TLS configuration of the etcd member `node`: a new certificate for `names`; client certificates of
    /// this CA are required.
    pub(crate) fn etcd_server(
        &self,
        node: &str,
        names: &[String],
        validity: Duration,
    ) -> Result<TlsAcceptor, Error> {
        const WHAT: &str = "etcd/server";
        let (chain, key) = self.issue(Request {
            what: WHAT,
            common_name: node,
            names,
            // Members are clients of each other.
            usages: vec![
                ExtendedKeyUsagePurpose::ServerAuth,
                ExtendedKeyUsagePurpose::ClientAuth,
            ],
            validity,
        })?;
        etcd::tls::server(&self.pem, &chain, &key)
            .map_err(|error| Error::Issue(WHAT, error.to_string()))
    }

    /// Returns a new certificate and its key, as PEM.
    fn issue(&self, request: Request<'_>) -> Result<(String, SecretString), Error> {
        let what = request.what;
        let fail = |error: &dyn fmt::Display| Error::Issue(what, error.to_string());
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        params
            .distinguished_name
            .push(DnType::CommonName, request.common_name);
        params.subject_alt_names = subject_names(request.names);
        params.is_ca = IsCa::ExplicitNoCa;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.map_err(|error| fail(&error))?;
        // rcgen uses the types of the crate `time`; they are computed from the epoch.
        let epoch = rcgen::date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(BACKDATE);
        params.not_after = epoch + now.saturating_add(request.validity);
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        params.extended_key_usages = request.usages;
        let key = KeyPair::generate().map_err(|error| fail(&error))?;
        let issuer =
            Issuer::from_ca_cert_der(&self.der, &self.key).map_err(|error| fail(&error))?;
        let certificate = params
            .signed_by(&key, &issuer)
            .map_err(|error| fail(&error))?;
        Ok((certificate.pem(), key.serialize_pem().into()))
    }
}

/// Returns `sha256:<hex>` of the SubjectPublicKeyInfo of a certificate; `None` for an unparsable certificate.
pub(crate) fn spki_hash(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(format!(
        "sha256:{}",
        hex(&Sha256::digest(certificate.public_key().raw))
    ))
}

/// Returns all certificates of a PEM bundle.
pub(crate) fn certificates(pem: &[u8]) -> Vec<CertificateDer<'static>> {
    CertificateDer::pem_slice_iter(pem)
        .filter_map(Result::ok)
        .collect()
}

/// Formats bytes as lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn subject_names(names: &[String]) -> Vec<SanType> {
    names
        .iter()
        .filter_map(|name| match name.parse::<IpAddr>() {
            Ok(address) => Some(SanType::IpAddress(address)),
            Err(_) => name.as_str().try_into().ok().map(SanType::DnsName),
        })
        .collect()
}

fn authority(files: &BTreeMap<String, Vec<u8>>, name: &str, now: i64) -> Result<Authority, Error> {
    let path = format!("{DIRECTORY}/{name}.crt");
    let pem = text(files, "certificate", &path)?;
    let unreadable = |problem: String| Error::Unreadable {
        what: "certificate",
        path: path.clone(),
        problem,
    };
    let der = CertificateDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| unreadable(error.to_string()))?;
    let key = key_pair(files, &format!("{DIRECTORY}/{name}.key"))?;
    let (_, certificate) =
        X509Certificate::from_der(&der).map_err(|error| unreadable(error.to_string()))?;
    if !certificate.is_ca() {
        return Err(Error::NotAuthority { path });
    }
    let validity = certificate.validity();
    if now < validity.not_before.timestamp() || now > validity.not_after.timestamp() {
        return Err(Error::Expired {
            path,
            from: validity.not_before.to_string(),
            until: validity.not_after.to_string(),
        });
    }
    if key.subject_public_key_info() != certificate.public_key().raw {
        return Err(Error::Mismatch { path });
    }
    Ok(Authority {
        pem: pem.to_owned(),
        der: der.clone().into_owned(),
        key,
    })
}

/// Returns the private key of service account tokens. As in kubeadm, both key files are required and must match.
fn service_account(files: &BTreeMap<String, Vec<u8>>) -> Result<SecretString, Error> {
    let (public, private) = (format!("{DIRECTORY}/sa.pub"), format!("{DIRECTORY}/sa.key"));
    let pem = text(files, "public key", &public)?;
    let key = key_pair(files, &private)?;
    let (_, block) =
        x509_parser::pem::parse_x509_pem(pem.as_bytes()).map_err(|error| Error::Unreadable {
            what: "public key",
            path: public.clone(),
            problem: error.to_string(),
        })?;
    // PKCS#1 public keys (`RSA PUBLIC KEY`) are the inner part of the SubjectPublicKeyInfo.
    let info = key.subject_public_key_info();
    if info != block.contents && key.public_key_raw() != block.contents {
        return Err(Error::Mismatch { path: public });
    }
    Ok(text(files, "private key", &private)?.into())
}

fn text<'a>(
    files: &'a BTreeMap<String, Vec<u8>>,
    what: &'static str,
    path: &str,
) -> Result<&'a str, Error> {
    let bytes = files.get(path).ok_or_else(|| Error::Absent {
        what,
        path: path.to_owned(),
    })?;
    std::str::from_utf8(bytes).map_err(|_| Error::Unreadable {
        what,
        path: path.to_owned(),
        problem: "not text".to_owned(),
    })
}

fn key_pair(files: &BTreeMap<String, Vec<u8>>, path: &str) -> Result<KeyPair, Error> {
    let unreadable = |problem: String| Error::Unreadable {
        what: "private key",
        path: path.to_owned(),
        problem,
    };
    let pem = text(files, "private key", path)?;
    let key = PrivateKeyDer::from_pem_slice(pem.as_bytes())
        .map_err(|error| unreadable(error.to_string()))?;
    let pkcs8 = pkcs8(&key).ok_or_else(|| unreadable("the kind of key is unknown".to_owned()))?;
    KeyPair::try_from(&PrivateKeyDer::from(pkcs8)).map_err(|error| unreadable(error.to_string()))
}

/// Wraps PKCS#1 (`RSA PRIVATE KEY`) and SEC 1 (`EC PRIVATE KEY`), which Go writes but ring does not read, in PKCS#8
/// (RFC 5208).
fn pkcs8(key: &PrivateKeyDer<'_>) -> Option<PrivatePkcs8KeyDer<'static>> {
    const RSA: &[u8] = &[
        0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
    ];
    const P256: &[u8] = &[
        0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
        0x48, 0xce, 0x3d, 0x03, 0x01, 0x07,
    ];
    const P384: &[u8] = &[
        0x30, 0x10, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x05, 0x2b, 0x81,
        0x04, 0x00, 0x22,
    ];
    let (algorithm, inner) = match key {
        PrivateKeyDer::Pkcs8(key) => return Some(key.clone_key()),
        PrivateKeyDer::Pkcs1(key) => (RSA, key.secret_pkcs1_der()),
        PrivateKeyDer::Sec1(key) => {
            // The parameters of the key name the curve: the last element of the algorithms above.
            let inner = key.secret_sec1_der();
            let names = |curve: &[u8]| inner.windows(curve.len()).any(|window| window == curve);
            let curve = [(P256, &P256[11..]), (P384, &P384[11..])]
                .into_iter()
                .find(|(_, curve)| names(curve))?;
            (curve.0, inner)
        }
        _ => return None,
    };
    let mut content = vec![0x02, 0x01, 0x00];
    content.extend(algorithm);
    content.extend(element(0x04, inner)?);
    Some(PrivatePkcs8KeyDer::from(element(0x30, &content)?))
}

/// Encodes a DER element of less than 64 KiB.
fn element(tag: u8, content: &[u8]) -> Option<Vec<u8>> {
    let [high, low] = u16::try_from(content.len()).ok()?.to_be_bytes();
    let mut out = vec![tag];
    match (high, low) {
        (0, 0..=127) => out.push(low),
        (0, _) => out.extend([0x81, low]),
        _ => out.extend([0x82, high, low]),
    }
    out.extend(content);
    Some(out)
}

#[cfg(test)]
pub(crate) mod tests;
