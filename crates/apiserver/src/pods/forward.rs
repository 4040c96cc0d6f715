//! `pods/NAME/portforward`: connections to ports of a pod.

mod channels;
mod streams;

use std::sync::Arc;

use apimachinery::value::text;
use bytes::{Bytes, BytesMut};
use futures::{SinkExt as _, StreamExt as _, future};
use http::header::{HeaderName, SEC_WEBSOCKET_PROTOCOL};
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_util::io::ReaderStream;

use super::passed::{Backend, Begun, spdy_headers};
use super::spdy::PIECE;
use super::{Request, text_answer, upgrade};
use crate::body::Body;
use crate::error::ApiError;
use crate::kubelet::Kubelet;
use crate::request::query::Query;

/// Protocol of the streams in a SPDY connection.
const PROTOCOL: &str = "portforward.k8s.io";
/// Prefix of a WebSocket subprotocol with tunnelled SPDY.
const TUNNEL: &str = "SPDY/3.1+";
const SPDY: &str = "SPDY/3.1";
const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// Maximum number of pieces queued for a client, each of at most [`PIECE`] bytes.
const WAITING: usize = 16;
/// Maximum number of pieces queued for a pod.
const UNTAKEN: usize = 8;
/// Maximum length of a WebSocket message in bytes.
const MESSAGE: usize = 4 << 20;
/// Size of a WebSocket's buffer for reading in bytes; the library's default is 128 KiB for each connection.
const BUFFER: usize = 8 << 10;

/// Pod with forwarded ports.
struct Target {
    kubelet: Arc<dyn Kubelet>,
    node: Value,
    pod: Value,
}

/// Answers a [`Request`] for ports.
pub(super) async fn answer(request: Request<'_>) -> Result<Response<Body>, ApiError> {
    let ports = ports(request.query)?;
    let pod = request.pod()?;
    let node = request.node(&pod)?;
    let headers = request.headers;
    if !upgrade::is_wanted(headers) {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    if let Some(kubelet) = request.backend(&node) {
        return by_kubelet(&kubelet, request, &ports).await;
    }
    let Some(kubelet) = request.simulated(&node) else {
        let message = format!("error dialing backend: {}", node.not_reached());
        return Err(ApiError::new(500, "", message));
    };
    let target = Arc::new(Target {
        kubelet,
        node: node.object,
        pod,
    });
    if upgrade::is_to(headers, "websocket") {
        let protocols = upgrade::items(headers, &SEC_WEBSOCKET_PROTOCOL);
        let tunnelled = tunnelled(&protocols);
        return Ok(if tunnelled.is_empty() {
            by_channels(request, &protocols, ports, target)
        } else {
            by_tunnel(request, &tunnelled, target)
        });
    }
    Ok(by_spdy(request, target))
}

/// Stream protocols of the subprotocols with SPDY tunnelled through a WebSocket.
fn tunnelled(protocols: &[String]) -> Vec<String> {
    let inner = protocols
        .iter()
        .filter_map(|protocol| protocol.strip_prefix(TUNNEL));
    let inner = inner.filter(|protocol| protocol.ends_with(".k8s.io"));
    inner.map(str::to_owned).collect()
}

/// Forwards through a real kubelet. Kubelets support SPDY and WebSocket channels, but not SPDY tunnelled through a
/// WebSocket.
async fn by_kubelet(
    kubelet: &Backend<'_>,
    request: Request<'_>,
    ports: &[u16],
) -> Result<Response<Body>, ApiError> {
    let mut location = format!("/portForward/{}/{}", request.namespace(), request.name());
    if !ports.is_empty() {
        let ports: Vec<String> = ports.iter().map(ToString::to_string).collect();
        location.push_str("?port=");
        location.push_str(&ports.join("%2C"));
    }
    let protocols = upgrade::items(request.headers, &SEC_WEBSOCKET_PROTOCOL);
    let tunnelled = tunnelled(&protocols);
    if !upgrade::is_to(request.headers, "websocket") || tunnelled.is_empty() {
        return kubelet.pass(request, &location).await;
    }
    if !tunnelled.iter().any(|protocol| protocol == PROTOCOL) {
        return Ok(not_negotiated(&tunnelled));
    }
    let agreed = format!("{TUNNEL}{PROTOCOL}");
    let Some(answer) = websocket_answer(request.headers, Some(&agreed)) else {
        return Ok(no_websocket());
    };
    let headers = spdy_headers(request.headers, &[PROTOCOL]);
    match kubelet
        .begin(request.core, &Method::POST, &location, headers)
        .await?
    {
        Begun::Refused(answer) => Ok(answer),
        Begun::Upgraded(_, spdy) => Ok(upgrade::to(
            "websocket",
            answer,
            request.extensions,
            async move |io| unwrapped(websocket(io).await, TokioIo::new(spdy)).await,
        )),
    }
}

/// Copies between the messages of a WebSocket and the bytes of a connection, in both directions.
async fn unwrapped<A, B>(websocket: WebSocketStream<A>, connection: B)
where
    A: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    B: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (mut sink, mut source) = websocket.split();
    let (mut read, mut write) = tokio::io::split(connection);
    let to_kubelet = async {
        while let Some(Ok(message)) = source.next().await {
            if let Message::Binary(bytes) = message
                && write.write_all(&bytes).await.is_err()
            {
                return;
            }
        }
    };
    let to_client = async {
        let mut buffer = BytesMut::with_capacity(PIECE);
        while read.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
            let bytes = buffer.split().freeze();
            if sink.send(Message::Binary(bytes)).await.is_err() {
                return;
            }
            buffer.reserve(PIECE);
        }
        let _ = sink.close().await;
    };
    tokio::select! {
        () = to_kubelet => {}
        () = to_client => {}
    }
}

