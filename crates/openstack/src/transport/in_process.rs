//! Requests to a tower service in the process: an axum `Router`, the simulator.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tower::{Service, ServiceExt};

use super::{Transport, TransportError};

/// A transport that calls a tower service.
#[derive(Debug)]
pub struct InProcess<S>(Mutex<S>);

impl<S> InProcess<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    /// Sends all requests to `service`, whatever the host in the URL.
    pub fn new(service: S) -> Self {
        Self(Mutex::new(service))
    }
}

impl<S> Transport for InProcess<S>
where
    S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    fn send(
        &self,
        request: http::Request<Bytes>,
        timeout: Duration,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>> {
        let service = self.0.lock().clone();
        let answer = async move {
            let Ok(response) = service.oneshot(request.map(Body::from)).await;
            let (parts, body) = response.into_parts();
            let body = body.collect().await.map_err(|error| TransportError {
                message: TransportError::chain(&error),
                never_sent: false,
                timed_out: false,
            })?;
            Ok(http::Response::from_parts(parts, body.to_bytes()))
        };
        async move {
            match tokio::time::timeout(timeout, answer).await {
                Ok(result) => result,
                Err(_) => Err(TransportError::timed_out(timeout)),
            }
        }
        .boxed()
    }
}
