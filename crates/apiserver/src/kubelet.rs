//! Kubelets: real ones, reached by a [`KubeletClient`], and implementations of [`Kubelet`].

mod client;

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

pub(crate) use client::PREFERRED;
pub use client::{KubeletClient, KubeletClientError};

/// kubelets of a cluster. Methods are called on the task of the request and must not block.
pub trait Kubelet: Send + Sync {
    /// True if the kubelet of `node`, a Node, is reachable. If not, requests fail as in kube-apiserver.
    fn is_reachable(&self, node: &Value) -> bool;

    /// [`Log`] of a container of `pod`, a Pod on `node`, after the status has reported a start of the container.
    ///
    /// `follow`: true if the request asks for the stream of later lines, too.
    ///
    /// # Errors
    /// The reason for a missing log: the message of a 400, as with a kubelet.
    fn log<'a>(
        &'a self,
        node: &'a Value,
        pod: &'a Value,
        container: &'a str,
        follow: bool,
    ) -> BoxFuture<'a, Result<Log, String>>;

    /// Opens a [`Connection`] to a port of `pod`, a Pod on `node`.
    ///
    /// # Errors
    /// The reason why the port accepts no connections, sent on the error stream of the connection.
    fn connect<'a>(
        &'a self,
        node: &'a Value,
        pod: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>>;
}

/// Connection to a port of a pod.
pub trait Connection: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Connection for T {}

/// A container's log.
pub struct Log {
    /// Existing [`Line`]s, oldest first.
    pub lines: Vec<Line>,
    /// Stream of later [`Line`]s until the container ends; `None` without later lines.
    pub more: Option<BoxStream<'static, Line>>,
}

/// Line of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Time of the write.
    pub at: Timestamp,
    /// Text without the line break.
    pub text: String,
}

/// Host and port in the form for URLs.
pub(crate) fn joined(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}
