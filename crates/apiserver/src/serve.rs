//! Sockets and TLS.

use std::sync::Arc;
use std::time::Duration;

use apimachinery::schema::go_quote;
use http::Request;
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::auth::impersonation::Refusal;
use crate::auth::{authenticate, impersonation, rules};
use crate::body::{self, Body};
use crate::core::Core;
use crate::http::handle_target;
use crate::pods::Tunnels;
use crate::request::query::Query;
use crate::request::{ServedVersion, path};
use crate::response::{failure, text};
use crate::sockets::{self, Arriving, Duplex, Ended, Limits, Slot};
use crate::user::UserInfo;

/// Timeout of the TLS handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Accepts connections until `shutdown`, then lets running requests end.
pub(crate) async fn listen(
    core: Arc<Core>,
    listener: TcpListener,
    tls: Arc<rustls::ServerConfig>,
    shutdown: CancellationToken,
) {
    // Ends with the server, too.
    let stop = shutdown.child_token();
    let ended = stop.clone();
    let closed = core.shutdown.clone();
    let serve = move |stream, _, place| {
        let (core, tls, stop) = (Arc::clone(&core), Arc::clone(&tls), stop.clone());
        connection(core, Box::new(stream), tls, None, place, stop)
    };
    let listening = sockets::listen(listener, Limits::default(), ended.clone(), serve);
    let mut listening = std::pin::pin!(listening);
    tokio::select! {
        () = &mut listening => return,
        () = closed.cancelled() => ended.cancel(),
    }
    listening.await;
}

/// Serves one connection, from the TLS handshake to its end.
pub(crate) async fn connection(
    core: Arc<Core>,
    stream: Box<dyn Duplex>,
    tls: Arc<rustls::ServerConfig>,
    version: Option<Arc<str>>,
    place: Slot,
    stop: CancellationToken,
) {
    let handshake = tokio::time::timeout(HANDSHAKE, TlsAcceptor::from(tls).accept(stream));
    let handshake = tokio::select! {
        handshake = handshake => handshake,
        () = place.closed() => return,
    };
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
    let (serving, ending) = (Arc::clone(&core), stop.clone());
    let respond = move |mut request: Request<Arriving>| {
        let (core, user) = (Arc::clone(&serving), user.clone());
        request.extensions_mut().insert(inside.clone());
        if let Some(version) = version.clone() {
            request.extensions_mut().insert(version);
        }
        async move { Ok(answer(core, user.as_deref(), request).await) }
    };
    let stopped = async {
        tokio::select! {
            () = ending.cancelled() => {}
            () = core.shutdown.cancelled() => {}
        }
    };
    if sockets::connection(stream, &place, respond, stopped).await == Ended::Served {
        // An upgraded connection has no HTTP requests to finish.
        tokio::select! {
            () = tunnels.ended() => {}
            () = stop.cancelled() => {}
            () = ended.cancelled() => {}
        }
    }
}

async fn answer(
    core: Arc<Core>,
    certificate: Option<&UserInfo>,
    request: Request<Arriving>,
) -> http::Response<Body> {
    let user = match authenticate(&core, request.headers(), certificate).await {
        Ok(user) => user,
        Err(error) => return failure(&error),
    };
    let user = match impersonation::applied(&core, user, request.headers()).await {
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
    match rules::authorize(&core, &user, &target, request.method(), &query).await {
        Ok(()) => handle_target(core, user, target, request.map(body::of_request)).await,
        Err(error) => failure(&error),
    }
}
