//! Clients with a User-Agent and a field manager, and clients that do not wait for long.

use std::io;
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use kube::Client;
use kube::client::Body;

/// A client like `client` whose requests have `name` as User-Agent, and as field manager of writes.
///
/// A request that sets these itself keeps them. Without a field manager, `managedFields` has `unknown`.
pub fn named(client: &Client, name: &str) -> Client {
    let (inner, manager) = (client.clone(), name.to_owned());
    let agent = format!("{name}/{}", env!("CARGO_PKG_VERSION"));
    let agent = HeaderValue::try_from(agent).unwrap_or(HeaderValue::from_static("ferrostack"));
    let service = tower::service_fn(move |mut request: Request<Body>| {
        let client = inner.clone();
        let headers = request.headers_mut();
        headers.entry(USER_AGENT).or_insert_with(|| agent.clone());
        if let Some(uri) = with_manager(request.method(), request.uri(), &manager) {
            *request.uri_mut() = uri;
        }
        async move { client.send(request).await }
    });
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// A client like `client` whose requests fail unless an answer begins within `limit`.
///
/// Bodies may take longer: that of a watch ends only with the watch.
pub fn answered_within(client: &Client, limit: Duration) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = inner.clone();
        async move {
            let answer = tokio::time::timeout(limit, client.send(request)).await;
            answer.unwrap_or_else(|_| {
                let why = format!("the API server did not answer within {} s", limit.as_secs());
                let why = io::Error::new(io::ErrorKind::TimedOut, why);
                Err(kube::Error::Service(Box::new(why)))
            })
        }
    });
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// `uri` with a field manager, if the request accepts one and has none.
fn with_manager(method: &Method, uri: &Uri, manager: &str) -> Option<Uri> {
    let writes = [Method::POST, Method::PUT, Method::PATCH].contains(method);
    let query = uri.query().unwrap_or_default();
    let is_named = |pair: &str| pair.starts_with("fieldManager=") && pair != "fieldManager=";
    if !writes || query.split('&').any(is_named) {
        return None;
    }
    let kept: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.is_empty() && !pair.starts_with("fieldManager="))
        .collect();
    let separator = if kept.is_empty() { "" } else { "&" };
    let (path, kept) = (uri.path(), kept.join("&"));
    let path = format!("{path}?{kept}{separator}fieldManager={manager}");
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

#[cfg(test)]
mod tests;
