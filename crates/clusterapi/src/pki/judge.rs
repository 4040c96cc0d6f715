//! Checks of key material, possibly supplied by users: problems are reported here, not by kubeadm on a machine.

use api::k8s_openapi::jiff::Timestamp;
use rustls_pki_types::pem::{PemObject, SectionKind};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::{KeyMaterial, Purpose, key_pair, with_certificate};

/// Unusable part of the material, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// True for the private key, false for the certificate or public key.
    pub(super) is_key: bool,
    /// Rest of a sentence after the name of the part.
    pub(super) why: String,
}

/// Problem of `material` for `purpose`; `None` if usable.
pub(super) fn problem(purpose: Purpose, material: &KeyMaterial, now: Timestamp) -> Option<Problem> {
    let of_public = |why: String| Problem { is_key: false, why };
    let public = match purpose {
        Purpose::ServiceAccount => {
            public_key(&material.public).ok_or_else(|| "is not a public key in PEM form".to_owned())
        }
        _ => certificate(purpose, &material.public, now),
    };
    let public = match public {
        Ok(public) => public,
        Err(why) => return Some(of_public(why)),
    };
    material.private.as_ref()?;
    let of_key = |why: &str| Problem {
        is_key: true,
        why: why.to_owned(),
    };
    match key_pair(material) {
        Err(_) => Some(of_key(
            "is not a private key in PEM form (PKCS#8, PKCS#1 or SEC 1; RSA or ECDSA)",
        )),
        Ok(pair) if pair.public_key_raw() != public => {
            Some(of_key("does not belong to what is stored in tls.crt"))
        }
        Ok(_) => None,
    }
}

/// Bits of the public key of a usable certificate for `purpose`.
fn certificate(purpose: Purpose, pem: &str, now: Timestamp) -> Result<Vec<u8>, String> {
    let judged = with_certificate(pem, |certificate| {
        let time = |seconds: i64| Timestamp::from_second(seconds).unwrap_or(Timestamp::MAX);
        let from = time(certificate.validity().not_before.timestamp());
        let until = time(certificate.validity().not_after.timestamp());
        if now > until {
            return Err(format!("has expired at {until}"));
        }
        if now < from {
            return Err(format!("is not valid before {from}"));
        }
        if purpose != Purpose::EtcdClient && !is_authority(certificate) {
            return Err("is not the certificate of an authority (CA:TRUE, keyCertSign)".to_owned());
        }
        Ok(certificate.public_key().subject_public_key.data.to_vec())
    });
    judged.unwrap_or_else(|_| Err("is not a certificate in PEM form".to_owned()))
}

fn is_authority(certificate: &X509Certificate<'_>) -> bool {
    let constraints = certificate.basic_constraints().ok().flatten();
    let signs = match certificate.key_usage() {
        Ok(Some(usage)) => usage.value.key_cert_sign(),
        Ok(None) => true,
        Err(_) => false,
    };
    signs && constraints.is_some_and(|it| it.value.ca)
}

/// Bits of a public key, in the forms that kube-apiserver reads.
fn public_key(pem: &str) -> Option<Vec<u8>> {
    let bits = |spki: &[u8]| {
        let (_, parsed) = SubjectPublicKeyInfo::from_der(spki).ok()?;
        Some(parsed.subject_public_key.data.to_vec())
    };
    if let Ok(bits) = with_certificate(pem, |certificate| {
        certificate.public_key().subject_public_key.data.to_vec()
    }) {
        return Some(bits);
    }
    let (kind, der) = Section::from_pem_slice(pem.as_bytes()).ok()?.0;
    match kind {
        SectionKind::PublicKey => bits(&der),
        _ => None,
    }
}

/// First section of a PEM document, of any kind.
struct Section((SectionKind, Vec<u8>));

impl PemObject for Section {
    fn from_pem(kind: SectionKind, der: Vec<u8>) -> Option<Self> {
        Some(Self((kind, der)))
    }
}

#[cfg(test)]
mod tests;
