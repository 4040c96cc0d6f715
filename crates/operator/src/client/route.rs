//! Connections to an API server, directly or through a proxy.

use std::task::{Context, Poll};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{HeaderValue, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::{BoxError, Service};

/// Route of bytes to an API server. TLS with the API server itself comes on top.
#[derive(Clone)]
pub(super) enum Route {
    Direct(HttpConnector),
    /// `CONNECT` to an HTTP proxy.
    Http(Tunnel<HttpConnector>),
    /// `CONNECT` over TLS with the proxy.
    Https(Tunnel<HttpsConnector<HttpConnector>>),
    Socks(SocksV5<HttpConnector>),
}

/// Problem of an unusable proxy address.
pub(super) const NOT_A_PROXY: &str = "it is not an address such as http://10.0.0.1:3128, with one of the schemes http, https, socks5";

impl Route {
    /// Returns the route through `proxy`; `None` for an unknown scheme. `tls` has the certificate authorities for a
    /// proxy over TLS.
    pub(super) fn through(
        proxy: &Uri,
        tcp: HttpConnector,
        tls: impl FnOnce() -> HttpsConnector<HttpConnector>,
    ) -> Option<Self> {
        let login = login(proxy);
        let basic = login.as_ref().and_then(basic);
        let address = without_login(proxy)?;
        Some(match proxy.scheme_str()? {
            "http" => Self::Http(with_login(Tunnel::new(address, tcp), basic)),
            "https" => Self::Https(with_login(Tunnel::new(address, tls()), basic)),
            // The proxy looks names up, as with Go's programs.
            "socks5" | "socks5h" => {
                let socks = SocksV5::new(address, tcp);
                Self::Socks(match login {
                    Some((user, password)) => socks.with_auth(user, password),
                    None => socks,
                })
            }
            _ => return None,
        })
    }
}

fn with_login<C>(tunnel: Tunnel<C>, login: Option<HeaderValue>) -> Tunnel<C> {
    match login {
        Some(login) => tunnel.with_auth(login),
        None => tunnel,
    }
}

fn basic((user, password): &(String, String)) -> Option<HeaderValue> {
    let encoded = STANDARD.encode(format!("{user}:{password}"));
    HeaderValue::from_str(&format!("Basic {encoded}")).ok()
}

/// Returns user and password in the address of a proxy.
fn login(proxy: &Uri) -> Option<(String, String)> {
    let (login, _) = proxy.authority()?.as_str().rsplit_once('@')?;
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    Some((decoded(user), decoded(password)))
}

/// Address without the login, with the default port of the scheme if none is set.
fn without_login(proxy: &Uri) -> Option<Uri> {
    let (scheme, host) = (proxy.scheme_str()?, proxy.host()?);
    let port = proxy.port_u16().unwrap_or(match scheme {
        "https" => 443,
        "http" => 80,
        _ => 1080,
    });
    // The scheme decides whether the connector uses TLS.
    let scheme = if scheme == "https" { scheme } else { "http" };
    format!("{scheme}://{host}:{port}/").parse().ok()
}

/// Returns a part of an address, percent-decoded. Invalid encoding is kept as text.
fn decoded(part: &str) -> String {
    let mut bytes = Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digit = |at: usize| after.get(at).and_then(|it| char::from(*it).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                bytes.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = after.get(2..).unwrap_or_default();
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

impl Service<Uri> for Route {
    type Response = MaybeHttpsStream<TokioIo<TcpStream>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self {
            Self::Direct(tcp) => tcp.poll_ready(context).map_err(Into::into),
            Self::Http(tunnel) => tunnel.poll_ready(context).map_err(Into::into),
            Self::Https(tunnel) => tunnel.poll_ready(context).map_err(Into::into),
            Self::Socks(socks) => socks.poll_ready(context).map_err(Into::into),
        }
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        match self {
            Self::Direct(tcp) => plain(tcp.call(target)),
            Self::Http(tunnel) => plain(tunnel.call(target)),
            Self::Https(tunnel) => tunnel.call(target).map(|it| it.map_err(Into::into)).boxed(),
            Self::Socks(socks) => plain(socks.call(target)),
        }
    }
}

fn plain<E: Into<BoxError> + 'static>(
    connecting: impl Future<Output = Result<TokioIo<TcpStream>, E>> + Send + 'static,
) -> BoxFuture<'static, Result<MaybeHttpsStream<TokioIo<TcpStream>>, BoxError>> {
    connecting
        .map(|stream| stream.map(MaybeHttpsStream::Http).map_err(Into::into))
        .boxed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_login_of_a_proxy_is_decoded_and_not_in_the_address() {
        let proxy: Uri = "http://me:p%40ss%3Aword@proxy.test".parse().unwrap();
        let (user, password) = login(&proxy).unwrap();
        assert_eq!((user.as_str(), password.as_str()), ("me", "p@ss:word"));
        assert_eq!(without_login(&proxy).unwrap(), "http://proxy.test:80/");
        assert_eq!(decoded("100%"), "100%");
        assert_eq!(decoded("%+A%zz"), "%+A%zz");
        let socks: Uri = "socks5://[::1]".parse().unwrap();
        assert_eq!(without_login(&socks).unwrap(), "http://[::1]:1080/");
    }
}
