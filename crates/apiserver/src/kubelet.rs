//! Kubelets: real ones, to which the server connects with [`KubeletClient`], and those that implement [`Kubelet`].

mod client;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use client::PREFERRED;
pub use client::{KubeletClient, KubeletClientError};

/// The kubelets of a cluster. Methods are called on the task of the request and must not block.
pub trait Kubelet: Send + Sync {
    /// True if the kubelet of `node`, a Node, is reachable. If not, requests fail as they do in kube-apiserver.
    fn is_reachable(&self, node: &Value) -> bool;

    /// Returns the log of a container of `pod`, a Pod on `node` whose status reports that the container runs or has
    /// run.
    ///
    /// `follow`: whether the stream of later lines is requested, too.
    ///
    /// # Errors
    /// Why there is no log. It becomes the message of a 400, as with a kubelet.
    fn log<'a>(
        &'a self,
        node: &'a Value,
        pod: &'a Value,
        container: &'a str,
        follow: bool,
    ) -> BoxFuture<'a, Result<Log, String>>;

    /// Opens a connection to a port of `pod`, a Pod on `node`.
    ///
    /// # Errors
    /// Why the port does not accept connections. It is sent on the error stream of the connection.
    fn connect<'a>(
        &'a self,
        node: &'a Value,
        pod: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>>;
}

/// A connection to a port of a pod.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A container's log.
pub struct Log {
    /// The existing lines, oldest first.
    pub lines: Vec<Line>,
    /// The stream of later lines until the container ends; `None` if there will be none.
    pub more: Option<BoxStream<'static, Line>>,
}

/// A line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The time at which it was written.
    pub at: Timestamp,
    /// The text without the line break.
    pub text: String,
}

/// A host and a port in the form for URLs.
pub(crate) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
