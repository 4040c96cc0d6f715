//! Transports of requests: HTTP, or a tower service in the process.

mod http_client;
mod in_process;
mod limits;
mod proxies;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;

pub use http_client::{ConnectionPools, HttpTransport, Trust, certificates_in};
pub use in_process::InProcess;
pub use limits::Limits;
pub use proxies::{install_proxies, through_proxies};

/// Sends a request and reads the whole response.
pub trait Transport: Send + Sync + 'static {
    /// Sends `request`; fails if the answer exceeds the limits.
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>>;
}

/// Transport shared by sessions.
pub type SharedTransport = Arc<dyn Transport>;

/// Reason why there is no response.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct TransportError {
    /// Error down to its root cause ("connection refused", "unknown issuer").
    pub message: String,
    /// True if the request certainly did not reach the server, so that a repetition is safe.
    pub never_sent: bool,
    /// True if the timeout has passed.
    pub timed_out: bool,
    /// True if the answer was dropped because of its size.
    pub too_large: bool,
}

impl TransportError {
    fn new(message: String) -> Self {
        Self {
            message,
            never_sent: false,
            timed_out: false,
            too_large: false,
        }
    }

    pub(crate) fn timed_out(after: Duration) -> Self {
        Self {
            timed_out: true,
            ..Self::new(format!("no answer within {} s", after.as_secs_f32()))
        }
    }

    fn too_large(limit: usize) -> Self {
        Self {
            too_large: true,
            ..Self::new(format!("the answer is larger than {} MiB", limit >> 20))
        }
    }

    /// Returns the whole chain of causes: the outermost one ("error sending request") is too general.
    pub(crate) fn chain(error: &dyn std::error::Error) -> String {
        let mut words = Vec::new();
        let mut next = Some(error);
        while let Some(error) = next {
            next = error.source();
            let text = without_number(&error.to_string());
            // Texts of layers of the client say nothing about the cause.
            let is_layer = LAYERS.iter().any(|layer| text.starts_with(layer));
            if words.last() != Some(&text) && !(is_layer && next.is_some()) {
                words.push(text);
            }
        }
        words.join(": ")
    }
}

/// Starts of errors that only name a layer of the client.
const LAYERS: [&str; 4] = [
    "error sending request",
    "client error (",
    "tcp connect error",
    "builder error",
];

/// Returns `text` without the number of the operating system's error.
fn without_number(text: &str) -> String {
    match text.split_once(" (os error ") {
        Some((words, rest)) => {
            let rest = rest.split_once(')').map_or("", |(_, rest)| rest);
            format!("{words}{rest}")
        }
        None => text.to_owned(),
    }
}

impl fmt::Debug for dyn Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}
