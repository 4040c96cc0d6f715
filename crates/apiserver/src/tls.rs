//! TLS of an API server: a server certificate, and optional client certificates.

use std::sync::Arc;

use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

/// Error of the TLS setup.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The text is no PEM of the required type.
    #[error("{what} cannot be read")]
    Pem {
        /// Name of the argument.
        what: &'static str,
        /// Error of the parser.
        source: rustls_pki_types::pem::Error,
    },
    /// The text has no certificate.
    #[error("{what} contains no certificate")]
    Empty {
        /// Name of the argument.
        what: &'static str,
    },
    /// rustls rejects the certificates or the key.
    #[error("the certificates and the key cannot be used")]
    Rustls(#[from] rustls::Error),
    /// The authorities of clients cannot be used.
    #[error("the client authorities cannot be used")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// TLS setting of an API server: HTTP/2 and HTTP/1.1, and optional client certificates. All arguments are PEM;
/// `chain` begins with the server's own certificate.
///
/// # Errors
/// When an argument cannot be read or used.
pub fn server_config(
    chain: &str,
    key: &str,
    client_ca: Option<&str>,
) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(chain, "the certificate chain")?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|source| TlsError::Pem {
        what: "the private key",
        source,
    })?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let builder = match client_ca {
        Some(pem) => builder.with_client_cert_verifier(client_verifier(pem)?),
        None => builder.with_no_client_auth(),
    };
    let mut config = builder.with_single_cert(chain, key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Verifier of presented client certificates; clients without one pass, to use a token.
pub(crate) fn client_verifier(pem: &str) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "the client authorities")? {
        roots.add(certificate)?;
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    Ok(builder.allow_unauthenticated().build()?)
}

pub(crate) fn certificates(
    pem: &str,
    what: &'static str,
) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let all = all.map_err(|source| TlsError::Pem { what, source })?;
    if all.is_empty() {
        return Err(TlsError::Empty { what });
    }
    Ok(all)
}
