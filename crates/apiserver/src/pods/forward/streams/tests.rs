use std::collections::BTreeMap;

use futures::future::{BoxFuture, FutureExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::kubelet::{Connection, Kubelet, Log};

/// A pod that accepts connections on port 80 only, and answers with all received bytes in reverse.
struct Pod;

impl Kubelet for Pod {
    fn is_reachable(&self, _: &Value) -> bool {
        true
    }

    fn log<'a>(
        &'a self,
        _: &'a Value,
        _: &'a Value,
        _: &'a str,
        _: bool,
    ) -> BoxFuture<'a, Result<Log, String>> {
        async { Err("none".to_owned()) }.boxed()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Value,
        _: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        async move {
            if port != 80 {
                return Err("refused".to_owned());
            }
            let (here, mut there) = tokio::io::duplex(1 << 10);
            tokio::spawn(async move {
                let mut received = Vec::new();
                there.read_to_end(&mut received).await.unwrap();
                received.reverse();
                there.write_all(&received).await.unwrap();
            });
            Ok(Box::new(here) as Box<dyn Connection>)
        }
        .boxed()
    }
}

/// The client of a connection.
struct Client {
    out: mpsc::Sender<Bytes>,
    encoder: Encoder,
    received: mpsc::Receiver<Bytes>,
    decoder: Decoder,
    buffer: BytesMut,
}

impl Client {
    fn new() -> Self {
        let (out, mut inward) = mpsc::channel(100);
        let (outgoing, received) = mpsc::channel(100);
        let target = Arc::new(Target {
            kubelet: Arc::new(Pod),
            node: json!({}),
            pod: json!({"metadata": {"name": "p", "uid": "u"}}),
        });
        tokio::spawn(async move {
            let pieces = futures::stream::poll_fn(move |context| inward.poll_recv(context));
            serve(pieces, outgoing, target).await;
        });
        Self {
            out,
            encoder: Encoder::default(),
            received,
            decoder: Decoder::default(),
            buffer: BytesMut::new(),
        }
    }

    async fn send(&self, bytes: Bytes) {
        self.out.send(bytes).await.unwrap();
    }

    async fn open(&mut self, stream: u32, kind: &str, port: &str, request: &str) {
        let pairs = [("streamtype", kind), ("port", port), ("requestid", request)];
        let given = pairs.into_iter().filter(|(_, value)| !value.is_empty());
        let headers: BTreeMap<String, String> = given
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let frame = self.encoder.syn(stream, false, &Headers(headers));
        self.send(frame).await;
    }

    /// The next frame; `None` at the end.
    async fn receive(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            self.buffer.extend_from_slice(&self.received.recv().await?);
        }
    }

    async fn expect(&mut self, expected: Frame) {
        assert_eq!(self.receive().await, Some(expected));
    }
}

fn bytes(stream: u32, fin: bool, text: &str) -> Frame {
    Frame::Data {
        stream,
        fin,
        bytes: Bytes::copy_from_slice(text.as_bytes()),
    }
}

const REPLY: Frame = Frame::Other;

#[tokio::test]
async fn a_pair_of_streams_is_a_connection_whose_directions_close_independently() {
    let mut client = Client::new();
    client.open(1, "error", "80", "0").await;
    client.open(3, "data", "80", "0").await;
    client.expect(REPLY).await;
    client.expect(REPLY).await;
    client.send(spdy::data(1, true, b"")).await;
    client.send(spdy::data(3, false, b"hel")).await;
    client.send(spdy::data(3, true, b"lo")).await;
    client.expect(bytes(3, false, "olleh")).await;
    client.expect(bytes(3, true, "")).await;
    client.expect(bytes(1, true, "")).await;
    // The same connection carries another pair, also of a client without request ids.
    client.open(5, "error", "80", "").await;
    client.open(7, "data", "80", "").await;
    client.expect(REPLY).await;
    client.expect(REPLY).await;
    client.send(spdy::data(7, true, b"ab")).await;
    client.expect(bytes(7, false, "ba")).await;
}

#[tokio::test]
async fn a_port_without_a_listener_is_reported_in_the_error_stream() {
    let mut client = Client::new();
    client.open(1, "error", "81", "0").await;
    client.open(3, "data", "81", "0").await;
    client.expect(REPLY).await;
    client.expect(REPLY).await;
    let words = "error forwarding port 81 to pod p, uid u: refused";
    client.expect(bytes(1, false, words)).await;
    client.expect(Frame::Reset { stream: 3 }).await;
    client.expect(Frame::Reset { stream: 1 }).await;
}

#[tokio::test]
async fn streams_of_unknown_types_are_reset_and_pings_are_answered() {
    let mut client = Client::new();
    for (stream, kind, port) in [
        (1, "data", "0"),
        (3, "data", "x"),
        (5, "odd", "80"),
        (7, "", "80"),
    ] {
        client.open(stream, kind, port, "0").await;
        client.expect(Frame::Reset { stream }).await;
    }
    // An even id, which only servers may use, and the id of an earlier stream.
    for stream in [8, 7] {
        client.open(stream, "data", "80", "0").await;
        client.expect(Frame::Reset { stream }).await;
    }
    client.send(spdy::ping(9)).await;
    client.expect(Frame::Ping { id: 9 }).await;
    client.open(11, "error", "80", "0").await;
    client.expect(REPLY).await;
    client.open(13, "error", "80", "0").await;
    client.expect(REPLY).await;
    let words = "error processing stream for request 0: error stream already assigned";
    client.expect(bytes(11, false, words)).await;
    client.expect(Frame::Reset { stream: 13 }).await;
}

#[tokio::test]
async fn resetting_a_data_stream_ends_its_error_stream() {
    let mut client = Client::new();
    client.open(1, "error", "80", "0").await;
    client.open(3, "data", "80", "0").await;
    client.expect(REPLY).await;
    client.expect(REPLY).await;
    client.send(spdy::reset(3, Status::Cancel)).await;
    client.expect(bytes(1, true, "")).await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_without_its_pair_is_closed_after_a_timeout_and_buffers_little() {
    let mut client = Client::new();
    client.open(1, "error", "80", "0").await;
    client.expect(REPLY).await;
    let words = "(request=0) timed out waiting for streams";
    client.expect(bytes(1, false, words)).await;
    client.expect(Frame::Reset { stream: 1 }).await;
    client.open(3, "data", "80", "1").await;
    client.expect(REPLY).await;
    for _ in 0..=UNTAKEN {
        client.send(spdy::data(3, false, b"x")).await;
    }
    client.expect(Frame::Reset { stream: 3 }).await;
}

#[tokio::test]
async fn bytes_that_are_not_spdy_end_the_connection_with_an_error() {
    let mut client = Client::new();
    client
        .send(Bytes::from_static(b"GET / HTTP/1.1\r\n\r\n"))
        .await;
    // Read as a frame, "GET " is a data frame of a stream, with a large length.
    client.send(Bytes::from(vec![0xff; 8 << 20])).await;
    client.expect(Frame::GoAway).await;
    assert_eq!(client.receive().await, None);
}

#[tokio::test]
async fn streams_above_the_limit_are_rejected() {
    let mut client = Client::new();
    for n in 0..MOST as u32 {
        client.open(2 * n + 1, "error", "80", &n.to_string()).await;
        client.expect(REPLY).await;
    }
    let stream = 2 * MOST as u32 + 1;
    client.open(stream, "error", "80", "last").await;
    client.expect(Frame::Reset { stream }).await;
}
