//! Sockets of a manager, webhooks and metrics.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context;
use apiserver::sockets::{self, Limits, Slot};
use axum::Router;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use crate::cli::Listen;

/// The timeout of the TLS handshake.
const HANDSHAKE: std::time::Duration = std::time::Duration::from_secs(10);
/// Limits for webhooks and probes, which are short and have few clients.
const LIMITS: Limits = Limits {
    connections: 200,
    header: std::time::Duration::from_secs(10),
    body: std::time::Duration::from_secs(10),
    idle: std::time::Duration::from_secs(120),
    write: std::time::Duration::from_secs(30),
};

/// Serves `router` over plain HTTP until `stop`.
pub(crate) async fn plain(
    what: &str,
    listen: Listen,
    router: Router,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let Listen::On(address) = listen else {
        return Ok(());
    };
    let (listener, address) = bind(what, address).await?;
    say(&format!("{what} at http://{address}"));
    tokio::spawn(http(listener, router, LIMITS, stop.clone()));
    Ok(())
}

/// Answers plain HTTP on `listener` with `router` until `stop`.
pub(crate) async fn http(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    stop: CancellationToken,
) {
    let answer = move |_, request| router.clone().oneshot(request);
    sockets::plain(listener, limits, stop, answer).await;
}

/// Serves `router` over TLS until `stop`.
pub(crate) async fn tls(
    what: &str,
    address: SocketAddr,
    tls: Arc<ServerConfig>,
    router: Router,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    tls_by(
        what,
        address,
        move || Some(Arc::clone(&tls)),
        router,
        stop,
        say,
    )
    .await?;
    Ok(())
}

/// Serves `router` over TLS until `stop`, with the current settings at each connection; without any, the connection is
/// closed. The task ends with the last connection.
pub(crate) async fn tls_by(
    what: &str,
    address: SocketAddr,
    current: impl Fn() -> Option<Arc<ServerConfig>> + Send + Sync + 'static,
    router: Router,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<JoinHandle<()>> {
    let (listener, address) = bind(what, address).await?;
    say(&format!("{what} at https://{address}"));
    let (stop, stopped) = (stop.clone(), stop.clone());
    let serve = move |stream, _, place| {
        let (acceptor, router) = (current().map(TlsAcceptor::from), router.clone());
        let stop = stopped.clone();
        async move {
            if let Some(acceptor) = acceptor {
                connection(acceptor, router, stream, place, stop).await;
            }
        }
    };
    Ok(tokio::spawn(sockets::listen(listener, LIMITS, stop, serve)))
}

async fn connection(
    acceptor: TlsAcceptor,
    router: Router,
    stream: TcpStream,
    place: Slot,
    stop: CancellationToken,
) {
    let handshake = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream));
    let accepted = tokio::select! {
        accepted = handshake => accepted,
        () = place.closed() => return,
    };
    let Ok(Ok(stream)) = accepted else {
        tracing::debug!("a TLS handshake failed");
        return;
    };
    let answer = move |request| router.clone().oneshot(request);
    sockets::connection(stream, &place, answer, stop.cancelled()).await;
}

async fn bind(what: &str, address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await;
    let listener = listener
        .with_context(|| format!("{what} cannot be served on {address}; choose another address"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
