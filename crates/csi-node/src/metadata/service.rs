//! Metadata service at its link-local address: no proxy, a time limit, and a limit of 1 MiB for a document.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::LARGEST;

/// Address of the service in every OpenStack.
const ADDRESS: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254)),
    80,
);

/// Failure of a request.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The connection failed.
    #[error("the metadata service at {address} cannot be reached: {source}")]
    Connection {
        /// Address of the service.
        address: SocketAddr,
        /// Error of the connection.
        source: std::io::Error,
    },
    /// The server speaks no HTTP, breaks off, or sends more than 1 MiB.
    #[error("the metadata service at {address} broke off: {reason}")]
    Broken {
        /// Address of the service.
        address: SocketAddr,
        /// Error of the HTTP exchange.
        reason: String,
    },
    /// The service lacks the document.
    #[error("the metadata service at {address} answers {status}")]
    Status {
        /// Address of the service.
        address: SocketAddr,
        /// HTTP status of the answer.
        status: http::StatusCode,
    },
    /// No answer within the limit.
    #[error("the metadata service at {address} has not answered within {} s", limit.as_secs())]
    Timeout {
        /// Address of the service.
        address: SocketAddr,
        /// Time limit.
        limit: Duration,
    },
}

/// Client of the metadata service, with a new connection for each request.
#[derive(Clone, Copy, Debug)]
pub struct Service {
    address: SocketAddr,
    limit: Duration,
}

impl Default for Service {
    fn default() -> Self {
        Self::new(ADDRESS, Duration::from_secs(10))
    }
}

impl Service {
    /// Client with another address and another limit, for everything from the connection to the end of the body.
    pub fn new(address: SocketAddr, limit: Duration) -> Self {
        Self { address, limit }
    }

    /// Sends `GET` for `path`, given without its first slash.
    ///
    /// # Errors
    /// No connection, a status other than 200, a body that breaks off or exceeds 1 MiB, or a timeout.
    pub async fn read(&self, path: &str) -> Result<Bytes, Error> {
        let Self { address, limit } = *self;
        let asked = tokio::time::timeout(limit, ask(address, path));
        asked
            .await
            .unwrap_or(Err(Error::Timeout { address, limit }))
    }
}

async fn ask(address: SocketAddr, path: &str) -> Result<Bytes, Error> {
    let broken = |reason: String| Error::Broken { address, reason };
    let stream = TcpStream::connect(address).await;
    let stream = stream.map_err(|source| Error::Connection { address, source })?;
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| broken(error.to_string()))?;
    let request = http::Request::get(format!("/{path}"))
        .header(http::header::HOST, address.ip().to_string())
        .body(Empty::<Bytes>::new());
    let request = request.map_err(|error| broken(error.to_string()))?;
    let exchange = async {
        let response = sender.send_request(request).await;
        let response = response.map_err(|error| broken(error.to_string()))?;
        let status = response.status();
        if status != http::StatusCode::OK {
            return Err(Error::Status { address, status });
        }
        let body = Limited::new(response.into_body(), LARGEST).collect().await;
        body.map(http_body_util::Collected::to_bytes)
            .map_err(|error| broken(error.to_string()))
    };
    // The connection makes progress as long as it is polled, and ends with the exchange.
    tokio::pin!(exchange);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        body = &mut exchange => body,
        ended = &mut connection => match ended {
            // The connection may end before its last response has been read.
            Ok(()) => exchange.await,
            Err(error) => Err(broken(error.to_string())),
        },
    }
}
