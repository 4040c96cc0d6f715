//! Port forwarding over the channels of a WebSocket, as in kube-rs and browsers: for the n-th port, channel 2n
//! carries the data and channel 2n+1 the errors. The first message in each channel is the port number, little-endian.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::{Target, UNTAKEN, WAITING};

/// Subprotocols. Without a subprotocol, the first one is used.
pub(super) const PROTOCOLS: [&str; 2] = ["v4.channel.k8s.io", "v4.base64.channel.k8s.io"];

/// Encoding of channel and data in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Codec {
    /// The first byte is the channel.
    Binary,
    /// The first character is the channel, `0` for the first one; the rest is base64.
    Base64,
}

impl Codec {
    pub(super) fn from_protocol(protocol: &str) -> Option<Self> {
        let [binary, base64] = PROTOCOLS;
        match protocol {
            it if it == binary => Some(Self::Binary),
            it if it == base64 => Some(Self::Base64),
            _ => None,
        }
    }

    fn write(self, channel: u8, bytes: &[u8]) -> Message {
        match self {
            Self::Binary => {
                let mut message = Vec::with_capacity(1 + bytes.len());
                message.push(channel);
                message.extend_from_slice(bytes);
                Message::binary(message)
            }
            Self::Base64 => {
                let channel = char::from(b'0'.wrapping_add(channel));
                Message::text(format!("{channel}{}", STANDARD.encode(bytes)))
            }
        }
    }

    /// Decodes the channel and the data of a [`Message`]; `None` for ignored messages.
    fn read(self, message: Message) -> Option<(u8, Bytes)> {
        let mut bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => text.into(),
            _ => return None,
        };
        if bytes.is_empty() {
            return None;
        }
        let channel = bytes.split_to(1).first().copied()?;
        match self {
            Self::Binary => Some((channel, bytes)),
            Self::Base64 => {
                let bytes = STANDARD.decode(&bytes).ok()?;
                Some((channel.wrapping_sub(b'0'), bytes.into()))
            }
        }
    }
}

/// Serves a WebSocket until the client closes it or the pod closes all connections.
pub(super) async fn serve<S>(
    websocket: WebSocketStream<S>,
    codec: Codec,
    ports: &[u16],
    target: &Target,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (mut sink, mut source) = websocket.split();
    let (outgoing, mut waiting) = mpsc::channel::<Message>(WAITING);
    let mut inputs = Vec::new();
    let mut running = Vec::new();
    for (port, data) in ports.iter().zip((0..=254).step_by(2)) {
        let (input, incoming) = mpsc::channel(UNTAKEN);
        inputs.push(input);
        running.push(one(target, codec, *port, data, incoming, outgoing.clone()));
    }
    drop(outgoing);
    let writing = async {
        while let Some(message) = waiting.recv().await {
            if sink.send(message).await.is_err() {
                return;
            }
        }
        let _ = sink.close().await;
    };
    let reading = async {
        while let Some(Ok(message)) = source.next().await {
            let Some((channel, bytes)) = codec.read(message) else {
                continue;
            };
            // Odd channels are for errors, which only the server sends.
            let input = inputs.get(usize::from(channel / 2));
            if let Some(input) = input.filter(|_| channel % 2 == 0) {
                // Fails when the connection to the port has been closed.
                let _ = input.send(bytes).await;
            }
        }
    };
    let serving = futures::future::join(futures::future::join_all(running), writing);
    tokio::select! {
        _ = serving => {}
        () = reading => {}
    }
}

/// Forwards one port.
async fn one(
    target: &Target,
    codec: Codec,
    port: u16,
    data: u8,
    incoming: mpsc::Receiver<Bytes>,
    outgoing: mpsc::Sender<Message>,
) {
    let error = data + 1;
    for channel in [data, error] {
        let number = codec.write(channel, &port.to_le_bytes());
        if outgoing.send(number).await.is_err() {
            return;
        }
    }
    let framed = |bytes: &[u8]| codec.write(data, bytes);
    if let Err(why) = target.forward(port, incoming, &outgoing, framed).await {
        let _ = outgoing.send(codec.write(error, why.as_bytes())).await;
    }
}
