//! The sockets of a manager.

use std::net::SocketAddr;

use anyhow::Context;
use axum::Router;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use kube::Client;
use secrecy::{ExposeSecret, SecretString};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use super::subset::Subset;
use crate::cli::Listen;

/// The timeout of the TLS handshake.
const HANDSHAKE: std::time::Duration = std::time::Duration::from_secs(10);
/// The pause after a failed accept, usually caused by a lack of file descriptors.
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// Serves `router` over plain HTTP until `stop`.
pub(super) async fn plain(
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
    let stop = stop.clone();
    tokio::spawn(async move {
        let served = axum::serve(listener, router)
            .with_graceful_shutdown(async move { stop.cancelled().await });
        if let Err(source) = served.await {
            tracing::error!("a server stopped: {source}");
        }
    });
    Ok(())
}

/// The webhooks of the kinds of a subset.
pub(super) fn webhooks(client: &Client, subset: &Subset) -> Router {
    let judge = operator::webhook::Judge {
        validate: ::management::validate,
        beside: ::management::cluster::class_of,
        default: ::management::cluster::default_by,
        judge: ::management::cluster::validate_by,
    };
    operator::webhook::router(client.clone(), judge, subset.groups())
}

/// Serves `router` over TLS, with a certificate and its key, until `stop`.
pub(crate) async fn tls(
    what: &str,
    address: SocketAddr,
    (certificate, key): (&str, &SecretString),
    router: Router,
    stop: &CancellationToken,
    say: &impl Fn(&str),
) -> anyhow::Result<()> {
    let tls = apiserver::server_config(certificate, key.expose_secret(), None)
        .with_context(|| format!("the certificate of {what}"))?;
    let acceptor = TlsAcceptor::from(tls);
    let (listener, address) = bind(what, address).await?;
    say(&format!("{what} at https://{address}"));
    let stop = stop.clone();
    tokio::spawn(async move {
        let serving = async {
            loop {
                match listener.accept().await {
                    Ok((stream, _)) => {
                        tokio::spawn(connection(acceptor.clone(), router.clone(), stream));
                    }
                    Err(problem) => {
                        tracing::warn!("a connection was not accepted: {problem}");
                        tokio::time::sleep(PAUSE).await;
                    }
                }
            }
        };
        stop.run_until_cancelled(serving).await;
    });
    Ok(())
}

async fn connection(acceptor: TlsAcceptor, router: Router, stream: TcpStream) {
    let accepted = tokio::time::timeout(HANDSHAKE, acceptor.accept(stream)).await;
    let Ok(Ok(stream)) = accepted else {
        tracing::debug!("a TLS handshake failed");
        return;
    };
    let service = TowerToHyperService::new(router);
    let served = Builder::new(TokioExecutor::new())
        .serve_connection(TokioIo::new(stream), service)
        .await;
    if let Err(problem) = served {
        tracing::debug!("a connection ended: {problem}");
    }
}

async fn bind(what: &str, address: SocketAddr) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await;
    let listener = listener
        .with_context(|| format!("{what} cannot be served on {address}; choose another address"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}
