//! Requests passed to a real kubelet: logs as response bodies, upgraded connections as bytes in both directions.
//!
//! Source of the rules and messages: `pkg/registry/core/pod/rest`, `k8s.io/apiserver/pkg/registry/generic/rest` and
//! `k8s.io/apimachinery/pkg/util/proxy` of kube-apiserver.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt as _;
use http::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, HOST, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyDataStream, BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite};

use super::{Node, Request, plain, text_answer, upgrade};
use crate::body::{self, Body};
use crate::core::Core;
use crate::error::ApiError;
use crate::kubelet::KubeletClient;

/// Maximum length of a kubelet's error message in bytes; the rest is dropped.
const LONGEST_MESSAGE: usize = 50_000;

/// Kubelet of a node.
pub(super) struct Backend<'a> {
    pub(super) client: KubeletClient,
    pub(super) node: &'a Node,
}

/// Response of a kubelet to a request for an upgrade.
pub(super) enum Begun {
    /// The upgraded connection, with the headers of the response.
    Upgraded(HeaderMap, Upgraded),
    /// The request failed: the [`Response`] is for the client.
    Refused(Response<Body>),
}

impl Backend<'_> {
    /// Sends a request on a new connection.
    ///
    /// # Errors
    /// The reason for a missing [`Response`], in Go's words.
    async fn send(
        &self,
        method: &Method,
        location: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Incoming>, String> {
        let mut request = http::Request::new(Full::new(body));
        *request.method_mut() = method.clone();
        *request.uri_mut() = location
            .parse()
            .map_err(|error: http::uri::InvalidUri| error.to_string())?;
        *request.headers_mut() = headers;
        let host =
            HeaderValue::from_str(&self.node.address()).map_err(|error| error.to_string())?;
        request.headers_mut().insert(HOST, host);
        let mut sender = self.client.dial(&self.node.host, self.node.port).await?;
        sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())
    }

    /// Log, including later lines if the location requests them.
    pub(super) async fn log(
        &self,
        core: &Arc<Core>,
        pod: &str,
        location: &str,
    ) -> Result<Response<Body>, ApiError> {
        let answer = self.send(&Method::GET, location, HeaderMap::new(), Bytes::new());
        let answer = answer.await.map_err(|why| {
            let url = format!("https://{}{location}", self.node.address());
            ApiError::new(500, "", format!("Get {url:?}: {why}"))
        })?;
        let code = answer.status().as_u16();
        if !(200..=206).contains(&code) {
            let text = message(answer.into_body()).await;
            return Err(failure(code, "pods/log", pod, &text));
        }
        Ok(plain(StatusCode::OK, streamed(core, answer.into_body())))
    }

    /// Requests an upgrade from the kubelet, with the given headers.
    pub(super) async fn begin(
        &self,
        core: &Arc<Core>,
        method: &Method,
        location: &str,
        headers: HeaderMap,
    ) -> Result<Begun, ApiError> {
        let answer = self.send(method, location, headers, Bytes::new()).await;
        let mut answer = answer.map_err(|why| unreached(&why))?;
        let code = answer.status();
        if code == StatusCode::SWITCHING_PROTOCOLS {
            let upgraded = hyper::upgrade::on(&mut answer).await;
            let upgraded = upgraded.map_err(|error| unreached(&error.to_string()))?;
            return Ok(Begun::Upgraded(
                std::mem::take(answer.headers_mut()),
                upgraded,
            ));
        }
        if code.as_u16() < 400 {
            let why = format!("invalid upgrade response: status code {}", code.as_u16());
            return Err(ApiError::new(500, "", why));
        }
        Ok(Begun::Refused(relayed(core, answer)))
    }

    /// Passes a [`Request`] for an upgrade to the kubelet, then the bytes in both directions.
    pub(super) async fn pass(
        &self,
        request: Request<'_>,
        location: &str,
    ) -> Result<Response<Body>, ApiError> {
        let headers = passed_on(request.headers);
        match self
            .begin(request.core, request.method, location, headers)
            .await?
        {
            Begun::Refused(answer) => Ok(answer),
            Begun::Upgraded(answer, kubelet) => Ok(upgrade::with(
                answer,
                request.extensions,
                async move |client| {
                    carry(client, TokioIo::new(kubelet)).await;
                },
            )),
        }
    }

    /// Passes any [`Request`] to the kubelet, and the [`Response`] to the client.
    pub(super) async fn proxy(
        &self,
        request: Request<'_>,
        location: &str,
        body: Bytes,
    ) -> Result<Response<Body>, ApiError> {
        if upgrade::is_wanted(request.headers) {
            return self.pass(request, location).await;
        }
        let headers = passed_on(request.headers);
        match self.send(request.method, location, headers, body).await {
            Ok(answer) => Ok(relayed(request.core, answer)),
            Err(why) => Ok(text_answer(
                StatusCode::SERVICE_UNAVAILABLE,
                format!("error trying to reach service: {why}"),
            )),
        }
    }
}

