//! TLS handshake for the server's certificate alone.

use std::sync::Arc;

use api::k8s_openapi::jiff::Timestamp;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsConnector;
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// End of the validity of a server's certificate. The chain is not verified, since the certificate may be about to
/// expire, or have expired; nothing is sent over the connection.
pub(super) async fn expiry<S>(stream: S) -> Result<Timestamp, String>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|source| source.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Unverified(provider)))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    // Sent as SNI only.
    let name = ServerName::try_from("kubernetes").map_err(|source| source.to_string())?;
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let connection = connecting.await.map_err(|source| source.to_string())?;
    let (_, session) = connection.get_ref();
    let chain = session.peer_certificates().unwrap_or_default();
    let leaf = chain.first().ok_or("it presents no certificate")?;
    let (_, leaf) = X509Certificate::from_der(leaf).map_err(|source| source.to_string())?;
    Timestamp::from_second(leaf.validity().not_after.timestamp())
        .map_err(|source| source.to_string())
}

/// Accepts any certificate if the server has the key.
#[derive(Debug)]
struct Unverified(Arc<CryptoProvider>);

impl ServerCertVerifier for Unverified {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
