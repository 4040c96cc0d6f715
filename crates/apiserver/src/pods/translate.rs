//! exec and attach over a WebSocket with channels (`v5.channel.k8s.io`: kubectl, kube-rs), translated for kubelets to
//! the streams of a SPDY connection (`v4.channel.k8s.io`).
//!
//! Source of the rules and messages: `pkg/util/proxy` of `k8s.io/apiserver`, `tools/remotecommand` of client-go.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use futures::stream::SplitSink;
use futures::{SinkExt as _, StreamExt as _};
use http::header::SEC_WEBSOCKET_PROTOCOL;
use http::{HeaderMap, Method, Response};
use http_body_util::BodyExt as _;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, WriteHalf};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::command::Streams;
use super::forward::{no_websocket, websocket, websocket_answer};
use super::passed::{Backend, Begun, spdy_headers};
use super::spdy::{self, Decoder, Encoder, Frame, Headers, PIECE};
use super::{Request, upgrade};
use crate::body::Body;
use crate::error::ApiError;

/// WebSocket protocol with messages that close a stream of the client.
const PROTOCOL: &str = "v5.channel.k8s.io";
/// SPDY protocols, in order of preference.
const KUBELET: [&str; 4] = [
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
];
/// Channels of the WebSocket.
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
/// Channel of messages that close another channel; the second byte is the closed channel.
const CLOSE: u8 = 255;

/// True if a client requests the protocol [`PROTOCOL`], which has to be translated.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    upgrade::is_to(headers, "websocket")
        && upgrade::items(headers, &SEC_WEBSOCKET_PROTOCOL)
            .iter()
            .any(|protocol| protocol == PROTOCOL)
}

/// Answers with a WebSocket in any case: an error of the kubelet is sent on the error channel.
pub(super) async fn answer(
    kubelet: &Backend<'_>,
    request: Request<'_>,
    location: &str,
    streams: Streams,
) -> Result<Response<Body>, ApiError> {
    let Some(answer) = websocket_answer(request.headers, Some(PROTOCOL)) else {
        return Ok(no_websocket());
    };
    let headers = spdy_headers(request.headers, &KUBELET);
    let begun = kubelet
        .begin(request.core, &Method::POST, location, headers)
        .await;
    let outcome = match begun {
        Ok(Begun::Upgraded(_, upgraded)) => Ok(upgraded),
        Ok(Begun::Refused(answer)) => Err(refusal(answer).await),
        Err(error) => Err(ApiError::internal(error.message)),
    };
    Ok(upgrade::to(
        "websocket",
        answer,
        request.extensions,
        async move |io| {
            let websocket = websocket(io).await;
            match outcome {
                Ok(kubelet) => serve(websocket, TokioIo::new(kubelet), streams).await,
                Err(why) => refuse(websocket, &why).await,
            }
        },
    ))
}

/// Error for a kubelet's [`Response`] without upgrade, as in client-go.
async fn refusal(answer: Response<Body>) -> ApiError {
    let body = answer.into_body().collect().await;
    let bytes = body.map(|body| body.to_bytes()).unwrap_or_default();
    let status: Option<serde_json::Value> = serde_json::from_slice(&bytes).ok();
    let message = status.and_then(|status| status["message"].as_str().map(str::to_owned));
    let message = message.unwrap_or_else(|| String::from_utf8_lossy(&bytes).trim().to_owned());
    ApiError::internal(format!("unable to upgrade connection: {message}"))
}

async fn refuse<S>(mut websocket: WebSocketStream<S>, why: &ApiError)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let status = why.status().to_string();
    if websocket
        .send(message(ERROR, status.as_bytes()))
        .await
        .is_ok()
    {
        let _ = websocket.close(None).await;
    }
}

fn message(channel: u8, bytes: &[u8]) -> Message {
    let mut message = Vec::with_capacity(1 + bytes.len());
    message.push(channel);
    message.extend_from_slice(bytes);
    Message::binary(message)
}

/// [`Streams`] of a process, in client-go's order of opening: (name, channel).
fn opened(streams: Streams) -> Vec<(&'static str, u8)> {
    let all = [
        (true, "error", ERROR),
        (streams.stdin, "stdin", STDIN),
        (streams.stdout, "stdout", STDOUT),
        // With a terminal, stderr is part of stdout.
        (streams.stderr && !streams.tty, "stderr", STDERR),
        (streams.tty, "resize", RESIZE),
    ];
    let wanted = all.into_iter().filter(|(wanted, ..)| *wanted);
    wanted.map(|(_, name, channel)| (name, channel)).collect()
}

