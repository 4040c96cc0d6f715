//! An Octavia before API version 2.26, which gives a load balancer one address.

use bytes::Bytes;
use futures::future::BoxFuture;
use futures::{FutureExt, TryFutureExt};
use openstack::transport::{Limits, SharedTransport, Transport, TransportError};
use serde_json::Value;

/// The simulated Octavia as one of version 2.25 is seen.
pub(crate) struct Older(pub(crate) SharedTransport);

impl Transport for Older {
    fn send(
        &self,
        request: http::Request<Bytes>,
        limits: Limits,
    ) -> BoxFuture<'static, Result<http::Response<Bytes>, TransportError>> {
        let asks = String::from_utf8_lossy(request.body()).contains("additional_vips");
        assert!(!asks, "an older Octavia rejects additional_vips");
        let path = request.uri().path().trim_end_matches('/').to_owned();
        let answer = self.0.send(request, limits);
        match path.as_str() {
            "/load-balancer" => answer.map_ok(without_newest).boxed(),
            _ => answer,
        }
    }
}

fn without_newest(answer: http::Response<Bytes>) -> http::Response<Bytes> {
    let (mut parts, body) = answer.into_parts();
    let mut document: Value = serde_json::from_slice(&body).unwrap();
    let versions = document["versions"].as_array_mut().unwrap();
    versions.retain(|version| version["id"] != "v2.26");
    parts.headers.remove("content-length");
    http::Response::from_parts(parts, Bytes::from(document.to_string()))
}
