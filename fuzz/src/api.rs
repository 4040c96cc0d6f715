//! The API server's target: whatever comes in, the answer is one that Kubernetes gives, and the server goes on answering.

use std::cell::OnceCell;

use apiserver::{ApiServer, Options};
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

use crate::requests::{parts, read};

/// What kube-apiserver answers with 500 as well: webhooks that do not answer, applied objects with a field that their
/// kind does not have, and a `$patch` that is no directive. (504 says that a revision is yet to come.)
const FOREIGN: [&str; 3] = [
    "webhook",
    "failed to create typed patch object",
    "unknown patch type",
];

thread_local! {
    static RUNTIME: OnceCell<tokio::runtime::Runtime> = const { OnceCell::new() };
}

/// Up to eight requests of an administrator to one new server, as `requests` tells them.
pub fn request(data: &[u8]) {
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().build().expect("a runtime")
        });
        runtime.block_on(async {
            let server = ApiServer::open(Options::default())
                .await
                .expect("a server in memory");
            for request in parts(data).filter_map(read) {
                send(&server, request).await;
            }
            let (status, list) = send(&server, get("/api/v1/namespaces")).await;
            assert_eq!(status, 200);
            assert!(list.is_some_and(|list| list["items"].is_array()));
            server.close().await;
        });
    });
}

fn get(path: &str) -> Request<Vec<u8>> {
    let mut request = Request::new(Vec::new());
    *request.uri_mut() = path.parse().expect("a path");
    request
}

async fn send(server: &ApiServer, request: Request<Vec<u8>>) -> (StatusCode, Option<Value>) {
    let asked = format!("{} {}", request.method(), request.uri());
    // A watch goes on.
    let endless = asked.contains("watch");
    let request = request.map(|body| Full::new(Bytes::from(body)));
    let answer = server.in_process().oneshot(request).await;
    let answer = answer.expect("an answer");
    let status = answer.status();
    if endless {
        assert!(!status.is_server_error(), "{asked}: {status}");
        return (status, None);
    }
    let json = answer
        .headers()
        .get("content-type")
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    let body = answer.into_body().collect().await;
    let body = body.expect("a body in memory").to_bytes();
    let value: Option<Value> = serde_json::from_slice(&body).ok();
    assert!(!json || value.is_some(), "{asked}: no JSON");
    let words = String::from_utf8_lossy(&body);
    let own = status.is_server_error()
        && status != 504
        && !FOREIGN.iter().any(|known| words.contains(known));
    assert!(!own, "{asked}: {status} {words}");
    (status, value)
}
