//! Requests to a tower service in the process: an axum `Router`, the simulator.

use std::convert::Infallible;

use axum::body::{Body, HttpBody as _};
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use tower::{Service, ServiceExt};

use super::limits::More;
use super::{Limits, Transport, TransportError};

/// Transport that calls a tower service.
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
        limits: Limits,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>> {
        let service = self.0.lock().clone();
        let answer = async move {
            let Ok(response) = service.oneshot(request.map(Body::from)).await;
            let (parts, mut pieces) = response.into_parts();
            let mut body = limits.body(parts.status, pieces.size_hint().exact())?;
            while let Some(frame) = pieces.frame().await {
                let frame =
                    frame.map_err(|error| TransportError::new(TransportError::chain(&error)))?;
                let piece = frame.into_data().unwrap_or_default();
                if body.add(&piece)? == More::Unwanted {
                    break;
                }
            }
            Ok(http::Response::from_parts(parts, body.end()))
        };
        async move {
            match tokio::time::timeout(limits.time, answer).await {
                Ok(result) => result,
                Err(_) => Err(TransportError::timed_out(limits.time)),
            }
        }
        .boxed()
    }
}