/// SPDY, directly on the connection.
fn by_spdy(request: Request<'_>, target: Arc<Target>) -> Response<Body> {
    let headers = request.headers;
    if !upgrade::is_to(headers, SPDY) {
        let why = "unable to upgrade: missing upgrade headers in request\n";
        return text_answer(StatusCode::BAD_REQUEST, why.to_owned());
    }
    let protocols = upgrade::items(headers, &STREAM_PROTOCOL);
    if protocols.is_empty() {
        let why = "unable to upgrade: X-Stream-Protocol-Version is required\n";
        return text_answer(StatusCode::BAD_REQUEST, why.to_owned());
    }
    if !protocols.iter().any(|protocol| protocol == PROTOCOL) {
        return not_negotiated(&protocols);
    }
    let agreed = [(STREAM_PROTOCOL, HeaderValue::from_static(PROTOCOL))];
    upgrade::to(SPDY, agreed, request.extensions, async move |io| {
        let (read, mut write) = tokio::io::split(io);
        let pieces = ReaderStream::new(read)
            .take_while(|piece| future::ready(piece.is_ok()))
            .filter_map(|piece| future::ready(piece.ok()));
        let (outgoing, mut waiting) = mpsc::channel::<Bytes>(WAITING);
        let writing = async move {
            while let Some(bytes) = waiting.recv().await {
                if write.write_all(&bytes).await.is_err() {
                    return;
                }
            }
            let _ = write.shutdown().await;
        };
        let serving = streams::serve(pieces, outgoing, target);
        future::join(serving, writing).await;
    })
}

/// SPDY tunnelled through the messages of a WebSocket, as used by kubectl.
fn by_tunnel(request: Request<'_>, protocols: &[String], target: Arc<Target>) -> Response<Body> {
    if !protocols.iter().any(|protocol| protocol == PROTOCOL) {
        return not_negotiated(protocols);
    }
    let agreed = format!("{TUNNEL}{PROTOCOL}");
    let Some(answer) = websocket_answer(request.headers, Some(&agreed)) else {
        return no_websocket();
    };
    upgrade::to("websocket", answer, request.extensions, async move |io| {
        let (mut sink, source) = websocket(io).await.split();
        let pieces = source
            .take_while(|message| future::ready(message.is_ok()))
            .filter_map(|message| {
                future::ready(match message {
                    Ok(Message::Binary(bytes)) => Some(bytes),
                    _ => None,
                })
            });
        let (outgoing, mut waiting) = mpsc::channel::<Bytes>(WAITING);
        let writing = async move {
            while let Some(bytes) = waiting.recv().await {
                if sink.send(Message::Binary(bytes)).await.is_err() {
                    return;
                }
            }
            let _ = sink.close().await;
        };
        let serving = streams::serve(pieces, outgoing, target);
        future::join(serving, writing).await;
    })
}

