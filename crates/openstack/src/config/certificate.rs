//! The certificate of a client.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use zeroize::Zeroizing;

/// Certificate and key as PEM. Cannot be printed.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate(Arc<Zeroizing<Vec<u8>>>);

impl ClientCertificate {
    /// Creates a certificate from PEM: `certificate` with its chain, and `key`.
    pub fn new(certificate: &[u8], key: &[u8]) -> Self {
        let mut pem = Zeroizing::new(Vec::with_capacity(certificate.len() + key.len() + 1));
        pem.extend_from_slice(certificate);
        pem.push(b'\n');
        pem.extend_from_slice(key);
        Self(Arc::new(pem))
    }

    pub(crate) fn pem(&self) -> &[u8] {
        &self.0
    }
}

impl Hash for ClientCertificate {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.pem().hash(state);
    }
}

impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate")
    }
}
