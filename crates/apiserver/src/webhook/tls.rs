//! Verification of the certificates of webhooks.

mod bundle;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Maximum number of cached settings, more than any server has hooks.
const KEPT: usize = 64;

/// TLS settings by bundle of authorities, cached so that sessions are resumed.
#[derive(Debug, Default)]
pub(crate) struct Authorities {
    configs: Mutex<HashMap<Vec<u8>, Arc<ClientConfig>>>,
}

impl Authorities {
    /// Settings that trust a PEM bundle; an empty bundle stands for the authorities of the machine.
    pub(super) fn config(&self, bundle: &[u8]) -> Result<Arc<ClientConfig>, String> {
        if let Some(known) = self.configs.lock().get(bundle) {
            return Ok(Arc::clone(known));
        }
        let config = Arc::new(configured(bundle)?);
        let mut configs = self.configs.lock();
        if configs.len() >= KEPT {
            configs.clear();
        }
        configs.insert(bundle.to_vec(), Arc::clone(&config));
        Ok(config)
    }
}

fn configured(bundle: &[u8]) -> Result<ClientConfig, String> {
    let mut roots = RootCertStore::empty();
    let mut trusted: Vec<CertificateDer<'static>> = Vec::new();
    if bundle.is_empty() {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    } else {
        let all: Result<Vec<CertificateDer<'static>>, _> =
            CertificateDer::pem_slice_iter(bundle).collect();
        trusted = all.unwrap_or_default();
        let (added, _) = roots.add_parsable_certificates(trusted.iter().cloned());
        if added == 0 {
            return Err(UNREADABLE.to_owned());
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = bundle::Verifier::new(roots, trusted, &provider)?;
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Message of kube-apiserver about a bundle without a certificate.
pub(crate) const UNREADABLE: &str =
    "unable to load root certificates: unable to parse bytes as PEM block";

pub(super) async fn handshake(
    config: Arc<ClientConfig>,
    name: &str,
    stream: TcpStream,
) -> Result<TlsStream<TcpStream>, String> {
    let server = ServerName::try_from(name.to_owned())
        .map_err(|_| format!("tls: {name} is not a server name"))?;
    TlsConnector::from(config)
        .connect(server, stream)
        .await
        .map_err(|error| worded(&error, name))
}

/// Error of a handshake in Go's format.
fn worded(error: &std::io::Error, name: &str) -> String {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
    let why = match inner {
        Some(rustls::Error::InvalidCertificate(why)) => why,
        Some(other) => return format!("remote error: {other}"),
        None => return "EOF".to_owned(),
    };
    let why = match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "certificate signed by unknown authority".to_owned()
        }
        CertificateError::Expired
        | CertificateError::ExpiredContext { .. }
        | CertificateError::NotValidYet
        | CertificateError::NotValidYetContext { .. } => {
            "certificate has expired or is not yet valid".to_owned()
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("certificate is not valid for {name}")
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "certificate specifies an incompatible key usage".to_owned()
        }
        other => other.to_string(),
    };
    format!("tls: failed to verify certificate: x509: {why}")
}

#[cfg(test)]
mod tests;
