use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::k8s_openapi::api::core::v1::Pod;
use api::kube;
use api::kube::api::{Api, EvictParams};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use super::*;

/// kube-apiserver's answer to an eviction that a disruption budget forbids; there is no Retry-After.
const FORBIDDEN: &str = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"Cannot evict pod as it would violate the pod's disruption budget.","reason":"TooManyRequests","details":{"causes":[{"reason":"DisruptionBudget","message":"The disruption budget web needs 2 healthy pods and has 2 currently"}]},"code":429}"#;

/// A server that answers every request with `FORBIDDEN`, and the number of requests.
async fn refusing() -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&requests);
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut buffer = vec![0; 64 << 10];
            let _ = stream.read(&mut buffer).await.unwrap();
            count.fetch_add(1, Ordering::SeqCst);
            let answer = format!(
                "HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\
                 content-length: {}\r\nconnection: close\r\n\r\n{FORBIDDEN}",
                FORBIDDEN.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
            // Closed with data unread, the connection would be reset.
            while stream.read(&mut buffer).await.is_ok_and(|count| count > 0) {}
        }
    });
    (url, requests)
}

#[tokio::test]
async fn an_eviction_that_a_budget_forbids_is_reported_and_not_repeated() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (url, requests) = refusing().await;
    let kubeconfig = format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
         clusters: [{{name: c, cluster: {{server: \"{url}\"}}}}]\n\
         users: [{{name: u, user: {{token: t}}}}]\n\
         contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n"
    );
    let client = KubeconfigConnector
        .connect(&ClusterKey::new("default", "demo"), &kubeconfig.into())
        .await
        .unwrap();
    let pods: Api<Pod> = Api::namespaced(client, "default");
    let refused = pods.evict("web", &EvictParams::default()).await;
    let Err(kube::Error::Api(status)) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(status.code, 429);
    assert_eq!(requests.load(Ordering::SeqCst), 1);
}
