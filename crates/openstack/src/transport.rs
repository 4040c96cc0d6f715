//! Transports of requests: HTTP, or a tower service in the process.

mod http_client;
mod in_process;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

pub use http_client::{ConnectionPools, HttpTransport, Trust};
pub use in_process::InProcess;

/// Sends a request and reads the whole response.
pub trait Transport: Send + Sync + 'static {
    /// Sends `request`; fails after `timeout`.
    fn send(
        &self,
        request: http::Request<Bytes>,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>>;
}

/// A transport that sessions share.
pub type SharedTransport = Arc<dyn Transport>;

/// Why there is no response.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// The error down to its root cause ("connection refused", "unknown issuer").
    pub message: String,
    /// Whether the request certainly did not reach the server, so that repeating it is safe.
    pub never_sent: bool,
    /// Whether the timeout has passed.
    pub timed_out: bool,
}

impl TransportError {
    pub(crate) fn timed_out(after: Duration) -> Self {
        Self {
            message: format!("no answer within {} s", after.as_secs_f32()),
            never_sent: false,
            timed_out: true,
        }
    }

    /// The whole chain of causes, because the outermost ("error sending request") is too general.
    pub(crate) fn chain(error: &dyn std::error::Error) -> String {
        let mut words = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if words.last() != Some(&text) {
                words.push(text);
            }
            cause = error.source();
        }
        words.join(": ")
    }
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}
