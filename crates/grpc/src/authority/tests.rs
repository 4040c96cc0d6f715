use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::{Answer, Client, Context as CallContext, Limits, Method, Service, answer, serve};

#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, tag = "1")]
    text: String,
}

impl Method for Ask {
    const PATH: &'static str = "/test.v1.Test/Ask";
    type Response = Ask;
}

struct Echo;

impl Service for Echo {
    fn call(&self, path: &str, _: CallContext, body: Bytes) -> Option<Answer<'_>> {
        let echo = |ask: Ask| -> futures::future::BoxFuture<'_, _> {
            Box::pin(std::future::ready(Ok(ask)))
        };
        (path == Ask::PATH).then(|| answer(body, echo))
    }
}

fn served() -> DuplexStream {
    let (here, there) = tokio::io::duplex(1 << 16);
    let stop = CancellationToken::new();
    let there = AnyAuthority::new(there);
    tokio::spawn(serve(there, Arc::new(Echo), Limits::default(), stop));
    here
}

fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    let mut frame = vec![
        length[1], length[2], length[3], kind, flags, 0, 0, 0, stream,
    ];
    frame.extend(payload);
    frame
}

fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        block.push(0);
        text(&mut block, name.as_bytes());
        text(&mut block, value.as_bytes());
    }
    block
}

/// The bytes of a client: preface, settings, and a call whose host is `authority`.
fn call(authority: &str) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    bytes.extend(frame(4, 0, 0, &[]));
    let block = headers(&[
        (":method", "POST"),
        (":scheme", "http"),
        (":path", Ask::PATH),
        (":authority", authority),
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        ("user-agent", &"long ".repeat(60)),
    ]);
    // Padded, with a priority, and in two frames.
    let (first, second) = block.split_at(block.len() / 2);
    let mut padded = vec![3, 0, 0, 0, 0, 15];
    padded.extend(first);
    padded.extend([0, 0, 0]);
    bytes.extend(frame(HEADERS, PADDED | PRIORITY, 1, &padded));
    bytes.extend(frame(CONTINUATION, END_HEADERS, 1, second));
    let message = crate::frame::frame(&Ask {
        text: "hello".to_owned(),
    });
    bytes.extend(frame(0, END_STREAM, 1, &message));
    bytes
}

/// The types of the frames of stream 1 that the server sends, until one ends the stream.
async fn answered(mut stream: DuplexStream, bytes: &[u8], pieces: usize) -> Vec<u8> {
    for piece in bytes.chunks(pieces) {
        stream.write_all(piece).await.unwrap();
    }
    let mut kinds = Vec::new();
    loop {
        let mut head = [0; HEAD];
        if stream.read_exact(&mut head).await.is_err() {
            return kinds;
        }
        let length = usize::from(head[1]) << 8 | usize::from(head[2]);
        let mut payload = vec![0; length];
        stream.read_exact(&mut payload).await.unwrap();
        if head[8] == 1 {
            kinds.push(head[3]);
            let is_reset = head[3] == 3;
            if is_reset || head[3] == HEADERS && head[4] & END_STREAM != 0 {
                return kinds;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_host_is_a_path_is_answered() {
    for authority in ["/csi/csi.sock", "%2Fcsi%2Fcsi.sock", "", "localhost", "a:1"] {
        let bytes = call(authority);
        for pieces in [1, 7, bytes.len()] {
            let kinds = answered(served(), &bytes, pieces).await;
            // Headers, the message, trailers.
            assert_eq!(
                kinds,
                [HEADERS, 0, HEADERS],
                "{authority} in pieces of {pieces}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn h2_alone_refuses_such_a_call() {
    let (here, there) = tokio::io::duplex(1 << 16);
    let stop = CancellationToken::new();
    tokio::spawn(serve(there, Arc::new(Echo), Limits::default(), stop));
    let kinds = answered(here, &call("/csi/csi.sock"), 1000).await;
    assert_eq!(kinds, [3], "a reset: then nothing here is needed any more");
}

#[tokio::test(start_paused = true)]
async fn other_clients_are_served_as_before() {
    let limit = Duration::from_secs(60);
    let client = Client::connect(served(), "http://test", limit, 1 << 20);
    let client = client.await.unwrap();
    for length in [0, 1, 1000, 100_000] {
        let ask = Ask {
            text: "x".repeat(length),
        };
        assert_eq!(client.call(&ask).await.unwrap(), ask);
    }
}

#[test]
fn headers_that_grow_beyond_the_limit_end_the_connection() {
    let mut rewriting = Rewriting::default();
    rewriting.put(&[0; PREFACE]).unwrap();
    // A long field in the table, and then each byte is that field again.
    let mut block = vec![0x40];
    text(&mut block, b"a");
    text(&mut block, &[b'x'; 3000]);
    block.extend([0xbe; 1000]);
    let error = rewriting.put(&frame(HEADERS, END_HEADERS, 1, &block));
    assert!(error.unwrap_err().to_string().contains("too large"));
    assert!(rewriting.after.len() <= PREFACE);
    for bytes in [
        frame(CONTINUATION, END_HEADERS, 1, &[]),
        frame(HEADERS, PADDED, 1, &[200]),
        frame(HEADERS, PRIORITY, 1, &[1]),
        [1, 0, 0, HEADERS, 0, 0, 0, 0, 1].to_vec(),
    ] {
        let mut rewriting = Rewriting::default();
        rewriting.put(&[0; PREFACE]).unwrap();
        assert!(rewriting.put(&bytes).is_err(), "{bytes:?}");
    }
}

proptest! {
    #[test]
    fn any_bytes_end_in_bytes_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..2000), block in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut rewriting = Rewriting::default();
        let _ = rewriting.put(&bytes);
        let mut rewriting = Rewriting::default();
        rewriting.put(&[0; PREFACE]).unwrap();
        let _ = rewriting.put(&frame(HEADERS, END_HEADERS, 1, &block));
        let _ = rewriting.put(&frame(HEADERS, END_HEADERS, 3, &block));
    }

    #[test]
    fn texts_of_any_length_are_read_as_they_were_written(length in 0usize..40_000) {
        let mut block = vec![0];
        text(&mut block, b"name");
        text(&mut block, &vec![b'x'; length]);
        let read = Decoder::new().decode(&block).unwrap();
        prop_assert_eq!(read[0].1.len(), length);
    }
}
