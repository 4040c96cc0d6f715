use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use http_body_util::{BodyExt as _, Full};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const SHORT: Limits = Limits {
    connections: 20,
    header: Duration::from_millis(300),
    body: Duration::from_millis(300),
    idle: Duration::from_millis(900),
    write: Duration::from_secs(60),
};

/// Server that answers each request after its body, and never answers `/never`; requests are counted.
async fn served(limits: Limits) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    let answer = move |_, request: Request<Arriving>| {
        count.fetch_add(1, Ordering::SeqCst);
        async move {
            if request.uri().path() == "/never" {
                std::future::pending::<()>().await;
            }
            let text = match request.into_body().collect().await {
                Ok(body) => format!("{} bytes", body.to_bytes().len()),
                Err(error) => error.to_string(),
            };
            Ok(Response::new(Full::new(Bytes::from(text))))
        }
    };
    tokio::spawn(plain(listener, limits, CancellationToken::new(), answer));
    (address, requests)
}

async fn opened(address: SocketAddr, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    stream
}

/// Bytes until the end.
async fn rest(mut stream: TcpStream) -> String {
    let mut text = Vec::new();
    let reading = stream.read_to_end(&mut text);
    let _ = tokio::time::timeout(Duration::from_secs(5), reading)
        .await
        .expect("it stays open");
    String::from_utf8_lossy(&text).into_owned()
}

const CLOSING: &str = "GET / HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";

#[tokio::test]
async fn half_a_request_and_silence_are_closed_after_the_limit() {
    let (address, _) = served(SHORT).await;
    for text in [
        "",
        "GET / HT",
        "GET / HTTP/1.1\r\nhost: a\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        let began = Instant::now();
        assert!(
            !rest(opened(address, text).await).await.contains("200 OK"),
            "{text}"
        );
        assert!(began.elapsed() >= SHORT.header, "{text}");
        assert!(
            began.elapsed() < SHORT.header * 8,
            "{text}: {:?}",
            began.elapsed()
        );
    }
    // A drop now and then does not help.
    let mut slow = opened(address, "GET / HTTP/1.1\r\n").await;
    let began = Instant::now();
    while slow.write_all(b"a: b\r\n").await.is_ok() && began.elapsed() < SHORT.header * 10 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(began.elapsed() < SHORT.header * 8);
}

#[tokio::test]
async fn an_idle_connection_is_closed_later_and_a_running_request_is_not() {
    let (address, _) = served(SHORT).await;
    let mut kept = opened(address, "GET / HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let never = opened(address, "GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let mut answer = vec![0; 1024];
    assert!(kept.read(&mut answer).await.unwrap() > 0);
    tokio::time::sleep(SHORT.header * 2).await;
    kept.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        .await
        .unwrap();
    assert!(
        kept.read(&mut answer).await.unwrap() > 0,
        "closed before its limit"
    );
    let began = Instant::now();
    rest(kept).await;
    assert!(began.elapsed() >= SHORT.header, "{:?}", began.elapsed());
    tokio::time::sleep(SHORT.idle).await;
    assert_eq!(
        never.try_read(&mut answer).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}

#[tokio::test]
async fn a_body_that_does_not_come_is_an_error_and_one_that_comes_is_not() {
    let (address, _) = served(SHORT).await;
    let half = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\nconnection: close\r\n\r\nabc";
    let late = rest(opened(address, half).await).await;
    assert!(late.contains("it was not there within 0 s"), "{late}");
    let whole = rest(opened(address, &format!("{half}defghij")).await).await;
    assert!(whole.contains("10 bytes"), "{whole}");
}

#[tokio::test]
async fn half_requests_lock_nobody_out_and_running_requests_stay() {
    let limits = Limits {
        header: Duration::from_secs(60),
        body: Duration::from_secs(60),
        idle: Duration::from_secs(60),
        ..SHORT
    };
    let (address, requests) = served(limits).await;
    let never = opened(address, "GET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
    while requests.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let mut half = Vec::new();
    for number in 0..200 {
        let text = match number % 3 {
            0 => "",
            1 => "GET / HTTP/1.1\r\nhost: a\r\n",
            _ => "POST /never HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\nabc",
        };
        half.push(opened(address, text).await);
    }
    for _ in 0..5 {
        let answer = rest(opened(address, CLOSING).await).await;
        assert!(answer.contains("200 OK"), "{answer}");
    }
    let mut byte = [0];
    assert_eq!(
        never.try_read(&mut byte).unwrap_err().kind(),
        std::io::ErrorKind::WouldBlock
    );
}
