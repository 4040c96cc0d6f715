//! Protocol upgrades: connections that switch from HTTP to another protocol after the answer
//! `101 Switching Protocols`.

use http::header::{CONNECTION, HeaderName, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, UPGRADE};
use http::{Extensions, HeaderMap, HeaderValue, Response, StatusCode};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use ring::digest;
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::text_answer;
use crate::body::{self, Body};

/// Tasks of upgraded requests of one connection. The tasks end with the connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tunnels {
    tasks: TaskTracker,
    end: CancellationToken,
}

impl Tunnels {
    /// Guard that ends all tasks when dropped.
    pub(crate) fn end_with(&self) -> DropGuard {
        self.end.clone().drop_guard()
    }

    /// Waits until all tasks have ended. No further task may start.
    pub(crate) async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// True if a client requests an upgrade.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let mut connection = headers.get_all(CONNECTION).iter();
    connection.any(|value| {
        let value = value.to_str().unwrap_or_default();
        value.to_lowercase().contains("upgrade")
    })
}

/// True if a client requests an upgrade to `protocol`.
pub(super) fn is_to(headers: &HeaderMap, protocol: &str) -> bool {
    let wanted = headers.get(UPGRADE).and_then(|value| value.to_str().ok());
    wanted.is_some_and(|wanted| wanted.eq_ignore_ascii_case(protocol))
}

/// Comma-separated items of all headers with a name.
pub(super) fn items(headers: &HeaderMap, name: &HeaderName) -> Vec<String> {
    let values = headers.get_all(name).iter();
    let items = values.flat_map(|value| value.to_str().unwrap_or_default().split(','));
    let items = items.map(|item| item.trim().to_owned());
    items.filter(|item| !item.is_empty()).collect()
}

/// `Sec-WebSocket-Accept`, the proof that the server understood the request (RFC 6455, 4.2.2).
pub(super) fn websocket_proof(headers: &HeaderMap) -> Option<(HeaderName, HeaderValue)> {
    let key = headers.get(SEC_WEBSOCKET_KEY)?.as_bytes();
    let both = [key, b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
    let digest = digest::digest(&digest::SHA1_FOR_LEGACY_USE_ONLY, &both);
    let proof = HeaderValue::from_str(&STANDARD.encode(digest)).ok()?;
    Some((SEC_WEBSOCKET_ACCEPT, proof))
}

/// Switches to `protocol` and runs `run` on the connection. `headers`: further headers of the answer.
pub(super) fn to<F>(
    protocol: &'static str,
    headers: impl IntoIterator<Item = (HeaderName, HeaderValue)>,
    extensions: &mut Extensions,
    run: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static,
) -> Response<Body>
where
    F: Future<Output = ()> + Send + 'static,
{
    let mut answer = HeaderMap::new();
    answer.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    answer.insert(UPGRADE, HeaderValue::from_static(protocol));
    answer.extend(headers);
    with(answer, extensions, run)
}

/// Switches protocols with the given [`Response`] headers, and runs `run` on the connection.
pub(super) fn with<F>(
    headers: HeaderMap,
    extensions: &mut Extensions,
    run: impl FnOnce(TokioIo<Upgraded>) -> F + Send + 'static,
) -> Response<Body>
where
    F: Future<Output = ()> + Send + 'static,
{
    let (upgrade, tunnels) = (
        extensions.remove::<OnUpgrade>(),
        extensions.remove::<Tunnels>(),
    );
    let (Some(upgrade), Some(tunnels)) = (upgrade, tunnels) else {
        // The service was called without a connection.
        let why = "unable to upgrade: unable to hijack response\n";
        return text_answer(StatusCode::INTERNAL_SERVER_ERROR, why.to_owned());
    };
    let end = tunnels.end.clone();
    tunnels
        .tasks
        .spawn(end.run_until_cancelled_owned(async move {
            match upgrade.await {
                Ok(upgraded) => run(TokioIo::new(upgraded)).await,
                Err(error) => tracing::debug!(%error, "a connection was not upgraded"),
            }
        }));
    let mut response = Response::new(body::full(""));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    *response.headers_mut() = headers;
    response
}
