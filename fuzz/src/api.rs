//! Target for [`ApiServer`]: each answer is one of Kubernetes, the server keeps answering, and its database can be
//! opened again.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use apiserver::{ApiServer, Body, Options, Store, Synchronous};
use bytes::Bytes;
use futures::FutureExt;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

use crate::requests::{parts, read};

/// Errors with status 500 that kube-apiserver gives as well: webhooks without an answer, applied objects with a field
/// unknown to the schema, an invalid `$patch` directive, objects too large for etcd. (504 is for a revision of the
/// future.)
const FOREIGN: [&str; 4] = [
    "webhook",
    "failed to create typed patch object",
    "unknown patch type",
    "etcdserver: request is too large",
];

thread_local! {
    static RUNTIME: OnceCell<tokio::runtime::Runtime> = const { OnceCell::new() };
}

/// Sends up to eight requests of an administrator, in the form of [`parts`], to a new server in memory and to one on a
/// file.
pub fn request(data: &[u8]) {
    RUNTIME.with(|runtime| {
        let runtime = runtime.get_or_init(|| {
            let mut builder = tokio::runtime::Builder::new_current_thread();
            builder.enable_all().build().expect("a runtime")
        });
        runtime.block_on(async {
            play(data, &Options::default()).await;
            let file = File::new();
            let options = Options {
                store: file.store(),
                ..Options::default()
            };
            play(data, &options).await;
            // Every acknowledged write can be read back.
            play(b"", &options).await;
        });
    });
}

/// Opens a server, sends the requests, and closes the server.
async fn play(data: &[u8], options: &Options) {
    let server = ApiServer::open(options.clone()).await;
    let server = server.expect("a server");
    let mut watches = Vec::new();
    for request in parts(data).filter_map(read) {
        watches.extend(send(&server, request).await.watch);
        watches.iter_mut().for_each(poll);
    }
    let list = send(&server, get("/api/v1/namespaces")).await;
    assert_eq!(list.status, 200);
    assert!(list.value.is_some_and(|list| list["items"].is_array()));
    server.close().await;
    watches.iter_mut().for_each(poll);
}

/// Directory for a database, removed on drop.
struct File(PathBuf);

impl File {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (process, next) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(format!("ferrostack-fuzz-{process}-{next}"));
        std::fs::create_dir(&path).expect("a directory");
        Self(path)
    }

    fn store(&self) -> Store {
        Store::Sqlite {
            path: self.0.join("objects.db"),
            synchronous: Synchronous::Normal,
        }
    }
}

impl Drop for File {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Reads the available events of a [`Watch`]. Each line is an event.
fn poll(watch: &mut Watch) {
    while let Some(Some(frame)) = watch.body.frame().now_or_never() {
        let frame = frame.expect("a body in memory").into_data();
        watch.read.extend_from_slice(&frame.unwrap_or_default());
    }
    while let Some(end) = watch.read.iter().position(|byte| *byte == b'\n') {
        let line: Vec<u8> = watch.read.drain(..=end).collect();
        let event: Value = serde_json::from_slice(&line).expect("an event");
        assert!(event["type"].is_string(), "{}: {event}", watch.asked);
    }
}

struct Watch {
    asked: String,
    body: Body,
    /// Bytes of an incomplete line.
    read: Vec<u8>,
}

struct Answer {
    status: StatusCode,
    value: Option<Value>,
    watch: Option<Watch>,
}

fn get(path: &str) -> Request<Vec<u8>> {
    let mut request = Request::new(Vec::new());
    *request.uri_mut() = path.parse().expect("a path");
    request
}

async fn send(server: &ApiServer, request: Request<Vec<u8>>) -> Answer {
    let asked = format!("{} {}", request.method(), request.uri());
    let request = request.map(|body| Full::new(Bytes::from(body)));
    let answer = server.in_process().oneshot(request).await;
    let answer = answer.expect("an answer");
    let status = answer.status();
    let json = answer
        .headers()
        .get("content-type")
        .is_some_and(|value| value.as_bytes().starts_with(b"application/json"));
    // A watch stays open.
    if json && status == 200 && asked.contains("watch") {
        let watch = Watch {
            asked,
            body: answer.into_body(),
            read: Vec::new(),
        };
        return Answer {
            status,
            value: None,
            watch: Some(watch),
        };
    }
    let body = answer.into_body().collect().await;
    let body = body.expect("a body in memory").to_bytes();
    let value: Option<Value> = serde_json::from_slice(&body).ok();
    assert!(!json || value.is_some(), "{asked}: no JSON");
    let words = String::from_utf8_lossy(&body);
    let internal = status.is_server_error()
        && status != 504
        && !FOREIGN.iter().any(|known| words.contains(known));
    assert!(!internal, "{asked}: {status} {words}");
    Answer {
        status,
        value,
        watch: None,
    }
}
