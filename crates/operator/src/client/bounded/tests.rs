use std::sync::atomic::{AtomicUsize, Ordering};

use futures::TryStreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{Api, ListParams, WatchParams};
use kube::{Client, Config};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::client::{Settings, connected};
use crate::tests::{is_alone, peak};
use crate::words;

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n";

/// Server that begins each answer with `head` and repeats `piece` for ever; the counter has the bytes sent.
async fn endless(head: String, piece: &'static [u8]) -> (Client, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let sent = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&sent);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(head.as_bytes()).await;
            while stream.write_all(piece).await.is_ok() && !piece.is_empty() {
                count.fetch_add(piece.len(), Ordering::Relaxed);
            }
            if piece.is_empty() {
                // Neither more nor an end.
                std::mem::forget(stream);
            }
        }
    });
    (client(&url, Limits::WORKLOAD), sent)
}

fn client(url: &str, limits: Limits) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut config = Config::new(url.parse().unwrap());
    config.proxy_url = None;
    let settings = Settings {
        name: "test".to_owned(),
        limits,
        shared: false,
    };
    connected(config, &settings).unwrap()
}

static PIECE: [u8; 64 << 10] = [b'a'; 64 << 10];

#[tokio::test(flavor = "multi_thread")]
async fn endless_answers_end_at_their_limit_and_take_little_memory() {
    if !is_alone(
        "client::bounded::tests::endless_answers_end_at_their_limit_and_take_little_memory",
    ) {
        return;
    }
    let before = peak();
    let (client, sent) = endless(format!("{OK}\r\n{{\"x\":\""), &PIECE).await;
    let nodes: Api<Node> = Api::all(client.clone());
    let why = words::chain(&nodes.get("a").await.unwrap_err());
    assert!(
        why.contains("127.0.0.1:") && why.contains("is larger than 8 MiB"),
        "{why}"
    );
    let why = words::chain(&nodes.list(&ListParams::default()).await.unwrap_err());
    assert!(why.contains("is larger than 64 MiB"), "{why}");
    let watch = nodes.watch(&WatchParams::default(), "0").await.unwrap();
    let why = words::chain(&watch.try_collect::<Vec<_>>().await.unwrap_err());
    assert!(why.contains("a line of more than 8 MiB"), "{why}");
    let grown = peak() - before;
    assert!(sent.load(Ordering::Relaxed) >= 80 << 20);
    assert!(grown < 400, "{grown} MiB");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_many_empty_objects_does_not_grow_a_hundredfold() {
    if !is_alone("client::bounded::tests::a_list_of_many_empty_objects_does_not_grow_a_hundredfold")
    {
        return;
    }
    let (client, _) = endless(
        format!("{OK}\r\n{{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"metadata\":{{}},\"items\":[{{}}"),
        b",{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
    )
    .await;
    let before = peak();
    let nodes: Api<Node> = Api::all(client.clone());
    let why = words::chain(&nodes.list(&ListParams::default()).await.unwrap_err());
    assert!(why.contains("more than 250000 objects in lists"), "{why}");
    let watch = nodes.watch(&WatchParams::default(), "0").await.unwrap();
    let why = words::chain(&watch.try_collect::<Vec<_>>().await.unwrap_err());
    assert!(why.contains("more than 250000 objects in lists"), "{why}");
    let grown = peak() - before;
    assert!(grown < 200, "{grown} MiB");
}

#[tokio::test]
async fn an_answer_that_is_announced_too_large_is_not_read() {
    let (client, sent) = endless(format!("{OK}content-length: 9999999999\r\n\r\n"), &PIECE).await;
    let nodes: Api<Node> = Api::all(client);
    let why = words::chain(&nodes.get("a").await.unwrap_err());
    assert!(why.contains("is larger than 8 MiB"), "{why}");
    assert!(sent.load(Ordering::Relaxed) < 8 << 20);
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_an_error_after_the_limit_and_a_watch_goes_on() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = vec![0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(format!("{OK}\r\n{{").as_bytes()).await;
            std::mem::forget(stream);
        }
    });
    let limits = Limits {
        whole: Duration::from_millis(200),
        ..Limits::WORKLOAD
    };
    let nodes: Api<Node> = Api::all(client(&url, limits));
    let why = words::chain(&nodes.get("a").await.unwrap_err());
    assert!(why.contains("did not end within 0 s"), "{why}");
    let watch = nodes.watch(&WatchParams::default(), "0").await.unwrap();
    let mut watch = Box::pin(watch);
    let quiet = tokio::time::timeout(Duration::from_millis(600), watch.try_next()).await;
    assert!(quiet.is_err());
}

#[tokio::test]
async fn a_page_that_is_no_status_is_not_shown_and_a_status_is() {
    let page = "<html>canary-of-a-page</html>";
    for (code, body, shown) in [
        ("404 Not Found", page, "404 Not Found, without a Status"),
        (
            "500 Internal Server Error",
            r#"{"password":"canary-of-a-page"}"#,
            "answers 500",
        ),
        (
            "403 Forbidden",
            r#"{"kind":"Status","apiVersion":"v1","status":"Failure","message":"nodes is forbidden","reason":"Forbidden","code":403}"#,
            "nodes is forbidden",
        ),
    ] {
        let head = format!(
            "HTTP/1.1 {code}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let (client, _) = endless(head, b"").await;
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let error = maps.get("a").await.unwrap_err();
        let why = words::chain(&error);
        assert!(why.contains(shown), "{why}");
        assert!(!format!("{error:?} {why}").contains("canary"), "{error:?}");
        let kube::Error::Api(status) = &error else {
            panic!("{error:?}")
        };
        assert_eq!(status.code.to_string(), code[..3]);
    }
    // An answer that is no object of Kubernetes.
    let body = r#""canary-of-a-page""#;
    let (client, _) = endless(
        format!("{OK}content-length: {}\r\n\r\n{body}", body.len()),
        b"",
    )
    .await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let why = words::chain(&maps.get("a").await.unwrap_err());
    assert!(
        why.contains("is not the object that was asked for"),
        "{why}"
    );
    assert!(!why.contains("canary"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endless_page_of_an_error_is_not_read_to_its_end() {
    let head = "HTTP/1.1 502 Bad Gateway\r\nconnection: close\r\n\r\n".to_owned();
    let (client, sent) = endless(head, &PIECE).await;
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let why = words::chain(&maps.get("a").await.unwrap_err());
    assert!(why.contains("502 Bad Gateway, without a Status"), "{why}");
    assert!(sent.load(Ordering::Relaxed) < 16 << 20);
}

#[test]
fn collections_are_told_from_objects() {
    let is = |path: &str| is_list(&Method::GET, &path.parse().unwrap());
    for list in [
        "/api/v1/nodes?limit=500",
        "/api/v1/namespaces",
        "/apis/apps/v1/deployments",
        "/api/v1/namespaces/a/pods",
        "/apis/apps/v1/namespaces/a/deployments/",
    ] {
        assert!(is(list), "{list}");
    }
    for object in [
        "/",
        "/version",
        "/api",
        "/api/v1",
        "/apis/apps/v1",
        "/api/v1/nodes/a",
        "/api/v1/namespaces/a/pods/b",
        "/openapi/v3/api/v1",
    ] {
        assert!(!is(object), "{object}");
    }
}
