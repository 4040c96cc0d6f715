//! Destination, number and encryption of backups.

use serde::Deserialize;
use x509_parser::pem::Pem;
use x509_parser::public_key::PublicKey;

use super::place::is_domain;
use super::schedule::Schedule;

/// Backups of a cloud, made by an [`Operation`](crate::operation::Operation).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Backups {
    /// PersistentVolumeClaim in the namespace of the cloud, owned by the user.
    pub claim_name: String,
    /// Certificate, as PEM, to encrypt passwords and keys.
    pub certificate: String,
    /// Number of backups of the cloud that are kept.
    #[serde(default = "keep")]
    pub keep: u32,
    /// When backups are made, as [`Schedule::read`] takes it; without it only on request.
    pub schedule: Option<String>,
}

fn keep() -> u32 {
    7
}

/// Longest certificate, in bytes.
const LONGEST: usize = 16384;

impl Backups {
    /// First field with a senseless value, and the reason.
    pub(super) fn wrong(&self) -> Option<(String, &'static str)> {
        let wrong = |field: &str, problem| Some((format!("backup.{field}"), problem));
        if !is_domain(&self.claim_name) {
            return wrong("claimName", "it is not the name of a PersistentVolumeClaim");
        }
        if !(1..=1000).contains(&self.keep) {
            return wrong("keep", "it is not from 1 to 1000");
        }
        let schedule = self.schedule.as_deref().map(Schedule::read);
        if let Some(Err(problem)) = schedule {
            return wrong("schedule", problem);
        }
        match self.encrypts() {
            true => None,
            false => wrong(
                "certificate",
                "it is not one certificate in PEM with a key that encrypts: RSA, or a curve of NIST",
            ),
        }
    }

    /// True if OpenSSL encrypts to the certificate.
    fn encrypts(&self) -> bool {
        let text = self.certificate.trim();
        let is_alone = text.matches("-----BEGIN ").count() == 1;
        if text.len() > LONGEST || !is_alone || !text.starts_with("-----BEGIN CERTIFICATE-----") {
            return false;
        }
        let Ok((_, pem)) = x509_parser::pem::parse_x509_pem(text.as_bytes()) else {
            return false;
        };
        is_for_encryption(&pem)
    }
}

/// True for a type of key suitable for encryption.
fn is_for_encryption(pem: &Pem) -> bool {
    let Ok(certificate) = pem.parse_x509() else {
        return false;
    };
    let key = certificate.public_key();
    // Ed25519 only signs.
    matches!(key.parsed(), Ok(PublicKey::RSA(_) | PublicKey::EC(_)))
}
