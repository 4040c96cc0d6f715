//! Certificate of a listener, in the forms that Octavia reads: a secret with a PKCS12 bundle, or a container of type
//! `certificate`.

use super::payload;
use crate::cloud::call::Call;
use crate::cloud::document::Fields;
use crate::cloud::kind::Kind;

/// First byte of a PKCS12 bundle, which is a sequence in DER.
const SEQUENCE: u8 = 0x30;

/// Certificate of a TLS listener, as Octavia reads the secret of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Certificate {
    Readable,
    /// The secret is not a PKCS12 bundle.
    Malformed,
    /// No secret, no secret that the caller may read, or a container of another type.
    Unknown,
}

/// Returns the [`Certificate`] behind a reference, like Octavia's client: by the id at its end, first among secrets,
/// then among containers.
pub(crate) fn certificate(call: &Call<'_>, reference: &str) -> Certificate {
    let id = reference.rsplit('/').next().unwrap_or_default();
    if let Some(secret) = call.accessible(Kind::Secret, id)
        && let Ok(payload) = payload::of(&secret)
    {
        return match payload.first() {
            Some(SEQUENCE) => Certificate::Readable,
            _ => Certificate::Malformed,
        };
    }
    match call.accessible(Kind::Container, id) {
        Some(container) if container.text("type") == "certificate" => Certificate::Readable,
        _ => Certificate::Unknown,
    }
}
