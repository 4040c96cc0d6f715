//! Clients with a User-Agent and a field manager, and clients that do not wait for long.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::future::Either;
use http::header::{HeaderValue, UPGRADE, USER_AGENT};
use http::{Method, Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::ServiceBuilder;

/// The numbers of requests that were sent. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    all: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Requests {
    /// All requests: reads, watches, writes and forwarded ports.
    pub fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Those that write objects, dry runs apart.
    pub fn writes(&self) -> u64 {
        self.writes.load(Ordering::Relaxed)
    }

    fn add(&self, request: &Request<Body>) {
        self.all.fetch_add(1, Ordering::Relaxed);
        let query = request.uri().query().unwrap_or_default();
        let is_dry = query.split('&').any(|pair| pair.starts_with("dryRun="));
        if request.method() != Method::GET && !is_dry {
            self.writes.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A client like `client` whose requests are counted.
pub fn counted(client: &Client, requests: &Requests) -> Client {
    let (inner, requests) = (client.clone(), requests.clone());
    let service = tower::service_fn(move |request: Request<Body>| {
        requests.add(&request);
        sent(inner.clone(), request)
    });
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// The longest silence of a connection with open requests before the peer is asked for a sign of life, and how long it
/// may take (those of Go's clients of Kubernetes).
const SILENCE: Duration = Duration::from_secs(30);
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

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

/// A client that sends all its requests, watches among them, over one connection, if the API server speaks HTTP/2.
///
/// One of HTTP/1.1 needs a connection with TLS of its own for each watch, and each has its buffers at both ends
/// (docs/adr/0049). A request that upgrades its connection, such as that of a forwarded port, gets one of HTTP/1.1 of its
/// own. A peer that is silent while requests are open is asked for a sign of life. Timeouts of reads and writes, and
/// repeated requests, which `config` may ask for, are those of connections of HTTP/1.1.
///
/// # Errors
/// The certificates or the credentials of `config` cannot be used.
pub fn multiplexed(config: Config) -> Result<Client, kube::Error> {
    let upgrading = Client::try_from(config.clone())?;
    // What stands between decides which protocol is spoken.
    if config.proxy_url.is_some() || config.tls_server_name.is_some() {
        return Ok(upgrading);
    }
    let mut tls = config.rustls_client_config()?;
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(SILENCE));
    let shared = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(SILENCE)
        .http2_keep_alive_timeout(SIGN_OF_LIFE)
        .build::<_, Body>(HttpsConnector::from((tcp, tls)));
    let shared = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(tower::BoxError::from)
        .service(shared);
    let shared = ClientBuilder::new(shared, config.default_namespace.clone()).build();
    let (namespace, until) = (
        upgrading.default_namespace().to_owned(),
        *upgrading.valid_until(),
    );
    let service = tower::service_fn(move |request: Request<Body>| {
        match request.headers().contains_key(UPGRADE) {
            true => Either::Left(sent(upgrading.clone(), request)),
            false => Either::Right(sent(shared.clone(), request)),
        }
    });
    Ok(Client::new(service, namespace).with_valid_until(until))
}

async fn sent(client: Client, request: Request<Body>) -> kube::Result<http::Response<Body>> {
    client.send(request).await
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
