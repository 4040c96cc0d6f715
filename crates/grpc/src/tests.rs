use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use futures::FutureExt as _;
use http::{HeaderMap, Request, StatusCode};
use proptest::prelude::*;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Answer, Client, Code, Context, Error, Limits, Method, Service, Services, Status, answer, frame,
    serve, timeout,
};

const LIMIT: Duration = Duration::from_secs(60);
const SMALL: Limits = Limits {
    message: 100,
    calls: 8,
};

/// Request for its text in another form.
#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, tag = "1")]
    text: String,
}

/// Never answered.
#[derive(Clone, PartialEq, prost::Message)]
struct Wait {}

/// A method of no server.
#[derive(Clone, PartialEq, prost::Message)]
struct Absent {}

impl Method for Ask {
    const PATH: &'static str = "/test.v1.Test/Ask";
    type Response = Ask;
}

impl Method for Wait {
    const PATH: &'static str = "/test.v1.Waits/Wait";
    type Response = Ask;
}

impl Method for Absent {
    const PATH: &'static str = "/test.v1.Test/Absent";
    type Response = Ask;
}

/// Server of [`Ask`]: answers with the text of the request and the seconds left, or with the error that the text names.
struct Asked;

impl Service for Asked {
    fn call(&self, path: &str, context: Context, body: Bytes) -> Option<Answer<'_>> {
        (path == Ask::PATH).then(|| {
            answer(body, move |ask: Ask| {
                let left = context
                    .deadline
                    .map(|it| (it - Instant::now()).as_secs_f32().round());
                let answered = match ask.text.strip_prefix("fail: ") {
                    Some(message) => Err(Status::new(Code::NotFound, message)),
                    None => Ok(Ask {
                        text: format!("{} {left:?}", ask.text),
                    }),
                };
                std::future::ready(answered).boxed()
            })
        })
    }

    fn page(&self, path: &str) -> Option<Bytes> {
        (path == "/metrics").then(|| Bytes::from_static(b"calls 1\n"))
    }
}

/// Never answers [`Wait`]; counts the calls that are waiting.
#[derive(Clone, Default)]
struct Waiting(Arc<AtomicUsize>);

struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Service for Waiting {
    fn call(&self, path: &str, _: Context, body: Bytes) -> Option<Answer<'_>> {
        (path == Wait::PATH).then(|| {
            answer(body, |_: Wait| {
                self.0.fetch_add(1, Ordering::SeqCst);
                let counted = Counted(Arc::clone(&self.0));
                async move {
                    let _counted = counted;
                    std::future::pending().await
                }
                .boxed()
            })
        })
    }
}

fn served(waiting: Waiting, stop: CancellationToken) -> tokio::io::DuplexStream {
    let (here, there) = tokio::io::duplex(1 << 16);
    let services = Services::default().with(Asked).with(waiting);
    tokio::spawn(serve(there, Arc::new(services), SMALL, stop));
    here
}

async fn client() -> Client {
    let stream = served(Waiting::default(), CancellationToken::new());
    let client = Client::connect(stream, "http://test", LIMIT, 100).await;
    client.unwrap()
}

fn ask(text: &str) -> Ask {
    Ask { text: text.into() }
}

#[tokio::test(start_paused = true)]
async fn a_call_is_answered_and_knows_its_deadline() {
    let client = client().await;
    let answered = client.call(&ask("hello")).await.unwrap();
    assert_eq!(answered.text, "hello Some(60.0)");
    assert_eq!(client.page("/metrics").await.unwrap(), "calls 1\n");
}

