//! Trust in a bundle as in Go's TLS: besides authorities, a bundle may contain the serving certificate itself, with
//! any signature (`x509.Certificate.Verify`).

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{WebPkiServerVerifier, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use x509_parser::prelude::{FromDer as _, X509Certificate};

/// Verifies the certificate of a webhook against a bundle.
#[derive(Debug)]
pub(super) struct Verifier {
    /// Verifies by the authorities of the bundle.
    chains: Arc<WebPkiServerVerifier>,
    /// Certificates of the bundle.
    trusted: Vec<CertificateDer<'static>>,
}

impl Verifier {
    pub(super) fn new(
        roots: RootCertStore,
        trusted: Vec<CertificateDer<'static>>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let chains =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        Ok(Self {
            chains: chains.build().map_err(|error| error.to_string())?,
            trusted,
        })
    }
}

/// Checks that a certificate in the bundle is valid now, for the name and for servers.
fn check(
    certificate: &CertificateDer<'_>,
    name: &ServerName<'_>,
    now: UnixTime,
) -> Result<(), Error> {
    verify_server_name(&ParsedCertificate::try_from(certificate)?, name)?;
    let unreadable = || Error::InvalidCertificate(CertificateError::BadEncoding);
    let (_, certificate) = X509Certificate::from_der(certificate).map_err(|_| unreadable())?;
    let validity = certificate.validity();
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    if now < validity.not_before.timestamp() {
        return Err(CertificateError::NotValidYet.into());
    }
    if now > validity.not_after.timestamp() {
        return Err(CertificateError::Expired.into());
    }
    let usage = certificate.extended_key_usage().map_err(|_| unreadable())?;
    if usage.is_some_and(|usage| !usage.value.server_auth && !usage.value.any) {
        return Err(CertificateError::InvalidPurpose.into());
    }
    Ok(())
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.trusted.iter().any(|trusted| trusted == certificate) {
            check(certificate, name, now)?;
            return Ok(ServerCertVerified::assertion());
        }
        self.chains
            .verify_server_cert(certificate, intermediates, name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chains
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chains.supported_verify_schemes()
    }
}
