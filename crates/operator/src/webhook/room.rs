//! Limits on the number and the size of concurrent reviews: anybody who reaches the port can send some.

use std::sync::Arc;
use std::time::Duration;

use axum::body::HttpBody as _;
use axum::extract::Request;
use axum::response::{IntoResponse as _, Response};
use futures::StreamExt as _;
use http::StatusCode;
use http::header::RETRY_AFTER;
use serde_json::Value;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Maximum size of a review in bytes. An AdmissionReview has two objects of at most 1.5 MiB each in etcd; API servers
/// convert one object at a time.
pub(super) const LARGEST: usize = 10 << 20;
/// Maximum size of a small review in bytes. Reviews of our kinds are small.
pub(super) const SMALL: usize = 64 << 10;
/// Maximum number of concurrent reviews, and of those larger than [`SMALL`].
const AT_A_TIME: usize = 64;
const LARGE_AT_A_TIME: usize = 2;
/// Time for a review to arrive, including the wait for other reviews larger than [`SMALL`]. API servers wait for an
/// answer for 10 s.
const ARRIVES: Duration = Duration::from_secs(8);
/// Time that a review waits for others.
const WAITS: Duration = Duration::from_secs(4);

/// Semaphores for concurrent reviews.
pub(super) struct Room {
    all: Arc<Semaphore>,
    large: Arc<Semaphore>,
}

impl Default for Room {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(AT_A_TIME)),
            large: Arc::new(Semaphore::new(LARGE_AT_A_TIME)),
        }
    }
}

/// Review that occupies its room until dropped.
pub(super) struct Review {
    body: Value,
    _room: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

impl Review {
    pub(super) fn body(&self) -> &Value {
        &self.body
    }
}

impl Room {
    /// Reads a review; the error is the answer to send.
    pub(super) async fn read(&self, request: Request) -> Result<Review, Response> {
        let room = Arc::clone(&self.all).try_acquire_owned();
        let room = room.map_err(|_| busy())?;
        let body = request.into_body();
        if body.size_hint().lower() > LARGEST as u64 {
            return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
        }
        let end = tokio::time::Instant::now() + ARRIVES;
        let (mut pieces, mut text, mut large) = (body.into_data_stream(), Vec::new(), None);
        loop {
            let piece = tokio::time::timeout_at(end, pieces.next()).await;
            let piece = piece.map_err(|_| StatusCode::REQUEST_TIMEOUT.into_response())?;
            let Some(piece) = piece else { break };
            let piece = piece.map_err(|_| StatusCode::BAD_REQUEST.into_response())?;
            let length = text.len() + piece.len();
            if length > LARGEST {
                return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
            }
            if length > SMALL && large.is_none() {
                let waiting = Arc::clone(&self.large).acquire_owned();
                let waited = tokio::time::timeout(WAITS, waiting).await;
                large = Some(waited.ok().and_then(Result::ok).ok_or_else(busy)?);
            }
            text.extend_from_slice(&piece);
        }
        let body = serde_json::from_slice(&text);
        let body = body.map_err(|_| StatusCode::BAD_REQUEST.into_response())?;
        Ok(Review {
            body,
            _room: (room, large),
        })
    }
}

fn busy() -> Response {
    (StatusCode::TOO_MANY_REQUESTS, [(RETRY_AFTER, "1")]).into_response()
}

#[cfg(test)]
mod tests;
