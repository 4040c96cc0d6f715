//! Cost of hostile answers. A process of its own, since the test measures memory.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::{Compress, Compression, FlushCompress};
use openstack::{CloudConfig, Error, ErrorKind, Session, SessionOptions};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";

/// An answer that begins with `head` and goes on with `piece` for ever.
#[derive(Clone)]
struct Endless {
    head: Vec<u8>,
    piece: Vec<u8>,
}

impl Endless {
    fn new(head: &str, piece: &[u8]) -> Self {
        Self {
            head: head.as_bytes().to_vec(),
            piece: piece.to_vec(),
        }
    }

    /// Returns a compressed body of spaces, a thousandth of its full size, with this status, after `start`.
    fn packed(status: &str, start: &str) -> Self {
        let mut head = format!("HTTP/1.1 {status}\r\ncontent-encoding: gzip\r\n\r\n").into_bytes();
        head.extend([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3]);
        head.extend(deflated(start.as_bytes()));
        Self {
            head,
            piece: deflated(&[b' '; 1 << 20]),
        }
    }
}

/// Compresses `text` to a block without references to earlier data, so that the block can be repeated.
fn deflated(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 << 10);
    let mut packer = Compress::new(Compression::best(), false);
    packer
        .compress_vec(text, &mut out, FlushCompress::Full)
        .unwrap();
    assert_eq!(packer.total_in(), text.len() as u64);
    out
}

/// Cloud whose services, or whose Keystone (`login`), send `answer`; the counter has the bytes that were sent.
async fn cloud(answer: Endless, login: bool) -> (Session, Arc<AtomicUsize>) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let text = format!(
        "clouds: {{c: {{auth: {{auth_url: '{url}', username: u, password: p, project_name: p}}}}}}"
    );
    let config = CloudConfig::parse(&text, "c").unwrap();
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(serve(
                stream,
                answer.clone(),
                login,
                url.clone(),
                Arc::clone(&count),
            ));
        }
    });
    let options = SessionOptions::default();
    (Session::new(config, &options).unwrap(), sent)
}

async fn serve(
    mut stream: TcpStream,
    answer: Endless,
    login: bool,
    url: String,
    sent: Arc<AtomicUsize>,
) {
    let mut request = vec![0; 8192];
    let length = stream.read(&mut request).await.unwrap_or(0);
    let request = String::from_utf8_lossy(&request[..length]).into_owned();
    if request.contains("/auth/tokens") && !login {
        let endpoints =
            json!([{"interface": "public", "region": "r", "url": format!("{url}/v2.1")}]);
        let catalog = json!([{"type": "compute", "name": "nova", "endpoints": endpoints}]);
        let body = json!({"token": {"project": {"id": "p"}, "catalog": catalog}}).to_string();
        let head = format!(
            "{OK}x-subject-token: t\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let _ = stream.write_all((head + &body).as_bytes()).await;
        return;
    }
    let _ = stream.write_all(&answer.head).await;
    while stream.write_all(&answer.piece).await.is_ok() {
        sent.fetch_add(answer.piece.len(), Ordering::Relaxed);
    }
}

async fn failed_login(answer: Endless) -> Error {
    let (session, _) = cloud(answer, true).await;
    session.token().await.unwrap_err()
}

async fn failed_list(answer: Endless) -> Error {
    let (session, _) = cloud(answer, false).await;
    let list = session.compute().servers(&Default::default()).await;
    list.unwrap_err()
}

/// The most memory that the process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_answers_end_at_their_limit_and_take_little_memory() {
    let filler = [b'a'; 64 << 10];
    let plain = Endless::new(&format!("{OK}\r\n{{\"x\":\""), &filler);
    let before = peak();
    let grown = |most: u64, what: &str| {
        let grown = peak() - before;
        assert!(grown < most, "{what}: {grown} MiB");
    };

    // A login: 1 MB of gzip is 1 GB of spaces.
    let error = failed_login(Endless::packed("200 OK", "{\"token\":")).await;
    assert_eq!(error.kind(), ErrorKind::Protocol);
    let why = error.to_string();
    assert!(
        why.contains("127.0.0.1:") && why.contains("the answer is larger than 8 MiB"),
        "{why}"
    );
    grown(60, "a compressed login");

    // An error: a sentence is read, no more.
    let fault = r#"{"error": {"code": 500, "title": "t", "message": "m"}"#;
    let error = failed_login(Endless::packed("500 Internal Server Error", fault)).await;
    let why = error.message();
    assert!(
        why.ends_with("answers 500 Internal Server Error, without an error of OpenStack"),
        "{why}"
    );
    grown(60, "a compressed error");

    // Announced, and so not read.
    let head = format!("{OK}content-length: 9999999999\r\n\r\n");
    let (session, sent) = cloud(Endless::new(&head, &filler), true).await;
    let error = session.token().await.unwrap_err();
    assert!(error.message().contains("larger than 8 MiB"), "{error}");
    assert!(sent.load(Ordering::Relaxed) < 8 << 20);

    // Headers without end: one, and many.
    for head in ["HTTP/1.1 200 OK\r\nx: ", "HTTP/1.1 200 OK\r\n"] {
        let piece: &[u8] = match head.ends_with(' ') {
            true => &filler,
            false => b"x: y\r\n",
        };
        let error = failed_login(Endless::new(head, piece)).await;
        assert_eq!(error.kind(), ErrorKind::Unreachable, "{error}");
    }
    grown(60, "headers");

    let error = failed_list(plain).await;
    assert!(error.message().contains("larger than 32 MiB"), "{error}");
    grown(140, "a list");

    // Short objects take far more as values than as text.
    let empty = b"{\"a\":0},".repeat(4096);
    let end = b"{}]}";
    let mut page = b"{\"servers\":[".to_vec();
    while page.len() < 30 << 20 {
        page.extend(&empty);
    }
    page.extend(end);
    let head = format!("{OK}content-length: {}\r\n\r\n", page.len());
    page.splice(0..0, head.into_bytes());
    let before = peak();
    let answer = Endless {
        head: page,
        piece: vec![b' '],
    };
    let error = failed_list(answer).await;
    assert!(error.message().contains("so many values"), "{error}");
    let grown = peak() - before;
    assert!(grown < 200, "objects: {grown} MiB");
}
