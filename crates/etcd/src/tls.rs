//! TLS between a client and a member, with certificates of etcd's CA.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, ServerConfig,
    SignatureScheme,
};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

/// gRPC is HTTP/2, and Go's clients require ALPN.
const ALPN: &[u8] = b"h2";

/// Unusable certificate or key.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Text that is not PEM, or lacks the expected item.
    #[error("{what} cannot be read: {problem}")]
    Pem {
        /// Name of the text.
        what: &'static str,
        /// Error of the parser.
        problem: String,
    },
    /// Certificate or key that cannot be used.
    #[error("{what} cannot be used: {problem}")]
    Unusable {
        /// Name of the certificate or key.
        what: &'static str,
        /// Error of the TLS library.
        problem: String,
    },
}

/// TLS configuration of a client: a certificate, and the CA of the members.
#[derive(Clone)]
pub struct Tls {
    connector: TlsConnector,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}

impl Tls {
    /// Returns a client configuration from PEM. A member's certificate must be signed by `ca`; the names in the
    /// certificate are not verified, because the connection is a forwarded port without a host name.
    ///
    /// # Errors
    /// One of the texts is invalid.
    pub fn client(ca: &str, certificate: &str, key: &SecretString) -> Result<Self, TlsError> {
        let (provider, chain) = (
            provider(),
            certificates(certificate, "the client certificate")?,
        );
        let verifier = WebPkiServerVerifier::builder_with_provider(
            Arc::new(roots(ca)?),
            Arc::clone(&provider),
        );
        let verifier = verifier.build().map_err(unusable("etcd's CA"))?;
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(unusable("TLS"))?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyName(verifier)));
        let mut config = config
            .with_client_auth_cert(chain, private_key(key)?)
            .map_err(unusable("the client certificate"))?;
        config.alpn_protocols = vec![ALPN.to_vec()];
        // Few connections are opened, and the store for resumption takes 20 KB for each cluster.
        config.resumption = Resumption::disabled();
        Ok(Self {
            connector: TlsConnector::from(Arc::new(config)),
        })
    }

    pub(crate) async fn connect<S>(&self, stream: S) -> std::io::Result<TlsStream<S>>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        // Sent as SNI only; the verifier accepts any name.
        let name = ServerName::try_from("localhost").map_err(std::io::Error::other)?;
        self.connector.connect(name, stream).await
    }
}

/// Returns the TLS configuration of a member, from PEM. Clients must have a certificate signed by `ca`, as with
/// kubeadm's `--client-cert-auth`.
///
/// # Errors
/// One of the texts is invalid.
pub fn server(ca: &str, certificate: &str, key: &SecretString) -> Result<TlsAcceptor, TlsError> {
    let (provider, chain) = (provider(), certificates(certificate, "the certificate")?);
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots(ca)?), Arc::clone(&provider));
    let verifier = verifier.build().map_err(unusable("etcd's CA"))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(unusable("TLS"))?
        .with_client_cert_verifier(verifier)
        .with_single_cert(chain, private_key(key)?)
        .map_err(unusable("the certificate"))?;
    config.alpn_protocols = vec![ALPN.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Verifier of a server's certificate chain, but not of the name.
#[derive(Debug)]
struct AnyName(Arc<WebPkiServerVerifier>);

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let verified =
            self.0
                .verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        match verified {
            // The name is compared last: at this point the chain has been verified.
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, cert, dss)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, cert, dss)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn unusable<E: fmt::Display>(what: &'static str) -> impl FnOnce(E) -> TlsError {
    move |problem| TlsError::Unusable {
        what,
        problem: problem.to_string(),
    }
}

fn roots(pem: &str) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, "etcd's CA")? {
        roots.add(certificate).map_err(unusable("etcd's CA"))?;
    }
    Ok(roots)
}

fn certificates(pem: &str, what: &'static str) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    let problem = match all {
        Ok(all) if !all.is_empty() => return Ok(all),
        Ok(_) => "it has no certificate".to_owned(),
        Err(problem) => problem.to_string(),
    };
    Err(TlsError::Pem { what, problem })
}

fn private_key(pem: &SecretString) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(pem.expose_secret().as_bytes()).map_err(|problem| TlsError::Pem {
        what: "the private key",
        problem: problem.to_string(),
    })
}
