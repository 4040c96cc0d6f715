//! Connections to real kubelets: addresses, and mutual TLS.
//!
//! Source of the rules and messages: `pkg/kubelet/client` of kube-apiserver.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, ServerName};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::tls::{TlsError, certificates};

/// Default of `--kubelet-preferred-address-types`.
pub(crate) const PREFERRED: [&str; 5] = [
    "Hostname",
    "InternalDNS",
    "InternalIP",
    "ExternalDNS",
    "ExternalIP",
];
/// Timeout of a connection to a kubelet, and of the TLS handshake (`http.Transport` of Go).
const DIAL: Duration = Duration::from_secs(30);
const HANDSHAKE: Duration = Duration::from_secs(10);

/// Credentials of the server at kubelets, and the preferred addresses of Nodes. Cheap to clone.
#[derive(Clone)]
pub struct KubeletClient {
    tls: Arc<ClientConfig>,
    preferred: Vec<String>,
}

impl std::fmt::Debug for KubeletClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KubeletClient")
            .field("preferred", &self.preferred)
            .finish_non_exhaustive()
    }
}

/// Error of creating a [`KubeletClient`].
#[derive(Debug, thiserror::Error)]
pub enum KubeletClientError {
    /// A certificate or the key is invalid.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// Unknown type of address.
    #[error("`{wanted}` is not a type of address; there are: {}", PREFERRED.join(", "))]
    AddressType {
        /// The unknown type.
        wanted: String,
    },
}

impl KubeletClient {
    /// Client that trusts kubelets with a serving certificate signed by `authority`
    /// (`--kubelet-certificate-authority`), and authenticates with `chain` and `key` (`--kubelet-client-certificate`,
    /// `--kubelet-client-key`), all in PEM.
    ///
    /// # Errors
    /// If one of the arguments is invalid.
    pub fn new(
        authority: &str,
        chain: &str,
        key: &SecretString,
    ) -> Result<Self, KubeletClientError> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authority, "the authority of the kubelets")? {
            roots.add(certificate).map_err(TlsError::from)?;
        }
        let chain = certificates(chain, "the client certificate for kubelets")?;
        let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes());
        let key = key.map_err(|source| TlsError::Pem {
            what: "the client key for kubelets",
            source,
        })?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(TlsError::from)?
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .map_err(TlsError::from)?;
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: Arc::new(tls),
            preferred: PREFERRED.map(str::to_owned).to_vec(),
        })
    }

    /// Same client with other preferred types of a Node's addresses (`--kubelet-preferred-address-types`).
    ///
    /// # Errors
    /// If a type is unknown.
    pub fn preferring(mut self, types: Vec<String>) -> Result<Self, KubeletClientError> {
        if let Some(unknown) = types
            .iter()
            .find(|kind| !PREFERRED.contains(&kind.as_str()))
        {
            let wanted = unknown.clone();
            return Err(KubeletClientError::AddressType { wanted });
        }
        self.preferred = types;
        Ok(self)
    }

    pub(crate) fn preferred(&self) -> Vec<&str> {
        self.preferred.iter().map(String::as_str).collect()
    }

    /// Opens a connection to the kubelet at `host` and `port`, for one request.
    ///
    /// # Errors
    /// The message of Go's dialer.
    pub(crate) async fn dial(
        &self,
        host: &str,
        port: u16,
    ) -> Result<SendRequest<Full<Bytes>>, String> {
        let stream = self.connect(host, port).await?;
        let (sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(|error| error.to_string())?;
        // The task ends after the response, or when the reader is dropped.
        tokio::spawn(async move {
            if let Err(error) = connection.with_upgrades().await {
                tracing::debug!(%error, "a connection to a kubelet failed");
            }
        });
        Ok(sender)
    }

    async fn connect(&self, host: &str, port: u16) -> Result<TlsStream<TcpStream>, String> {
        let address = super::joined(host, port);
        let dialled = tokio::time::timeout(DIAL, TcpStream::connect((host, port))).await;
        let stream = match dialled {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(format!("dial tcp {address}: {}", words(&error))),
            Err(_) => return Err(format!("dial tcp {address}: i/o timeout")),
        };
        let _ = stream.set_nodelay(true);
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| format!("tls: {host} is not a server name"))?;
        let handshake = TlsConnector::from(Arc::clone(&self.tls)).connect(name, stream);
        match tokio::time::timeout(HANDSHAKE, handshake).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(format!("tls: {error}")),
            Err(_) => Err("net/http: TLS handshake timeout".to_owned()),
        }
    }
}

/// Go's message for a connection error.
fn words(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        ErrorKind::TimedOut => "connect: connection timed out".to_owned(),
        _ => error.to_string(),
    }
}
