//! Clients of API servers: with a User-Agent and a field manager, through proxies, with limits on time and size.

mod api;
mod bounded;
mod connected;
mod objects;
mod raw;
mod route;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use kube::Client;
use kube::client::Body;
use tower::BoxError;

pub use self::api::Api;
pub use bounded::{Limits, Refused};
pub use connected::{Settings, Unusable, configured, connected, host};

pub(crate) use raw::Raw;

/// Counters of the requests that were sent. Clones share the counters.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    all: Arc<AtomicU64>,
    watches: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Requests {
    /// Returns the number of all requests: reads, watches, writes and forwarded ports.
    pub fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Returns the number of watch requests. The server ends a watch after some minutes, and the client begins another.
    pub fn watches(&self) -> u64 {
        self.watches.load(Ordering::Relaxed)
    }

    /// Requests that write objects, dry runs apart.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn add(&self, request: &Request<Body>) {
        self.all.fetch_add(1, Ordering::Relaxed);
        let query = request.uri().query().unwrap_or_default();
        if query.split('&').any(|pair| pair == "watch=true") {
            self.watches.fetch_add(1, Ordering::Relaxed);
        }
        let is_dry = query.split('&').any(|pair| pair.starts_with("dryRun="));
        if request.method() != Method::GET && !is_dry {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Returns a client like `client` whose requests are counted in [`Requests`].
pub fn counted(client: &Client, requests: &Requests) -> Client {
    let (inner, requests) = (client.clone(), requests.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        requests.add(&request);
        sent(inner.clone(), request)
    });
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// Returns a client like `client` whose requests have `name` as User-Agent, and writes `name` as field manager.
///
/// A request with a User-Agent or a field manager of its own keeps both. Without a field manager, `managedFields` has
/// `unknown`.
pub fn named(client: &Client, name: &str) -> Client {
    let (inner, name) = (client.clone(), Name::new(name));
    let service =
        tower::service_fn(move |request: Request<Body>| sent(inner.clone(), name.set(request)));
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// User-Agent and field manager of requests that set none.
#[derive(Clone)]
struct Name {
    agent: HeaderValue,
    manager: String,
}

impl Name {
    fn new(name: &str) -> Self {
        let agent = format!("{name}/{}", env!("CARGO_PKG_VERSION"));
        let agent = HeaderValue::try_from(agent);
        Self {
            agent: agent.unwrap_or(HeaderValue::from_static("ferrostack")),
            manager: name.to_owned(),
        }
    }

    fn set(&self, mut request: Request<Body>) -> Request<Body> {
        let headers = request.headers_mut();
        headers
            .entry(USER_AGENT)
            .or_insert_with(|| self.agent.clone());
        if let Some(uri) = with_manager(request.method(), request.uri(), &self.manager) {
            *request.uri_mut() = uri;
        }
        request
    }
}

/// Waits for `answer`. Fails if `server` does not answer within `limit`.
async fn within<T, E>(
    server: &str,
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, BoxError>
where
    E: Into<BoxError>,
{
    match tokio::time::timeout(limit, answer).await {
        Ok(answer) => answer.map_err(Into::into),
        Err(_) => Err(Refused::silent(server, limit).into()),
    }
}

async fn sent(client: Client, request: Request<Body>) -> kube::Result<http::Response<Body>> {
    client.send(request).await
}

/// Returns a client like `client` whose requests fail unless an answer begins within `limit`.
///
/// Bodies may take longer: the body of a watch ends only with the watch.
pub fn answered_within(client: &Client, limit: Duration) -> Client {
    let inner = client.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let client = inner.clone();
        async move { within("the API server", limit, client.send(request)).await }
    });
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// Returns `uri` with a field manager, if the request accepts one and has none.
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
