//! Clients with a User-Agent and a field manager, and clients that do not wait for long.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::{HeaderValue, UPGRADE, USER_AGENT};
use http::{Method, Request, Uri};
use hyper_rustls::HttpsConnector;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

/// The numbers of requests that were sent. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Requests {
    all: Arc<AtomicU64>,
    watches: Arc<AtomicU64>,
    writes: Arc<AtomicU64>,
}

impl Requests {
    /// All requests: reads, watches, writes and forwarded ports.
    pub fn all(&self) -> u64 {
        self.all.load(Ordering::Relaxed)
    }

    /// Those that watch. The server ends a watch after some minutes, and it begins again.
    pub fn watches(&self) -> u64 {
        self.watches.load(Ordering::Relaxed)
    }

    /// Those that write objects, dry runs apart.
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
    let (inner, name) = (client.clone(), Name::new(name));
    let service =
        tower::service_fn(move |request: Request<Body>| sent(inner.clone(), name.set(request)));
    Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
}

/// The User-Agent and the field manager of requests that set none.
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

/// A client that sends all its requests, watches among them, over one connection, if the API server speaks HTTP/2, and whose
/// requests fail unless an answer begins within `limit` (see [`answered_within`]). They have `name` (see [`named`]): each
/// client has a task and a queue of its own, and there may be a thousand of these.
///
/// One of HTTP/1.1 needs a connection with TLS of its own for each watch, and each has its buffers at both ends
/// (docs/adr/0049). A request that upgrades its connection, such as that of a forwarded port, gets one of HTTP/1.1 of its
/// own. A peer that is silent while requests are open is asked for a sign of life. Timeouts of reads and writes, which
/// `config` may ask for, are those of connections of HTTP/1.1; it is not asked for repeated requests.
///
/// # Errors
/// The certificates or the credentials of `config` cannot be used.
pub fn multiplexed(config: Config, name: &str, limit: Duration) -> Result<Client, kube::Error> {
    // What stands between decides which protocol is spoken.
    if config.proxy_url.is_some() || config.tls_server_name.is_some() {
        let client = answered_within(&Client::try_from(config)?, limit);
        return Ok(named(&client, name));
    }
    // Both have the same credentials and the same authorities, in memory once.
    let of_upgrades = config.rustls_client_config()?;
    let mut of_all = of_upgrades.clone();
    of_all.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let mut upgrading = TimeoutConnector::new(connector(&config, of_upgrades));
    upgrading.set_connect_timeout(config.connect_timeout);
    upgrading.set_read_timeout(config.read_timeout);
    upgrading.set_write_timeout(config.write_timeout);
    let upgrading = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .pool_max_idle_per_host(0)
        .build::<_, Body>(upgrading);
    let shared = hyper_util::client::legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(SILENCE)
        .http2_keep_alive_timeout(SIGN_OF_LIFE)
        .build::<_, Body>(TimeoutConnector::new(connector(&config, of_all)));
    let route = tower::service_fn(move |request: Request<Body>| {
        let upgrades = request.headers().contains_key(UPGRADE);
        let client = if upgrades { &upgrading } else { &shared };
        client.request(request)
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(route);
    let name = Name::new(name);
    let service = ServiceBuilder::new()
        .map_request(move |request| name.set(request))
        .map_future(move |answer| within(limit, answer))
        .service(service);
    Ok(Client::new(service, config.default_namespace))
}

/// Connections with TLS to the API server of `config`.
fn connector(config: &Config, tls: rustls::ClientConfig) -> HttpsConnector<HttpConnector> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(SILENCE));
    HttpsConnector::from((tcp, tls))
}

/// `answer`, or an error if there is none within `limit`.
async fn within<T, E: From<io::Error>>(
    limit: Duration,
    answer: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let answer = tokio::time::timeout(limit, answer).await;
    answer.unwrap_or_else(|_| {
        let why = format!("the API server did not answer within {} s", limit.as_secs());
        Err(io::Error::new(io::ErrorKind::TimedOut, why).into())
    })
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
        within(limit, async move {
            client.send(request).await.map_err(BoxError::from)
        })
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
