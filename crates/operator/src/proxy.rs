//! Proxies for requests, by the variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.
//!
//! The rules are those of Go's programs, kubectl among them. A lower-case variable counts where the upper-case one is
//! not set. Requests to loopback addresses use no proxy. An entry of `NO_PROXY` is an address, a network, a name (with
//! all names below it), `.name` or `*.name` (the names below alone), or `*`; each but a network may have a port.
//! Nothing here reads the environment.

use std::fmt;
use std::net::IpAddr;

use http::Uri;

/// Proxies for requests to `http` and `https` addresses, and the hosts without a proxy.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Option<Uri>,
    https: Option<Uri>,
    direct: Vec<Direct>,
}

/// Hosts that are requested directly.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Direct {
    Everything,
    Network(IpAddr, u8),
    Address(IpAddr, Option<String>),
    Names {
        /// Suffix of the names, with a leading dot.
        below: String,
        itself: bool,
        port: Option<String>,
    },
}

impl Proxies {
    /// Returns the proxies that variables name. Invalid proxy addresses count as unset, as with Go's programs.
    pub fn from_variables<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let either = |upper: &str, lower: &str| {
            let set = |name: &str| variable(name).filter(|value| !value.is_empty());
            set(upper).or_else(|| set(lower))
        };
        // In a CGI program, `HTTP_PROXY` is the `Proxy` header of the request, so the client could choose the proxy.
        let of_server = variable("REQUEST_METHOD").is_some_and(|method| !method.is_empty());
        let http = either("HTTP_PROXY", "http_proxy").filter(|_| !of_server);
        let entries = either("NO_PROXY", "no_proxy").unwrap_or_default();
        Self {
            http: http.and_then(proxy),
            https: either("HTTPS_PROXY", "https_proxy").and_then(proxy),
            direct: entries.split(',').filter_map(Direct::parse).collect(),
        }
    }

    /// As [`of`](Self::from_variables), with `ALL_PROXY` for requests for which no other variable names a proxy, as with clients of
    /// OpenStack.
    pub fn of_clouds<'a>(variable: impl Fn(&str) -> Option<&'a str>) -> Self {
        let mut proxies = Self::from_variables(&variable);
        let all = ["ALL_PROXY", "all_proxy"].into_iter();
        let all = all.filter_map(&variable).find_map(proxy);
        proxies.http = proxies.http.or_else(|| all.clone());
        proxies.https = proxies.https.or(all);
        proxies
    }

    /// Returns the proxy for a request to `target`; `None` for a direct request.
    pub fn to(&self, target: &Uri) -> Option<&Uri> {
        let (proxy, usual) = match target.scheme_str() {
            Some("https") => (self.https.as_ref()?, "443"),
            Some("http") => (self.http.as_ref()?, "80"),
            _ => return None,
        };
        let host = target.host()?.trim_matches(['[', ']']).to_ascii_lowercase();
        let named = target.port();
        let port = named.as_ref().map_or(usual, |port| port.as_str());
        let address: Option<IpAddr> = host.parse().ok();
        let is_loopback = address.map_or(host == "localhost", |it| it.to_canonical().is_loopback());
        let is_direct = |direct: &Direct| direct.has(&host, address, port);
        let asked_directly = is_loopback || self.direct.iter().any(is_direct);
        (!asked_directly).then_some(proxy)
    }
}

impl fmt::Debug for Proxies {
    /// Omits the addresses, which may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Proxies").finish_non_exhaustive()
    }
}

impl Direct {
    fn parse(entry: &str) -> Option<Self> {
        let entry = entry.trim().to_ascii_lowercase();
        if entry.is_empty() {
            return None;
        }
        if entry == "*" {
            return Some(Self::Everything);
        }
        if let Some((address, bits)) = entry.split_once('/')
            && let (Ok(address), Ok(bits)) = (address.parse::<IpAddr>(), bits.parse::<u8>())
            && bits <= width(address)
        {
            return Some(Self::Network(address, bits));
        }
        let (host, port) = split(&entry);
        if let Ok(address) = host.parse::<IpAddr>() {
            return Some(Self::Address(address.to_canonical(), port));
        }
        let host = host
            .strip_prefix('*')
            .filter(|rest| rest.starts_with('.'))
            .unwrap_or(host);
        if host.is_empty() {
            return None;
        }
        let itself = !host.starts_with('.');
        let below = if itself {
            format!(".{host}")
        } else {
            host.to_owned()
        };
        Some(Self::Names {
            below,
            itself,
            port,
        })
    }

    fn has(&self, host: &str, address: Option<IpAddr>, port: &str) -> bool {
        let at = |entry: &Option<String>| entry.as_deref().is_none_or(|entry| entry == port);
        match self {
            Self::Everything => true,
            Self::Network(network, bits) => {
                address.is_some_and(|address| is_in(address.to_canonical(), *network, *bits))
            }
            Self::Address(named, named_port) => {
                address.is_some_and(|address| address.to_canonical() == *named) && at(named_port)
            }
            Self::Names {
                below,
                itself,
                port: named_port,
            } => {
                let is_it = *itself && below.strip_prefix('.') == Some(host);
                (is_it || host.ends_with(below.as_str())) && at(named_port)
            }
        }
    }
}

/// Splits an entry into host and port, if there is one.
fn split(entry: &str) -> (&str, Option<String>) {
    if let Some((host, rest)) = entry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return (host, rest.strip_prefix(':').map(str::to_owned));
    }
    match entry.split_once(':') {
        // Two colons and more are an address of IPv6.
        Some((host, port)) if !port.contains(':') => (host, Some(port.to_owned())),
        _ => (entry, None),
    }
}

fn is_in(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let number = |address: IpAddr| match address {
        IpAddr::V4(address) => u128::from(u32::from(address)) << 96,
        IpAddr::V6(address) => u128::from(address),
    };
    let differ = number(address) ^ number(network);
    address.is_ipv4() == network.is_ipv4()
        && differ
            .checked_shr(u32::from(128 - bits))
            .unwrap_or_default()
            == 0
}

fn width(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// Address of a proxy; without a scheme the proxy speaks HTTP.
fn proxy(value: &str) -> Option<Uri> {
    let value = value.trim();
    let complete = value
        .contains("://")
        .then(|| value.parse::<Uri>().ok())
        .flatten();
    let uri = complete.or_else(|| format!("http://{value}").parse().ok())?;
    uri.host().filter(|host| !host.is_empty())?;
    Some(uri)
}

#[cfg(test)]
mod tests;