/// Copies bytes in both directions until both sides have closed.
pub(super) async fn carry<A, B>(mut client: A, mut kubelet: B)
where
    A: AsyncRead + AsyncWrite + Unpin,
    B: AsyncRead + AsyncWrite + Unpin,
{
    if let Err(error) = tokio::io::copy_bidirectional(&mut client, &mut kubelet).await {
        tracing::debug!(%error, "a connection to a kubelet ended");
    }
}

/// Headers for a kubelet: without the client's credentials and impersonation, and without hop-by-hop headers of the
/// client's connection.
fn passed_on(headers: &HeaderMap) -> HeaderMap {
    let mut passed = HeaderMap::new();
    for (name, value) in headers {
        let hidden = [AUTHORIZATION, HOST, CONTENT_LENGTH, TRANSFER_ENCODING].contains(name)
            || name.as_str().starts_with("impersonate-");
        if !hidden {
            passed.append(name.clone(), value.clone());
        }
    }
    passed
}

/// Headers of a request for an upgrade to SPDY.
pub(super) fn spdy_headers(client: &HeaderMap, protocols: &[&'static str]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
    for protocol in protocols {
        let name = HeaderName::from_static("x-stream-protocol-version");
        headers.append(name, HeaderValue::from_static(protocol));
    }
    if let Some(agent) = client.get(USER_AGENT) {
        headers.insert(USER_AGENT, agent.clone());
    }
    headers
}

/// [`Response`] of a kubelet for the client, without hop-by-hop headers.
fn relayed(core: &Arc<Core>, answer: Response<Incoming>) -> Response<Body> {
    let (mut parts, body) = answer.into_parts();
    for name in [CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        parts.headers.remove(name);
    }
    let mut relayed = Response::new(streamed(core, body));
    *relayed.status_mut() = parts.status;
    *relayed.headers_mut() = parts.headers;
    relayed
}

/// [`Body`] that ends with the kubelet's body, or when the server shuts down.
fn streamed(core: &Arc<Core>, body: Incoming) -> Body {
    let pieces = BodyDataStream::new(body)
        .take_while(|piece| std::future::ready(piece.is_ok()))
        .filter_map(|piece| std::future::ready(piece.ok()));
    body::stream(pieces.take_until(core.shutdown.clone().cancelled_owned()))
}

/// Start of a kubelet's error message, up to [`LONGEST_MESSAGE`].
async fn message(body: Incoming) -> String {
    let mut text = BytesMut::new();
    let mut body = Limited::new(body, LONGEST_MESSAGE);
    while let Some(Ok(frame)) = body.frame().await {
        if let Some(piece) = frame.data_ref() {
            text.extend_from_slice(piece);
        }
    }
    String::from_utf8_lossy(&text).into_owned()
}

fn unreached(why: &str) -> ApiError {
    ApiError::new(500, "", format!("error dialing backend: {why}"))
}

/// Error for a failed request to a kubelet (`GenericHttpResponseChecker`).
fn failure(code: u16, resource: &str, name: &str, text: &str) -> ApiError {
    let (reason, message) = match code {
        400 => return ApiError::bad_request(text),
        500 => return ApiError::internal(text),
        401 => (
            "Unauthorized",
            "the server has asked for the client to provide credentials".to_owned(),
        ),
        403 => ("Forbidden", text.to_owned()),
        404 => (
            "NotFound",
            "the server could not find the requested resource".to_owned(),
        ),
        503 => (
            "ServiceUnavailable",
            "the server is currently unable to handle the request".to_owned(),
        ),
        501.. => (
            "InternalError",
            format!("an error on the server ({text:?}) has prevented the request from succeeding"),
        ),
        _ => (
            "",
            format!(
                "the server responded with the status code {code} but did not return more details"
            ),
        ),
    };
    let mut error = ApiError::new(code, reason, format!("{message} ( {resource} {name})"));
    error.details = Some(Box::new(json!({"name": name, "kind": resource})));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_never_sees_the_credentials_of_a_client() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("authorization", "Bearer secret"),
            ("impersonate-user", "jane"),
            ("impersonate-extra-scopes", "view"),
            ("host", "api.example"),
            ("connection", "Upgrade"),
            ("x-stream-protocol-version", "v4.channel.k8s.io"),
        ] {
            headers.append(name, HeaderValue::from_static(value));
        }
        let passed = passed_on(&headers);
        let names: Vec<&str> = passed.keys().map(HeaderName::as_str).collect();
        assert_eq!(names, ["connection", "x-stream-protocol-version"]);
    }

    #[test]
    fn failures_of_kubelets_are_given_as_by_the_real_server() {
        for (code, text, reason, message) in [
            (400, "no logs yet", "BadRequest", "no logs yet"),
            (
                500,
                "it broke",
                "InternalError",
                "Internal error occurred: it broke",
            ),
            (
                403,
                "Forbidden (user=x)",
                "Forbidden",
                "Forbidden (user=x) ( pods/log web)",
            ),
            (
                404,
                "pod \"web\" does not exist",
                "NotFound",
                "the server could not find the requested resource ( pods/log web)",
            ),
        ] {
            let error = failure(code, "pods/log", "web", text);
            assert_eq!(
                (error.code, error.reason, error.message.as_str()),
                (code, reason, message)
            );
        }
    }
}
