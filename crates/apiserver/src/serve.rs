//! Sockets and TLS.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::impersonation::Refusal;
use crate::auth::{authenticate, impersonation, rules};
use crate::body::Body;
use crate::http::path;
use crate::http::query::Query;
use crate::http::{failure, handle_target, text};
use crate::pods::Tunnels;
use crate::schema::go_quote;
use crate::server::Core;
use crate::user::UserInfo;

/// The timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// The grace period of running requests at shutdown. Watches are ended at once; their clients resume them.
const DRAIN: Duration = Duration::from_millis(500);

/// Accepts connections until `shutdown`, then lets running requests end.
pub(crate) async fn listen(
    core: Arc<Core>,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    shutdown: CancellationToken,
) {
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
            () = core.shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, _)) => {
                // Disables Nagle's algorithm, which delays small answers.
                let _ = stream.set_nodelay(true);
                let (core, tls, stop) = (Arc::clone(&core), Arc::clone(&tls), shutdown.clone());
                connections.spawn(async move { connection(core, stream, tls, None, stop).await });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection was not accepted");
                // Mostly the process is out of file descriptors, so retrying at once would spin.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
    connections.close();
    connections.wait().await;
}

/// The version that `/version` answers on one connection, if it is not the one of [`crate::Options`].
#[derive(Clone, Debug)]
pub(crate) struct ServedVersion(pub(crate) Arc<str>);

/// Serves one connection, from the TLS handshake to its end.
pub(crate) async fn connection<S>(
    core: Arc<Core>,
    stream: S,
    tls: Arc<rustls::ServerConfig>,
    version: Option<Arc<str>>,
    stop: CancellationToken,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream)).await;
    let stream = match handshake {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => {
            tracing::debug!(%error, "a TLS handshake failed");
            return;
        }
        Err(_) => return,
    };
    let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
    let user = core.authenticator.certificate(chain).map(Arc::new);
    let ended = core.shutdown.clone();
    let tunnels = Tunnels::default();
    let _with_this = tunnels.end_with();
    let inside = tunnels.clone();
    let version = version.map(ServedVersion);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (core, user) = (Arc::clone(&core), user.clone());
        request.extensions_mut().insert(inside.clone());
        if let Some(version) = version.clone() {
            request.extensions_mut().insert(version);
        }
        // Boxed, because hyper keeps the place for it as long as the body is sent, which is hours for a watch.
        Box::pin(async move { Ok::<_, Infallible>(answer(core, user.as_deref(), request).await) })
    });
    let builder = Builder::new(TokioExecutor::new());
    let serving = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
    tokio::pin!(serving);
    tokio::select! {
        result = &mut serving => {
            if let Err(error) = result {
                tracing::debug!(%error, "a connection failed");
            }
            // An upgraded connection has no HTTP requests to finish.
            tokio::select! {
                () = tunnels.ended() => {}
                () = stop.cancelled() => {}
                () = ended.cancelled() => {}
            }
            return;
        }
        () = stop.cancelled() => {}
        () = ended.cancelled() => {}
    }
    serving.as_mut().graceful_shutdown();
    // Connections that are still open afterwards are dropped.
    let _ = tokio::time::timeout(DRAIN, serving).await;
}

async fn answer(
    core: Arc<Core>,
    certificate: Option<&UserInfo>,
    request: Request<Incoming>,
) -> http::Response<Body> {
    let user = match authenticate(&core, request.headers(), certificate) {
        Ok(user) => user,
        Err(error) => return failure(&error),
    };
    let user = match impersonation::applied(&core, user, request.headers()) {
        Ok(user) => user,
        Err(Refusal::Status(error)) => return failure(&error),
        Err(Refusal::WithoutUser(why)) => {
            let url = request.uri().path_and_query();
            let url = url.map_or("/", |url| url.as_str());
            return text(
                500,
                &format!("Internal Server Error: {}: {why}\n", go_quote(url)),
            );
        }
    };
    let target = path::target(request.uri().path());
    let query = Query::parse(request.uri().query());
    match rules::authorize(&core, &user, &target, request.method(), &query) {
        Ok(()) => handle_target(core, user, target, request).await,
        Err(error) => failure(&error),
    }
}
