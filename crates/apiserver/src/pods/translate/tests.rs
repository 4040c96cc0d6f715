use tokio::io::DuplexStream;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::*;

const ALL: Streams = Streams {
    stdin: true,
    stdout: true,
    stderr: true,
    tty: false,
};

/// The kubelet's side of a SPDY connection.
struct Kubelet {
    connection: DuplexStream,
    decoder: Decoder,
    buffer: BytesMut,
}

impl Kubelet {
    async fn frame(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next(&mut self.buffer).unwrap() {
                return Some(frame);
            }
            if self.connection.read_buf(&mut self.buffer).await.unwrap() == 0 {
                return None;
            }
        }
    }

    /// The types and ids of the streams that the server opens.
    async fn opened(&mut self, count: usize) -> BTreeMap<String, u32> {
        let mut opened = BTreeMap::new();
        for _ in 0..count {
            match self.frame().await.unwrap() {
                Frame::Syn {
                    stream, headers, ..
                } => opened.insert(headers.get("streamtype").to_owned(), stream),
                other => panic!("no stream begins: {other:?}"),
            };
        }
        opened
    }

    async fn send(&mut self, frame: Bytes) {
        self.connection.write_all(&frame).await.unwrap();
    }
}

/// Connects a client and a kubelet through the translation.
async fn between(
    streams: Streams,
) -> (
    WebSocketStream<DuplexStream>,
    Kubelet,
    tokio::task::JoinHandle<()>,
) {
    let (here, there) = tokio::io::duplex(1 << 16);
    let (near, far) = tokio::io::duplex(1 << 16);
    let server = websocket(there).await;
    let serving = tokio::spawn(async move { serve(server, near, streams).await });
    let client = WebSocketStream::from_raw_socket(here, Role::Client, None).await;
    let kubelet = Kubelet {
        connection: far,
        decoder: Decoder::default(),
        buffer: BytesMut::new(),
    };
    (client, kubelet, serving)
}

async fn heard(client: &mut WebSocketStream<DuplexStream>) -> (u8, Vec<u8>) {
    match client.next().await.unwrap().unwrap() {
        Message::Binary(bytes) => (bytes[0], bytes[1..].to_vec()),
        other => panic!("no bytes: {other:?}"),
    }
}

/// Expects the code 1000; client-go treats any other end as an error.
async fn ended(client: &mut WebSocketStream<DuplexStream>) {
    match client.next().await {
        Some(Ok(Message::Close(Some(frame)))) => assert_eq!(frame.code, CloseCode::Normal),
        other => panic!("no normal end: {other:?}"),
    }
}

#[tokio::test]
async fn a_process_is_given_its_input_and_that_it_ends_and_its_output_and_result_come_back() {
    let (mut client, mut kubelet, serving) = between(ALL).await;
    let opened = kubelet.opened(4).await;
    let kinds: Vec<&str> = opened.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["error", "stderr", "stdin", "stdout"]);
    let number = |kind: &str| opened[kind];

    client.send(message(STDIN, b"hello")).await.unwrap();
    client.send(message(CLOSE, &[STDIN])).await.unwrap();
    // Data after the close is discarded.
    client.send(message(STDIN, b"late")).await.unwrap();
    let expected = |bytes: &'static [u8], fin| Frame::Data {
        stream: number("stdin"),
        fin,
        bytes: Bytes::from_static(bytes),
    };
    assert_eq!(kubelet.frame().await, Some(expected(b"hello", false)));
    assert_eq!(kubelet.frame().await, Some(expected(b"", true)));

    let mut encoder = Encoder::default();
    let reply = encoder.reply(number("stdout"));
    kubelet.send(reply).await;
    for (kind, text, channel) in [
        ("stdout", "out", STDOUT),
        ("stderr", "err", STDERR),
        ("error", "{\"status\":\"Success\"}", ERROR),
    ] {
        kubelet
            .send(spdy::data(number(kind), false, text.as_bytes()))
            .await;
        assert_eq!(
            heard(&mut client).await,
            (channel, text.as_bytes().to_vec())
        );
    }
    for kind in ["stdout", "stderr", "error"] {
        kubelet.send(spdy::data(number(kind), true, b"")).await;
    }
    ended(&mut client).await;
    serving.await.unwrap();
}

#[tokio::test]
async fn a_terminal_has_one_output_and_a_size() {
    let streams = Streams { tty: true, ..ALL };
    let (mut client, mut kubelet, _serving) = between(streams).await;
    let opened = kubelet.opened(4).await;
    let kinds: Vec<&str> = opened.keys().map(String::as_str).collect();
    assert_eq!(kinds, ["error", "resize", "stdin", "stdout"]);
    let size = b"{\"Width\":80,\"Height\":24}";
    client.send(message(RESIZE, size)).await.unwrap();
    let expected = Frame::Data {
        stream: opened["resize"],
        fin: false,
        bytes: Bytes::from_static(size),
    };
    assert_eq!(kubelet.frame().await, Some(expected));
}

#[tokio::test]
async fn a_process_is_let_go_when_its_client_goes() {
    let (client, mut kubelet, serving) = between(ALL).await;
    kubelet.opened(4).await;
    drop(client);
    assert_eq!(kubelet.frame().await, None);
    serving.await.unwrap();
}

#[tokio::test]
async fn pings_of_the_kubelet_are_answered_and_the_end_of_its_connection_ends_the_clients() {
    let (mut client, mut kubelet, serving) = between(ALL).await;
    kubelet.opened(4).await;
    kubelet.send(spdy::ping(2)).await;
    assert_eq!(kubelet.frame().await, Some(Frame::Ping { id: 2 }));
    drop(kubelet);
    ended(&mut client).await;
    serving.await.unwrap();
}
