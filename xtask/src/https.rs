//! Client for a server on this machine: one TLS connection with HTTP/1.1, as cheap as possible, since client and server
//! share the machine; and certificates for both.

use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Address of a server, and credentials of its administrator.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Arc<rustls::ClientConfig>,
}

/// One connection.
pub(crate) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Access {
    /// Opens a connection without HTTP.
    pub(crate) async fn stream(&self) -> anyhow::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        Ok(connector.connect(name, stream).await?)
    }

    pub(crate) async fn connect(&self) -> anyhow::Result<Client> {
        let stream = self.stream().await?;
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        tokio::spawn(connection);
        Ok(Client {
            sender,
            host: self.address.to_string(),
        })
    }
}

impl Client {
    /// Sends a request, and returns the response when its head has arrived.
    pub(crate) async fn send(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> anyhow::Result<Response<Incoming>> {
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", &self.host)
            .header("content-type", "application/json")
            .header("accept", "application/json")
            .body(Full::new(body.into()))?;
        self.sender.ready().await?;
        Ok(self.sender.send_request(request).await?)
    }

    /// Sends a request, and returns the body of a successful answer.
    pub(crate) async fn call(
        &mut self,
        method: Method,
        path: &str,
        body: impl Into<Bytes>,
    ) -> anyhow::Result<Bytes> {
        let what = format!("{method} {path}");
        let response = self.send(method, path, body).await?;
        let status = response.status();
        let bytes = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{what}: {status} {}", String::from_utf8_lossy(&bytes));
        }
        Ok(bytes)
    }

    pub(crate) async fn post(&mut self, path: &str, body: &Value) -> anyhow::Result<Bytes> {
        self.call(Method::POST, path, body.to_string())
            .await
            .with_context(|| path.to_owned())
    }

    pub(crate) async fn get(&mut self, path: &str) -> anyhow::Result<Bytes> {
        self.call(Method::GET, path, Bytes::new()).await
    }
}

/// Address that is free at the moment.
pub(crate) fn free() -> anyhow::Result<SocketAddr> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Writes ca.crt, and certificates and keys of the server and of an administrator; returns the TLS settings of the
/// administrator.
pub(crate) fn certificates(directory: &Path) -> anyhow::Result<rustls::ClientConfig> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "bench");
    let key = KeyPair::generate()?;
    let ca = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let server_key = KeyPair::generate()?;
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let server = CertificateParams::new(names)?.signed_by(&server_key, &issuer)?;
    let admin_key = KeyPair::generate()?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "admin");
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:masters");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let admin = params.signed_by(&admin_key, &issuer)?;
    for (name, text) in [
        ("ca.crt", ca.clone()),
        ("server.crt", server.pem()),
        ("server.key", server_key.serialize_pem()),
        ("server.pub", server_key.public_key_pem()),
        ("admin.crt", admin.pem()),
        ("admin.key", admin_key.serialize_pem()),
    ] {
        std::fs::write(directory.join(name), text)?;
    }
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(ca.as_bytes())?)?;
    let key = PrivateKeyDer::from_pem_slice(admin_key.serialize_pem().as_bytes())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    Ok(rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![admin.der().clone()], key)?)
}
