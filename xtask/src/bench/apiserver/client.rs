//! A client of either server: one TLS connection with HTTP/1.1, as cheap as possible, since it shares the machine.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, bail};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::SendRequest;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// The address of a server, and the credentials of its administrator.
#[derive(Clone)]
pub(in crate::bench) struct Access {
    pub(in crate::bench) address: SocketAddr,
    pub(in crate::bench) tls: Arc<rustls::ClientConfig>,
}

/// One connection.
pub(in crate::bench) struct Client {
    sender: SendRequest<Full<Bytes>>,
    host: String,
}

impl Access {
    /// Opens a connection without HTTP.
    pub(in crate::bench) async fn stream(&self) -> anyhow::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.address).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::IpAddress(self.address.ip().into());
        let connector = TlsConnector::from(Arc::clone(&self.tls));
        Ok(connector.connect(name, stream).await?)
    }

    pub(in crate::bench) async fn connect(&self) -> anyhow::Result<Client> {
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
    pub(in crate::bench) async fn send(
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
    pub(in crate::bench) async fn call(
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

    pub(in crate::bench) async fn post(
        &mut self,
        path: &str,
        body: &Value,
    ) -> anyhow::Result<Bytes> {
        self.call(Method::POST, path, body.to_string())
            .await
            .with_context(|| path.to_owned())
    }

    pub(in crate::bench) async fn get(&mut self, path: &str) -> anyhow::Result<Bytes> {
        self.call(Method::GET, path, Bytes::new()).await
    }
}
