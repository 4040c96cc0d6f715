//! The metadata service, which answers on a link-local address: past any proxy, within a time, and no more than a document
//! has.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use super::LARGEST;

/// Where it is in every OpenStack.
const ADDRESS: SocketAddr = SocketAddr::new(
    std::net::IpAddr::V4(std::net::Ipv4Addr::new(169, 254, 169, 254)),
    80,
);

/// Why it has no answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no connection.
    #[error("the metadata service at {address} cannot be reached: {source}")]
    Connection {
        /// Where it should be.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// It speaks no HTTP, ends early, or sends too much.
    #[error("the metadata service at {address} broke off: {reason}")]
    Broken {
        /// Where it is.
        address: SocketAddr,
        /// Why.
        reason: String,
    },
    /// It does not have the document.
    #[error("the metadata service at {address} answers {status}")]
    Status {
        /// Where it should be.
        address: SocketAddr,
        /// What it answers.
        status: http::StatusCode,
    },
    /// It takes too long.
    #[error("the metadata service at {address} has not answered within {} s", limit.as_secs())]
    Timeout {
        /// Where it should be.
        address: SocketAddr,
        /// How long it may take.
        limit: Duration,
    },
}

/// A client that asks anew each time.
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
    /// At another address, with another limit for everything from the connection to the end of the body.
    pub fn new(address: SocketAddr, limit: Duration) -> Self {
        Self { address, limit }
    }

    /// `GET` of a path without its first slash.
    ///
    /// # Errors
    /// No connection, another status than 200, a body that breaks off or has more than 1 MiB, or too much time.
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
            // It may end before what it has delivered is read.
            Ok(()) => exchange.await,
            Err(error) => Err(broken(error.to_string())),
        },
    }
}
