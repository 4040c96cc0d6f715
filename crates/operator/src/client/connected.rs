//! Clients from a configuration: connections, credentials, proxies, limits.

use std::sync::Arc;
use std::time::Duration;

use http::header::UPGRADE;
use http::{Request, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ConfigExt};
use kube::config::{KubeConfigOptions, Kubeconfig, KubeconfigError};
use kube::{Client, Config};
use rustls::ClientConfig;
use tower::{BoxError, ServiceBuilder};

use super::bounded::{self, Limits};
use super::route::{NOT_A_PROXY, Route};
use super::{Name, within};
use crate::proxy::Proxies;

/// Longest silence of a connection with open requests before a keep-alive ping is sent, and the time the peer has to
/// answer the ping. Go's clients of Kubernetes have the same values.
const SILENCE: Duration = Duration::from_secs(30);
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);

/// Properties of a client, besides the configuration of the API server.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of requests that have no other one (see [`named`](super::named)).
    pub name: String,
    /// Limits on answers.
    pub limits: Limits,
    /// True if all requests share one connection, where the API server speaks HTTP/2.
    ///
    /// With HTTP/1.1, each watch needs a TLS connection of its own, with buffers at both ends (docs/adr/0049).
    pub shared: bool,
}

/// Reason why there is no client. The text has neither credentials nor the login of a proxy.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// Unusable certificates or credentials of a configuration.
    #[error(transparent)]
    Credentials(#[from] kube::Error),
    /// Kubeconfig without a needed part, or with an unreadable one.
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    /// Unusable proxy of a kubeconfig or of the environment.
    #[error("the proxy {host} cannot be used: {NOT_A_PROXY}")]
    Proxy {
        /// Host and port of the proxy.
        host: String,
    },
    /// Invalid `tls-server-name` of a kubeconfig.
    #[error("tls-server-name is not the name of a host")]
    ServerName,
}

/// Returns host and port of an address, without a login.
pub fn host(address: &Uri) -> String {
    let authority = address.authority().map(http::uri::Authority::as_str);
    let authority = authority.unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    api::printable::bounded(host, 200).into_owned()
}

/// Returns the configuration for the chosen context of a kubeconfig. Requests go through the `proxy-url` of the cluster
/// in the kubeconfig, or else through one of `proxies`; the environment is not read.
///
/// # Errors
/// The kubeconfig refers to a missing entry or an unreadable file.
pub async fn configured(
    mut kubeconfig: Kubeconfig,
    options: &KubeConfigOptions,
    proxies: &Proxies,
) -> Result<Config, Unusable> {
    let named = proxy_of(&kubeconfig, options);
    for cluster in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut cluster.cluster {
            // Without one, kube asks the environment of the process.
            cluster.proxy_url = Some("http://unused.invalid".to_owned());
        }
    }
    let mut config = Config::from_custom_kubeconfig(kubeconfig, options).await?;
    config.proxy_url = match named {
        Some(named) => {
            let parsed = named.parse::<Uri>().ok();
            let parsed = parsed.filter(|proxy| proxy.scheme_str().is_some());
            Some(parsed.ok_or_else(|| unusable(&named))?)
        }
        None => proxies.to(&config.cluster_url).cloned(),
    };
    Ok(config)
}

fn unusable(proxy: &str) -> Unusable {
    // The address may have a login before the last `@`.
    let host = proxy.rsplit_once('@').map_or(proxy, |(_, host)| host);
    let host = api::printable::line(host);
    Unusable::Proxy {
        host: api::printable::bounded(&host, 200).into_owned(),
    }
}

/// Returns the `proxy-url` of the cluster in use.
fn proxy_of(kubeconfig: &Kubeconfig, options: &KubeConfigOptions) -> Option<String> {
    let named = options
        .context
        .as_ref()
        .or(kubeconfig.current_context.as_ref());
    let contexts = || kubeconfig.contexts.iter();
    let of_context = || {
        let context = contexts()
            .find(|it| Some(&it.name) == named)?
            .context
            .as_ref()?;
        Some(&context.cluster)
    };
    let name = options.cluster.as_ref().or_else(of_context)?;
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|it| it.name == *name)?.cluster.as_ref()?;
    cluster.proxy_url.clone().filter(|url| !url.is_empty())
}

/// Returns a client of the API server of `config`, with limited answers (see [`Limits`]).
///
/// A request with an upgrade of the connection, such as a forwarded port, gets an HTTP/1.1 connection of its own. A
/// peer that is silent while requests are open is sent a keep-alive ping. Timeouts of reads and writes in `config`
/// apply to HTTP/1.1 connections only; the retry settings of `config` are ignored.
///
/// # Errors
/// The certificates, the credentials or the proxy of `config` cannot be used.
pub fn connected(config: Config, settings: &Settings) -> Result<Client, Unusable> {
    let connections = || hyper_util::client::legacy::Client::builder(TokioExecutor::new());
    // Both have the same credentials and the same authorities, in memory once.
    let tls = config.rustls_client_config()?;
    let mut single = TimeoutConnector::new(connector(&config, tls.clone(), false)?);
    single.set_connect_timeout(config.connect_timeout);
    single.set_read_timeout(config.read_timeout);
    single.set_write_timeout(config.write_timeout);
    let (single, shared) = match settings.shared {
        true => {
            let of_all = TimeoutConnector::new(connector(&config, tls, true)?);
            let mut builder = connections();
            builder
                .timer(TokioTimer::new())
                .http2_keep_alive_interval(SILENCE)
                .http2_keep_alive_timeout(SIGN_OF_LIFE);
            let single = connections()
                .pool_max_idle_per_host(0)
                .build::<_, Body>(single);
            (single, Some(builder.build::<_, Body>(of_all)))
        }
        false => (connections().build::<_, Body>(single), None),
    };
    let route = tower::service_fn(move |request: Request<Body>| {
        let upgrades = request.headers().contains_key(UPGRADE);
        match &shared {
            Some(shared) if !upgrades => shared.request(request),
            _ => single.request(request),
        }
    });
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(route);
    let server: Arc<str> = host(&config.cluster_url).into();
    let (name, limits) = (Name::new(&settings.name), settings.limits);
    let service = ServiceBuilder::new()
        .layer(bounded::layer(server.clone(), limits))
        .map_request(move |request| name.set(request))
        .map_future(move |answer| {
            let server = Arc::clone(&server);
            async move { within(&server, limits.answer, answer).await }
        })
        .service(service);
    Ok(Client::new(service, config.default_namespace))
}

/// Returns a connector to the API server of `config`; `all` allows both HTTP/1.1 and HTTP/2.
fn connector(
    config: &Config,
    tls: ClientConfig,
    all: bool,
) -> Result<HttpsConnector<Route>, Unusable> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(SILENCE));
    let route = match &config.proxy_url {
        None => Route::Direct(tcp),
        Some(proxy) => {
            let of_proxy = || HttpsConnector::from((tcp.clone(), tls.clone()));
            Route::through(proxy, tcp.clone(), of_proxy)
                .ok_or_else(|| Unusable::Proxy { host: host(proxy) })?
        }
    };
    let mut builder = HttpsConnectorBuilder::new()
        .with_tls_config(tls)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into();
        let name = name.map_err(|_| Unusable::ServerName)?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match all {
        true => builder.enable_all_versions().wrap_connector(route),
        false => builder.enable_http1().wrap_connector(route),
    })
}

#[cfg(test)]
mod tests;
