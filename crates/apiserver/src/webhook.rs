//! Calls of webhooks over HTTPS, at a URL or a Service, with the errors of client-go.
//!
//! Each call has its own connection: the endpoints of a Service share the load, and hooks are called too seldom for
//! keep-alive to pay off. Source of the rules: `k8s.io/apiserver/pkg/util/webhook`.

mod check;
pub(crate) mod configuration;
mod service;
mod target;
mod tls;

use std::time::Duration;

use apimachinery::schema::go_quote;
use bytes::Bytes;
use http::{Request, Response, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;

use crate::store::Store;

pub(crate) use check::check_client_config;
pub(crate) use target::Target;
pub(crate) use tls::Authorities;

/// Maximum length of an answer in bytes.
const ANSWER: usize = 16 * 1024 * 1024;

/// A failed call, with the message of client-go.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct CallError(String);

/// Calls of webhooks: where Services are, and the TLS settings.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) store: &'a Store,
    pub(crate) authorities: &'a Authorities,
}

/// Posts a review and returns the review of the answer.
pub(crate) async fn post(
    caller: Caller<'_>,
    target: &Target,
    review: &Value,
    timeout: Duration,
) -> Result<Value, CallError> {
    let url = target.url(timeout);
    let named = |why: String| CallError(format!("Post {}: {why}", go_quote(&url)));
    let exchanged = tokio::time::timeout(timeout, exchange(caller, target, &url, review));
    let response = match exchanged.await {
        Err(_) => return Err(named("context deadline exceeded".to_owned())),
        Ok(Err(why)) => return Err(named(why)),
        Ok(Ok(response)) => response,
    };
    let code = response.status().as_u16();
    let body = response.into_body();
    if !(200..300).contains(&code) {
        return Err(CallError(refusal(code, &body)));
    }
    serde_json::from_slice(&body).map_err(|error| {
        CallError(format!(
            "couldn't get version/kind; json parse error: {error}"
        ))
    })
}

async fn exchange(
    caller: Caller<'_>,
    target: &Target,
    url: &str,
    review: &Value,
) -> Result<Response<Bytes>, String> {
    let place = target.place(caller.store)?;
    let stream = connect(&place.host, place.port).await?;
    let config = caller.authorities.config(&target.ca)?;
    let stream = tls::handshake(config, &place.name, stream).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let path = url
        .strip_prefix("https://")
        .and_then(|rest| rest.find('/').map(|at| &rest[at..]));
    let request = Request::post(path.unwrap_or("/"))
        .header(header::HOST, &place.authority)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::ACCEPT, "application/json, */*")
        .header(header::USER_AGENT, "kube-apiserver-admission")
        .body(Full::new(Bytes::from(review.to_string())))
        .map_err(|error| error.to_string())?;
    let answered = async {
        let response = sender.send_request(request).await;
        let (head, body) = response.map_err(|error| broken(&error))?.into_parts();
        let body = Limited::new(body, ANSWER).collect().await;
        let body = body.map_err(|error| error.to_string())?.to_bytes();
        Ok(Response::from_parts(head, body))
    };
    tokio::pin!(connection);
    tokio::pin!(answered);
    // The driver of the connection may end together with the answer.
    tokio::select! {
        answer = &mut answered => answer,
        _ = &mut connection => answered.await,
    }
}

async fn connect(host: &str, port: u16) -> Result<TcpStream, String> {
    let addresses: Vec<_> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|_| format!("dial tcp: lookup {host}: no such host"))?
        .collect();
    let mut last = format!("dial tcp: lookup {host}: no such host");
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Disables Nagle's algorithm, which delays small requests.
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => last = format!("dial tcp {address}: connect: {}", plain(&error)),
        }
    }
    Err(last)
}

/// I/O error in Go's format.
fn plain(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        std::io::ErrorKind::HostUnreachable => "no route to host".to_owned(),
        std::io::ErrorKind::NetworkUnreachable => "network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

fn broken(error: &hyper::Error) -> String {
    if error.is_incomplete_message() || error.is_closed() || error.is_canceled() {
        "EOF".to_owned()
    } else {
        error.to_string()
    }
}

/// Answer without a success code, in the format of client-go (`NewGenericServerResponse`).
fn refusal(code: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let text = text.trim();
    // A `Status` contains the message.
    if let Ok(status) = serde_json::from_str::<Value>(text)
        && status["kind"] == "Status"
        && let Some(message) = status["message"].as_str()
    {
        return message.to_owned();
    }
    let message = if text.is_empty() { "unknown" } else { text };
    match code {
        400 => "the server rejected our request for an unknown reason".to_owned(),
        401 => "the server has asked for the client to provide credentials".to_owned(),
        403 => message.to_owned(),
        404 => "the server could not find the requested resource".to_owned(),
        405 => "the server does not allow this method on the requested resource".to_owned(),
        409 => "the server reported a conflict".to_owned(),
        422 => "the server rejected our request due to an error in our request".to_owned(),
        429 => "the server has received too many requests and has asked us to try again later"
            .to_owned(),
        503 => "the server is currently unable to handle the request".to_owned(),
        504 => "the server was unable to return a response in the time allotted, but may still be processing the request".to_owned(),
        code if code >= 500 => format!(
            "an error on the server ({}) has prevented the request from succeeding",
            go_quote(message)
        ),
        code => format!(
            "the server responded with the status code {code} but did not return more information"
        ),
    }
}

#[cfg(test)]
pub(crate) mod tests;
