//! HTTP by reqwest, with one connection pool per set of trusted CAs.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;

use super::limits::More;
use super::{Limits, Transport, TransportError, through_proxies};
use crate::config::ClientCertificate;
use crate::error::{Error, ErrorKind, Result};

const CONNECT: Duration = Duration::from_secs(10);
/// Lifetime of an idle connection: below the 60 s and more of common load balancers, so that the client closes idle
/// connections first.
const IDLE: Duration = Duration::from_secs(45);
/// Maximum number of idle connections: a cloud that hangs must not accumulate connections.
const IDLE_PER_HOST: usize = 16;

/// Servers that a connection pool trusts. Sessions with equal trust share a pool.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Trust {
    /// True if certificates are verified.
    pub verify: bool,
    /// PEM of the trusted CAs; those of the system if absent.
    pub ca_pem: Option<Vec<u8>>,
    /// Certificate of the client, for servers with client authentication.
    pub client_certificate: Option<ClientCertificate>,
}

/// Default transport.
#[derive(Clone, Debug)]
pub struct HttpTransport {
    client: reqwest::Client,
}

impl HttpTransport {
    /// Creates a pool with this trust, at least TLS 1.2; certificates are verified unless the trust disables it.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`] for a PEM without certificates, or if the process has not
    /// installed a TLS provider.
    pub fn new(trust: &Trust) -> Result<Self> {
        // reqwest panics without a provider.
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            return Err(Error::new(
                ErrorKind::Invalid,
                "the process has not installed a TLS provider",
            ));
        }
        let identity = trust
            .client_certificate
            .as_ref()
            .map(identity)
            .transpose()?;
        let builder = || {
            let builder = through_proxies(reqwest::Client::builder());
            let builder = match &identity {
                Some(identity) => builder.identity(identity.clone()),
                None => builder,
            };
            builder
                .tls_version_min(reqwest::tls::Version::TLS_1_2)
                .redirect(reqwest::redirect::Policy::none())
                .connect_timeout(CONNECT)
                .pool_idle_timeout(IDLE)
                .pool_max_idle_per_host(IDLE_PER_HOST)
                .tcp_keepalive(Duration::from_secs(30))
        };
        let failed = |error: reqwest::Error| {
            Error::new(
                ErrorKind::Invalid,
                format!("no HTTP client: {}", TransportError::chain(&error)),
            )
        };
        let client = match (&trust.ca_pem, trust.verify) {
            (_, false) => builder().tls_danger_accept_invalid_certs(true).build(),
            (Some(pem), true) => builder().tls_certs_only(certificates(pem)?).build(),
            // A machine without system CAs can still use plain http.
            (None, true) => builder()
                .build()
                .or_else(|_| builder().tls_certs_only(Vec::new()).build()),
        };
        Ok(Self {
            client: client.map_err(failed)?,
        })
    }
}

impl Transport for HttpTransport {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>> {
        let client = self.client.clone();
        async move {
            let failed = |error: reqwest::Error| {
                if error.is_timeout() && !error.is_connect() {
                    return TransportError::timed_out(limits.time);
                }
                TransportError {
                    never_sent: error.is_connect(),
                    timed_out: error.is_timeout(),
                    ..TransportError::new(TransportError::chain(&error.without_url()))
                }
            };
            let mut request = reqwest::Request::try_from(request).map_err(failed)?;
            *request.timeout_mut() = Some(limits.time);
            let mut response = client.execute(request).await.map_err(failed)?;
            let mut answer = http::Response::builder().status(response.status());
            if let Some(headers) = answer.headers_mut() {
                *headers = std::mem::take(response.headers_mut());
            }
            let mut body = limits.body(response.status(), response.content_length())?;
            while let Some(piece) = response.chunk().await.map_err(failed)?
                && body.add(&piece)? == More::Wanted
            {}
            let answer = answer.body(body.end());
            answer.map_err(|error| TransportError::new(error.to_string()))
        }
        .boxed()
    }
}

/// Connection pools by trust, so that sessions of one cloud share connections.
#[derive(Debug, Default)]
pub struct ConnectionPools(Mutex<HashMap<Trust, Weak<HttpTransport>>>);

impl ConnectionPools {
    /// Returns the pool with this trust. A pool lives as long as it is used.
    ///
    /// # Errors
    /// The errors of [`HttpTransport::new`].
    pub fn get(&self, trust: &Trust) -> Result<Arc<HttpTransport>> {
        let mut pools = self.0.lock();
        if let Some(pool) = pools.get(trust).and_then(Weak::upgrade) {
            return Ok(pool);
        }
        pools.retain(|_, pool| pool.strong_count() > 0);
        let pool = Arc::new(HttpTransport::new(trust)?);
        pools.insert(trust.clone(), Arc::downgrade(&pool));
        Ok(pool)
    }
}

/// Parses the certificate of a client. The library's words about a mistake are not used, since they may quote the key.
fn identity(certificate: &ClientCertificate) -> Result<reqwest::Identity> {
    reqwest::Identity::from_pem(certificate.pem()).map_err(|_| {
        Error::new(
            ErrorKind::Invalid,
            "the client certificate (cert) and its key are not PEM of a certificate and its private key",
        )
    })
}

/// Returns the number of certificates in a bundle, as PEM.
///
/// # Errors
/// [`ErrorKind::Invalid`] for a bundle that is not PEM, or that has none.
pub fn certificates_in(pem: &[u8]) -> Result<usize> {
    certificates(pem).map(|found| found.len())
}

/// Returns the certificates of a bundle. An empty bundle is an error, since a fallback to the system's CAs would trust
/// more than the user configured.
fn certificates(pem: &[u8]) -> Result<Vec<reqwest::Certificate>> {
    let bad = |why: String| Error::new(ErrorKind::Invalid, format!("the CA bundle (cacert) {why}"));
    let certificates = reqwest::Certificate::from_pem_bundle(pem)
        .map_err(|error| bad(format!("is not PEM: {}", TransportError::chain(&error))))?;
    if certificates.is_empty() {
        return Err(bad("holds no certificate".to_owned()));
    }
    Ok(certificates)
}
