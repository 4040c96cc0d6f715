//! Connections to a port of a Pod, all by one request for forwarded ports.
//!
//! In the WebSocket of such a request, the n-th port has channel 2n for bytes and channel 2n + 1 for the reason of a
//! failure; the first message of each channel is the number of the port. One port may occur several times, each with
//! a connection of its own. The `Portforwarder` of kube does not allow such repetitions.

use std::sync::Arc;

use bytes::Bytes;
use futures::stream::{self, SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _, future};
use http::Request;
use kube::Client;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::io::ReaderStream;

/// Buffer of a connection in each direction, in bytes.
const BUFFER: usize = 64 << 10;
/// Size in bytes of a message with the number of a port.
const NUMBER: usize = 2;

/// Connection to the port.
pub(super) struct Forwarded {
    pub(super) stream: DuplexStream,
    /// Reason why the kubelet has no connection to the port.
    pub(super) refused: oneshot::Receiver<String>,
    /// Task behind all connections; the last connection ends the task.
    pub(super) copying: Arc<Copying>,
}

/// Task that copies between the connections and the WebSocket.
pub(super) struct Copying(JoinHandle<()>);

impl Drop for Copying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens `count` connections; the limit of one request is 128.
pub(super) async fn open(
    client: &Client,
    namespace: &str,
    pod: &str,
    port: u16,
    count: usize,
) -> Result<Vec<Forwarded>, kube::Error> {
    let ports = vec![port.to_string(); count].join("%2C");
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/portforward?ports={ports}");
    let request = Request::get(path).body(Vec::new());
    let request = request.map_err(kube::Error::HttpError)?;
    let (sink, source) = client.connect(request).await?.into_stream().split();
    let (mut streams, mut readers, mut receiving) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..count {
        let (stream, there) = tokio::io::duplex(BUFFER);
        let (reader, writer) = tokio::io::split(there);
        let (refuse, refused) = oneshot::channel();
        streams.push((stream, refused));
        readers.push(reader);
        receiving.push(Receiving::new(writer, refuse));
    }
    let copying = tokio::spawn(async move {
        // Sending ends with the last local connection; an answer may still be on its way.
        let sending = async {
            send(sink, readers).await;
            future::pending().await
        };
        tokio::select! {
            () = sending => {}
            () = receive(source, receiving) => {}
        }
    });
    let copying = Arc::new(Copying(copying));
    let forwarded = streams.into_iter().map(|(stream, refused)| Forwarded {
        stream,
        refused,
        copying: Arc::clone(&copying),
    });
    Ok(forwarded.collect())
}

/// Sends the bytes of the local connections.
async fn send<S>(
    mut sink: SplitSink<WebSocketStream<S>, Message>,
    readers: Vec<ReadHalf<DuplexStream>>,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let pieces = readers.into_iter().zip((0..=u8::MAX).step_by(2));
    let pieces = pieces.map(|(reader, channel)| {
        ReaderStream::new(reader)
            .filter_map(|piece| future::ready(piece.ok()))
            .map(move |piece| framed(channel, &piece))
            .boxed()
    });
    let mut pieces = stream::select_all(pieces);
    while let Some(message) = pieces.next().await {
        if sink.send(message).await.is_err() {
            return;
        }
    }
}

fn framed(channel: u8, piece: &[u8]) -> Message {
    let mut message = Vec::with_capacity(1 + piece.len());
    message.push(channel);
    message.extend_from_slice(piece);
    Message::binary(message)
}

/// Receiving side of a connection: bytes from the Pod.
struct Receiving {
    writer: WriteHalf<DuplexStream>,
    refuse: Option<oneshot::Sender<String>>,
    /// True after the arrival of the port number, for bytes and for the reason.
    begun: [bool; 2],
}

impl Receiving {
    fn new(writer: WriteHalf<DuplexStream>, refuse: oneshot::Sender<String>) -> Self {
        Self {
            writer,
            refuse: Some(refuse),
            begun: [false; 2],
        }
    }

    /// Takes a message of one of the two channels.
    async fn take(&mut self, is_reason: bool, bytes: &[u8]) {
        let begun = &mut self.begun[usize::from(is_reason)];
        if !*begun && bytes.len() == NUMBER {
            *begun = true;
        } else if is_reason {
            if let Some(refuse) = self.refuse.take() {
                // After the answer nobody listens.
                let _ = refuse.send(String::from_utf8_lossy(bytes).into_owned());
            }
            // No bytes will follow.
            let _ = self.writer.shutdown().await;
        } else {
            // Fails after the reader is gone.
            let _ = self.writer.write_all(bytes).await;
        }
    }
}

/// Receives from the Pod until the Pod has closed all connections.
async fn receive<S>(mut source: SplitStream<WebSocketStream<S>>, mut receiving: Vec<Receiving>)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    while let Some(Ok(message)) = source.next().await {
        let Message::Binary(mut bytes) = message else {
            continue;
        };
        if bytes.is_empty() {
            continue;
        }
        let channel = usize::from(bytes.split_to(1)[0]);
        let bytes: Bytes = bytes;
        if let Some(receiving) = receiving.get_mut(channel / 2) {
            receiving.take(channel % 2 == 1, &bytes).await;
        }
    }
}
