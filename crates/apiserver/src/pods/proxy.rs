//! `nodes/NAME/proxy`: requests passed unchanged to a node's kubelet, such as `stats/summary`.

use bytes::Bytes;
use http::header::LOCATION;
use http::{HeaderValue, Response, StatusCode, Uri};

use super::{Request, text_answer};
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::request::path::Path;

/// True for the path of a node's proxy.
pub(crate) fn is_for_node(path: &Path) -> bool {
    (path.group.as_str(), path.version.as_str()) == ("", "v1")
        && path.plural == "nodes"
        && path.namespace.is_none()
        && path.name.is_some()
        && path.subresource.as_deref() == Some("proxy")
}

/// Answers a [`Request`] for a node's proxy. `raw` is the requested URI, before decoding.
pub(super) async fn answer(
    request: Request<'_>,
    body: Bytes,
    raw: &Uri,
) -> Result<Response<Body>, ApiError> {
    let name = request.name();
    // Ports and schemes other than the kubelet's (`https:NAME:PORT`) are not supported.
    let node = request
        .stored("nodes", "", name)
        .ok_or_else(|| ApiError::not_found("", "nodes", name))?;
    let node = request.listening(node)?;
    // `/api/v1/nodes/NAME/proxy/…`.
    let Some(rest) = raw.path().splitn(7, '/').nth(6) else {
        let slash = format!("{}/", raw.path());
        let slash = HeaderValue::from_str(&slash).map_err(ApiError::internal)?;
        let mut response = Response::new(body::full(""));
        *response.status_mut() = StatusCode::MOVED_PERMANENTLY;
        response.headers_mut().insert(LOCATION, slash);
        return Ok(response);
    };
    let mut location = format!("/{rest}");
    if let Some(query) = raw.query() {
        location.push('?');
        location.push_str(query);
    }
    match request.backend(&node) {
        Some(kubelet) => kubelet.proxy(request, &location, body).await,
        None => Ok(text_answer(
            StatusCode::SERVICE_UNAVAILABLE,
            format!("error trying to reach service: {}", node.not_reached()),
        )),
    }
}
