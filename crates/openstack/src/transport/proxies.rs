//! Proxies of the process, installed once by the program, like the TLS provider.

use std::sync::OnceLock;

use reqwest::{ClientBuilder, Proxy};

type ProxyOf = dyn Fn(&str) -> Option<String> + Send + Sync;

static PROXIES: OnceLock<Box<ProxyOf>> = OnceLock::new();

/// Sends all later requests through the proxy that `proxy` returns for an address. By default, every address is asked
/// directly: this crate does not read the environment. A second call has no effect.
pub fn install_proxies(proxy: impl Fn(&str) -> Option<String> + Send + Sync + 'static) {
    let _ = PROXIES.set(Box::new(proxy));
}

/// Makes a client use the installed proxies, and none of the environment.
pub fn through_proxies(builder: ClientBuilder) -> ClientBuilder {
    let of = |url: &reqwest::Url| PROXIES.get().and_then(|proxy| proxy(url.as_str()));
    builder.no_proxy().proxy(Proxy::custom(of))
}