#[tokio::test(start_paused = true)]
async fn an_error_has_its_code_and_its_words() {
    let client = client().await;
    for words in ["100 % unknown – 7", "a\nb\r\0", "😀", "%41"] {
        let error = client
            .call(&ask(&format!("fail: {words}")))
            .await
            .unwrap_err();
        let Error::Status(status) = error else {
            panic!("{error}");
        };
        assert_eq!(
            (status.code, status.message.as_str()),
            (Code::NotFound, words)
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_method_that_is_not_there_is_unimplemented() {
    let error = client().await.call(&Absent {}).await.unwrap_err();
    let Error::Status(status) = error else {
        panic!("{error}");
    };
    assert_eq!(status.code, Code::Unimplemented);
    assert_eq!(
        status.message,
        "unknown method Absent for service test.v1.Test"
    );
}

#[tokio::test(start_paused = true)]
async fn messages_beyond_the_limit_are_refused_on_both_sides() {
    let client = client().await;
    let error = client.call(&ask(&"x".repeat(200))).await.unwrap_err();
    let Error::Status(status) = error else {
        panic!("{error}");
    };
    assert_eq!(status.code, Code::ResourceExhausted);
    assert_eq!(status.message, "the message is larger than 100 bytes");
    // 98 bytes with tag and length; the answer has ten more.
    let error = client.call(&ask(&"x".repeat(96))).await.unwrap_err();
    assert!(matches!(&error, Error::Foreign(_)), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_at_its_deadline_and_with_its_caller() {
    let waiting = Waiting::default();
    let stream = served(waiting.clone(), CancellationToken::new());
    let client = Client::connect(stream, "http://test", LIMIT, 100)
        .await
        .unwrap();
    let call = tokio::spawn({
        let client = client.clone();
        async move { client.call(&Wait {}).await }
    });
    until(|| waiting.0.load(Ordering::SeqCst) == 1).await;
    call.abort();
    until(|| waiting.0.load(Ordering::SeqCst) == 0).await;
    let error = client.call(&Wait {}).await.unwrap_err();
    // Whichever of both sides sees the end of the minute first.
    let ended = match &error {
        Error::Status(status) => status.code == Code::DeadlineExceeded,
        error => matches!(error, Error::Timeout(_)),
    };
    assert!(ended, "{error}");
    until(|| waiting.0.load(Ordering::SeqCst) == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_stops_ends_its_calls_first() {
    let stop = CancellationToken::new();
    let waiting = Waiting::default();
    let stream = served(waiting.clone(), stop.clone());
    let client = Client::connect(stream, "http://test", LIMIT, 100)
        .await
        .unwrap();
    client.call(&ask("before")).await.unwrap();
    stop.cancel();
    until_failed(&client).await;
}

/// Polls as tasks run; time is paused, so nothing else passes.
async fn until(condition: impl Fn() -> bool) {
    for _ in 0..1000 {
        if condition() {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the condition did not become true");
}

async fn until_failed(client: &Client) {
    for _ in 0..1000 {
        if client.call(&ask("after")).await.is_err() {
            return;
        }
    }
    panic!("a stopped server still answers");
}

/// The HTTP status and the gRPC code of a raw request.
async fn raw(request: http::request::Builder, body: &[u8]) -> (StatusCode, Option<u32>) {
    let stream = served(Waiting::default(), CancellationToken::new());
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let request = request.body(()).unwrap();
    let (answer, mut sent) = requests
        .ready()
        .await
        .unwrap()
        .send_request(request, false)
        .unwrap();
    let _ = sent.send_data(Bytes::copy_from_slice(body), true);
    let (parts, mut body) = answer.await.unwrap().into_parts();
    let code = |headers: &HeaderMap| headers.get("grpc-status")?.to_str().ok()?.parse().ok();
    if let Some(code) = code(&parts.headers) {
        return (parts.status, Some(code));
    }
    while let Some(Ok(_)) = body.data().await {}
    let trailers = body.trailers().await.ok().flatten().unwrap_or_default();
    (parts.status, code(&trailers))
}

/// A request, its body, and the HTTP status and gRPC code of the answer.
type Row<'a> = (
    &'a str,
    http::request::Builder,
    &'a [u8],
    (StatusCode, Option<u32>),
);

fn post() -> http::request::Builder {
    let to = format!("http://test{}", Ask::PATH);
    Request::post(to).header("content-type", "application/grpc+proto")
}

#[tokio::test(start_paused = true)]
async fn bad_input_has_a_code_of_its_own() {
    let whole = frame::frame(&ask("x"));
    let mut compressed = whole.to_vec();
    compressed[0] = 1;
    let (ok, post) = (StatusCode::OK, post);
    let rows: Vec<Row> = vec![
        ("whole", post(), &whole, (ok, Some(0))),
        ("empty", post(), b"", (ok, Some(13))),
        ("cut", post(), &whole[..6], (ok, Some(13))),
        ("compressed", post(), &compressed, (ok, Some(12))),
        (
            "timeout",
            post().header("grpc-timeout", "1w"),
            &whole,
            (ok, Some(13)),
        ),
        (
            "past",
            post().header("grpc-timeout", "0n"),
            &whole,
            (ok, Some(4)),
        ),
        (
            "no content type",
            Request::post("http://test/a"),
            &whole,
            (StatusCode::UNSUPPORTED_MEDIA_TYPE, None),
        ),
        (
            "put",
            Request::put("http://test/a"),
            &whole,
            (StatusCode::METHOD_NOT_ALLOWED, None),
        ),
        (
            "page",
            Request::get("http://test/a"),
            b"",
            (StatusCode::METHOD_NOT_ALLOWED, None),
        ),
        (
            "strange path",
            Request::post("http://test/%0a/%f0").header("content-type", "application/grpc"),
            &whole,
            (ok, Some(12)),
        ),
    ];
    for (name, request, body, expected) in rows {
        assert_eq!(raw(request, body).await, expected, "{name}");
    }
}

/// Opens calls on one connection whose bodies do not end, and returns the outcome of the last one.
async fn unended(count: usize, bytes: usize) -> Option<u32> {
    let stream = served(Waiting::default(), CancellationToken::new());
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let mut calls = Vec::new();
    for _ in 0..count {
        let request = post().body(()).unwrap();
        let ready = requests.clone().ready().await;
        let (answer, mut sent) = ready.unwrap().send_request(request, false).unwrap();
        sent.send_data(Bytes::from(vec![0; bytes]), false).unwrap();
        calls.push((answer, sent));
    }
    let (answer, _sent) = calls.pop().unwrap();
    let headers = answer.await.unwrap().into_parts().0.headers;
    headers.get("grpc-status")?.to_str().ok()?.parse().ok()
}

#[tokio::test(start_paused = true)]
async fn a_message_that_never_ends_ends_its_call() {
    let begun = Instant::now();
    assert_eq!(unended(1, 50).await, Some(4));
    assert_eq!(begun.elapsed().as_secs(), 60);
}

#[tokio::test(start_paused = true)]
async fn the_messages_of_a_connection_have_a_limit_together() {
    let begun = Instant::now();
    // Two of 100 bytes have room.
    assert_eq!(unended(3, 90).await, Some(8));
    assert!(begun.elapsed() < Duration::from_secs(1));
}

#[test]
fn a_body_that_is_no_message_is_rejected() {
    let whole = frame::frame(&ask("hello"));
    assert_eq!(frame::decode::<Ask>(whole.clone()).unwrap(), ask("hello"));
    let changed = |at: usize, to: u8| {
        let mut bytes = BytesMut::from(whole.as_ref());
        bytes[at] = to;
        bytes.freeze()
    };
    let mut longer = BytesMut::from(whole.as_ref());
    longer.put_u8(0);
    for (body, why) in [
        (Bytes::new(), "no message"),
        (whole.slice(..4), "no message"),
        (changed(0, 1), "compressed"),
        (changed(4, 200), "not as long"),
        (longer.freeze(), "not as long"),
        (changed(5, 0xff), "decoded"),
    ] {
        let problem = frame::decode::<Ask>(body).unwrap_err().to_string();
        assert!(problem.contains(why), "{problem}");
    }
}

#[test]
fn codes_have_the_numbers_of_grpc() {
    for (number, code) in (0u32..).zip(Code::ALL) {
        assert_eq!((code.number(), Code::from(number)), (number, *code));
    }
    assert_eq!(Code::ALL.len(), 17);
    assert_eq!(Code::from(99), Code::Other(99));
}

proptest! {
    #[test]
    fn any_body_is_a_message_or_an_error(body in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(read) = frame::decode::<Ask>(Bytes::from(body.clone())) {
            prop_assert!(read.text.len() + 5 <= body.len());
        }
    }

    #[test]
    fn a_timeout_is_read_as_it_was_written(nanoseconds in any::<u64>()) {
        let time = Duration::from_nanos(nanoseconds);
        let (name, value) = timeout::write(time);
        let headers = HeaderMap::from_iter([(http::HeaderName::from_static(name), value)]);
        let read = timeout::read(&headers).unwrap().unwrap();
        prop_assert!(read >= time && read.as_secs_f64() <= time.as_secs_f64() * 1.000_001 + 1e-9);
    }

    #[test]
    fn any_timeout_is_a_time_or_an_error(value in "[ -~]{0,12}") {
        let headers = HeaderMap::from_iter([(
            http::HeaderName::from_static("grpc-timeout"),
            http::HeaderValue::from_str(&value).unwrap(),
        )]);
        let _ = timeout::read(&headers);
    }

    #[test]
    fn any_message_arrives_up_to_its_limit(message in any::<String>(), number in 1u32..17) {
        let status = Status::new(Code::from(number), message);
        let read = Status::read(&Status::trailers(Err(&status))).unwrap().unwrap_err();
        prop_assert_eq!(read.code, status.code);
        prop_assert!(status.message.is_empty() || read.message == status.message);
    }
}