/// WebSocket with a channel at the start of each message.
fn by_channels(
    request: Request<'_>,
    protocols: &[String],
    ports: Vec<u16>,
    target: Arc<Target>,
) -> Response<Body> {
    if ports.is_empty() {
        let why = "query parameter \"port\" is required";
        return text_answer(StatusCode::BAD_REQUEST, why.to_owned());
    }
    if ports.contains(&0) {
        return text_answer(StatusCode::BAD_REQUEST, "port \"0\" must be > 0".to_owned());
    }
    let known = |protocol: &str| channels::Codec::from_protocol(protocol);
    let agreed = match protocols {
        [] => Some((None, channels::Codec::Binary)),
        some => some
            .iter()
            .find_map(|protocol| Some((Some(protocol.as_str()), known(protocol)?))),
    };
    let Some((agreed, codec)) = agreed else {
        let wanted = protocols.join(" ");
        let supported = channels::PROTOCOLS.join(" ");
        let why =
            format!("requested protocol(s) are not supported: [{wanted}]; supports [{supported}]");
        return text_answer(StatusCode::FORBIDDEN, why);
    };
    let Some(answer) = websocket_answer(request.headers, agreed) else {
        return no_websocket();
    };
    upgrade::to("websocket", answer, request.extensions, async move |io| {
        channels::serve(websocket(io).await, codec, &ports, &target).await;
    })
}

pub(super) async fn websocket<S>(io: S) -> WebSocketStream<S>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let config = WebSocketConfig::default()
        .read_buffer_size(BUFFER)
        .max_message_size(Some(MESSAGE))
        .max_frame_size(Some(MESSAGE));
    WebSocketStream::from_raw_socket(io, Role::Server, Some(config)).await
}

pub(super) fn websocket_answer(
    headers: &HeaderMap,
    protocol: Option<&str>,
) -> Option<Vec<(HeaderName, HeaderValue)>> {
    let mut answer = vec![upgrade::websocket_proof(headers)?];
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_str(protocol).ok()?;
        answer.push((SEC_WEBSOCKET_PROTOCOL, protocol));
    }
    Some(answer)
}

pub(super) fn no_websocket() -> Response<Body> {
    let why = "unable to upgrade: Sec-WebSocket-Key is required\n";
    text_answer(StatusCode::BAD_REQUEST, why.to_owned())
}

fn not_negotiated(protocols: &[String]) -> Response<Body> {
    let wanted = protocols.join(" ");
    let why = format!(
        "unable to upgrade: unable to negotiate protocol: client supports [{wanted}], server accepts [{PROTOCOL}]\n"
    );
    text_answer(StatusCode::FORBIDDEN, why)
}

/// Ports of the [`Query`]: in one or several parameters, separated by commas.
fn ports(query: &Query) -> Result<Vec<u16>, ApiError> {
    let ports = query.all("ports").flat_map(|ports| ports.split(','));
    let ports = ports.map(|port| {
        port.parse().map_err(|_| {
            let all_digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
            let why = if all_digits {
                "value out of range"
            } else {
                "invalid syntax"
            };
            ApiError::bad_request(format!(
                "cannot convert to []int32: strconv.ParseUint: parsing {port:?}: {why}"
            ))
        })
    });
    ports.collect()
}

impl Target {
    /// Connects to a port and copies bytes in both directions until the pod closes the connection. `framed` turns
    /// bytes of the pod into frames for `outgoing`.
    ///
    /// The error is sent to the client.
    async fn forward<T>(
        &self,
        port: u16,
        mut incoming: mpsc::Receiver<Bytes>,
        outgoing: &mpsc::Sender<T>,
        framed: impl Fn(&[u8]) -> T,
    ) -> Result<(), String> {
        let connected = self.kubelet.connect(&self.node, &self.pod, port).await;
        let connection = connected.map_err(|why| {
            let metadata = &self.pod["metadata"];
            let (name, uid) = (text(&metadata["name"]), text(&metadata["uid"]));
            format!("error forwarding port {port} to pod {name}, uid {uid}: {why}")
        })?;
        let (mut read, mut write) = tokio::io::split(connection);
        let to_pod = async move {
            while let Some(bytes) = incoming.recv().await {
                if write.write_all(&bytes).await.is_err() {
                    break;
                }
            }
            // The client has sent everything but may still read, so only this direction is closed.
            let _ = write.shutdown().await;
            future::pending().await
        };
        let from_pod = async {
            let mut buffer = BytesMut::with_capacity(PIECE);
            while read.read_buf(&mut buffer).await.is_ok_and(|read| read > 0) {
                if outgoing.send(framed(&buffer)).await.is_err() {
                    break;
                }
                buffer.clear();
            }
        };
        tokio::select! {
            () = from_pod => {}
            () = to_pod => {}
        }
        Ok(())
    }
}
