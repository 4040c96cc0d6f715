//! `/healthz` over HTTP, which livenessprobe serves elsewhere.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;

/// The number of connections at once.
const CONNECTIONS: usize = 16;
/// How long a client may take for its request, and the check for its answer.
const LIMIT: Duration = Duration::from_secs(10);

/// Whether the driver works; otherwise why not.
pub type Check = Arc<dyn Fn() -> BoxFuture<'static, Result<(), String>> + Send + Sync>;

/// Serves `/healthz` until `stop`: 200 and `ok`, or 503 and the reason.
pub async fn serve(listener: TcpListener, check: Check, stop: CancellationToken) {
    let connections = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else {
            return;
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => return,
        };
        let Ok((stream, _)) = accepted else {
            // Mostly for lack of file descriptors.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let check = Arc::clone(&check);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&check)));
            let mut server = http1::Builder::new();
            server
                .timer(TokioTimer::new())
                .header_read_timeout(LIMIT)
                .keep_alive(false);
            // A connection that breaks is the client's.
            drop(server.serve_connection(TokioIo::new(stream), service).await);
            drop(permit);
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    check: Check,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (status, body) = match request.uri().path() {
        "/healthz" => match tokio::time::timeout(LIMIT, check()).await {
            Ok(Ok(())) => (StatusCode::OK, "ok".to_owned()),
            Ok(Err(reason)) => (StatusCode::SERVICE_UNAVAILABLE, reason),
            Err(_) => {
                let reason = format!("the driver has not answered within {} s", LIMIT.as_secs());
                (StatusCode::SERVICE_UNAVAILABLE, reason)
            }
        },
        _ => (StatusCode::NOT_FOUND, "there is /healthz".to_owned()),
    };
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = status;
    Ok(response)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    #[tokio::test]
    async fn the_answer_is_that_of_the_check() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let works = Arc::new(AtomicBool::new(true));
        let asked = Arc::clone(&works);
        let check: Check = Arc::new(move || {
            let works = asked.load(Ordering::Relaxed);
            Box::pin(async move {
                if works {
                    Ok(())
                } else {
                    Err("no socket".to_owned())
                }
            })
        });
        let stop = CancellationToken::new();
        let served = tokio::spawn(serve(listener, check, stop.clone()));
        let get = async |path: &str| {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).await.unwrap();
            answer
        };
        let answer = get("/healthz").await;
        assert!(
            answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("ok"),
            "{answer}"
        );
        assert!(get("/").await.starts_with("HTTP/1.1 404 "));
        works.store(false, Ordering::Relaxed);
        let answer = get("/healthz").await;
        assert!(
            answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("no socket"),
            "{answer}"
        );
        stop.cancel();
        served.await.unwrap();
    }
}