/// Serves a process until the kubelet has closed all of its [`Streams`], or the client disconnects.
async fn serve<S, K>(websocket: WebSocketStream<S>, kubelet: K, streams: Streams)
where
    S: AsyncRead + AsyncWrite + Unpin,
    K: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut source) = websocket.split();
    let (mut read, mut write) = tokio::io::split(kubelet);
    let Some(mut process) = Process::open(streams, &mut write).await else {
        return;
    };
    let mut buffer = BytesMut::with_capacity(PIECE);
    let mut decoder = Decoder::default();
    loop {
        tokio::select! {
            heard = read.read_buf(&mut buffer) => {
                if !heard.is_ok_and(|read| read > 0) {
                    break;
                }
                if !process.hear(&mut decoder, &mut buffer, &mut sink, &mut write).await {
                    break;
                }
            }
            heard = source.next() => match heard {
                Some(Ok(Message::Binary(bytes))) => {
                    if !process.give(&bytes, &mut write).await {
                        break;
                    }
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                // The WebSocket answers pings itself, with the next write or flush.
                Some(Ok(_)) => {
                    if sink.flush().await.is_err() {
                        return;
                    }
                }
            },
        }
    }
    let _ = sink.send(normal_end()).await;
}

/// Close frame of a complete connection: client-go treats any other end as an error.
fn normal_end() -> Message {
    Message::Close(Some(CloseFrame {
        code: CloseCode::Normal,
        reason: "".into(),
    }))
}

/// Streams of a process, between client and kubelet.
struct Process {
    /// Channels of the SPDY streams not closed by the kubelet.
    sending: BTreeMap<u32, u8>,
    /// SPDY streams of the channels not closed by the client.
    taking: BTreeMap<u8, u32>,
}

impl Process {
    /// Opens the [`Streams`]. `None` if the kubelet has disconnected.
    async fn open<W: AsyncWrite + Unpin>(streams: Streams, write: &mut W) -> Option<Self> {
        let mut process = Self {
            sending: BTreeMap::new(),
            taking: BTreeMap::new(),
        };
        let mut encoder = Encoder::default();
        for ((name, channel), stream) in opened(streams).into_iter().zip((1u32..).step_by(2)) {
            let headers = BTreeMap::from([("streamtype".to_owned(), name.to_owned())]);
            let frame = encoder.syn(stream, false, &Headers(headers));
            write.write_all(&frame).await.ok()?;
            if matches!(channel, STDIN | RESIZE) {
                process.taking.insert(channel, stream);
            } else {
                process.sending.insert(stream, channel);
            }
        }
        Some(process)
    }

    /// Sends received frames of the kubelet to the client. Returns true if more may follow.
    async fn hear<S, W>(
        &mut self,
        decoder: &mut Decoder,
        buffer: &mut BytesMut,
        sink: &mut SplitSink<WebSocketStream<S>, Message>,
        write: &mut WriteHalf<W>,
    ) -> bool
    where
        S: AsyncRead + AsyncWrite + Unpin,
        W: AsyncRead + AsyncWrite + Unpin,
    {
        loop {
            let ended = match decoder.next(buffer) {
                Ok(None) => return true,
                Ok(Some(Frame::Data { stream, fin, bytes })) => {
                    if let Some(channel) = self.sending.get(&stream)
                        && !bytes.is_empty()
                        && sink.send(message(*channel, &bytes)).await.is_err()
                    {
                        return false;
                    }
                    fin.then_some(stream)
                }
                Ok(Some(Frame::Reset { stream })) => {
                    self.taking.retain(|_, taking| *taking != stream);
                    Some(stream)
                }
                // Even ids are those of the kubelet.
                Ok(Some(Frame::Ping { id })) if id % 2 == 0 => {
                    if write.write_all(&spdy::ping(id)).await.is_err() {
                        return false;
                    }
                    None
                }
                Ok(Some(Frame::GoAway)) => return false,
                Ok(Some(_)) => None,
                Err(problem) => {
                    tracing::debug!(%problem, "a kubelet sends something other than SPDY");
                    return false;
                }
            };
            if let Some(stream) = ended {
                self.sending.remove(&stream);
                if self.sending.is_empty() {
                    return false;
                }
            }
        }
    }

    /// Sends a message of the client to the kubelet. Returns false if the kubelet has disconnected.
    async fn give<W: AsyncWrite + Unpin>(&mut self, bytes: &Bytes, write: &mut W) -> bool {
        let frame = match **bytes {
            [CLOSE, channel] => match self.taking.remove(&channel) {
                Some(stream) => spdy::data(stream, true, b""),
                None => return true,
            },
            [channel, ref rest @ ..] => match self.taking.get(&channel) {
                Some(stream) => spdy::data(*stream, false, rest),
                None => return true,
            },
            [] => return true,
        };
        write.write_all(&frame).await.is_ok()
    }
}

#[cfg(test)]
mod tests;
