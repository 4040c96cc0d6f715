//! Metadata service: the source address of a request identifies the server.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use apiserver::sockets::{self, Arriving, Limits};
use axum::Router;
use axum::extract::{ConnectInfo, State};
use axum::response::{IntoResponse, Response};
use http::{Method, StatusCode, Uri, header};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::metadata;
use crate::data_plane::DataPlane;
use crate::machine::Servers;

#[derive(Clone)]
struct Source {
    world: watch::Receiver<Arc<DataPlane>>,
    servers: Arc<dyn Servers>,
}

/// Serves until `shutdown`.
pub(crate) async fn serve(
    listener: TcpListener,
    world: watch::Receiver<Arc<DataPlane>>,
    servers: Arc<dyn Servers>,
    shutdown: CancellationToken,
) {
    let router = Router::new()
        .fallback(answer)
        .with_state(Source { world, servers });
    let answer = move |peer: SocketAddr, mut request: http::Request<Arriving>| {
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().oneshot(request)
    };
    sockets::plain(listener, Limits::default(), shutdown, answer).await;
}

async fn answer(
    State(source): State<Source>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    method: Method,
    uri: Uri,
) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    match content(&source, peer.ip(), uri.path()) {
        Some(content) => {
            let kind = match uri.path().ends_with(".json") {
                true => "application/json",
                false => "text/plain; charset=UTF-8",
            };
            ([(header::CONTENT_TYPE, kind)], content).into_response()
        }
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Returns the content for the server with an address; `None` if several servers have the address.
fn content(source: &Source, address: IpAddr, path: &str) -> Option<Vec<u8>> {
    let world = Arc::clone(&source.world.borrow());
    let mut owners = world
        .instances
        .iter()
        .filter(|instance| instance.fixed_ips.contains(&address.to_canonical()));
    let instance = owners.next()?;
    if owners.next().is_some() {
        return None;
    }
    let machine = source.servers.machine(&instance.id)?;
    // Nova has these paths on the config drive only.
    if path.trim_start_matches('/').starts_with("ec2/") {
        return None;
    }
    metadata::content(instance, &machine, path)
}
