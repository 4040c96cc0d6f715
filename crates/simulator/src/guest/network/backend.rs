//! Backends of outside connections: API servers, and nodes on the node ports of Services.

use std::net::SocketAddr;
use std::sync::Arc;

use apiserver::sockets::{self, Arriving, Limits};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use hyper::body::Bytes;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use super::super::cluster::{Member, ServicePort};
use super::Target;

/// Server on a guest.
#[derive(Clone, Debug)]
pub(crate) enum Backend {
    /// API server of a control plane guest.
    Api(Arc<Member>),
    /// Node on the node port of a Service.
    Service(Arc<NodePort>),
}

/// Node behind the node port of a Service.
#[derive(Debug)]
pub(crate) struct NodePort {
    /// Nova's server id.
    pub(crate) instance: String,
    /// Name of the Node.
    pub(crate) node: String,
    /// Service and port.
    pub(crate) port: ServicePort,
    /// Addresses of the node, with the node port.
    pub(crate) addresses: Vec<SocketAddr>,
    /// Cancelled when the guest stops.
    pub(crate) power: CancellationToken,
}

impl Target for Backend {
    fn addresses(&self) -> &[SocketAddr] {
        match self {
            Self::Api(member) => &member.addresses,
            Self::Service(port) => &port.addresses,
        }
    }

    fn server(&self) -> &str {
        match self {
            Self::Api(member) => &member.instance,
            Self::Service(port) => &port.instance,
        }
    }
}

impl Backend {
    /// Returns a token that is cancelled when the backend stops to answer.
    pub(super) fn serving(&self) -> &CancellationToken {
        match self {
            Self::Api(member) => &member.serving,
            Self::Service(port) => &port.power,
        }
    }

    /// Serves one connection to its end.
    pub(super) async fn serve(&self, stream: TcpStream) {
        match self {
            Self::Api(member) => member.serve(stream).await,
            Self::Service(port) => port.serve(stream).await,
        }
    }
}

impl NodePort {
    /// Answers HTTP requests with one line with the names of Service and node: no Pod is behind the port.
    async fn serve(&self, stream: TcpStream) {
        let text = format!(
            "Service {}, port {}: node {}, node port {}; simulated, no Pod runs\n",
            self.port.service, self.port.port, self.node, self.port.node_port
        );
        let answer = move |_: Request<Arriving>| {
            let mut response = Response::new(Full::new(Bytes::from(text.clone())));
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            response.headers_mut().insert(CONTENT_TYPE, plain);
            async move { Ok::<_, std::convert::Infallible>(response) }
        };
        let place = sockets::alone(Limits::default());
        sockets::connection(stream, &place, answer, std::future::pending()).await;
    }
}
