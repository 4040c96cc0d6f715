//! The proxies of the process. Like the TLS provider, they are installed once, by the program.

use std::sync::OnceLock;

use reqwest::{ClientBuilder, Proxy};

type ProxyOf = dyn Fn(&str) -> Option<String> + Send + Sync;

static PROXIES: OnceLock<Box<ProxyOf>> = OnceLock::new();

/// Sends all requests to an address for which `proxy` has a proxy through that one, from now on. Without this, every
/// address is asked directly: this crate does not read the environment. The second call has no effect.
pub fn install_proxies(proxy: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
    let _ = PROXIES.set(Box::new(proxy));
}

/// A client that uses the installed proxies, and none of the environment.
pub fn through_proxies(builder: ClientBuilder) -> ClientBuilder {
    let of = |url: &reqwest::Url| PROXIES.get().and_then(|proxy| proxy(url.as_str()));
    builder.no_proxy().proxy(Proxy::custom(of))
}
