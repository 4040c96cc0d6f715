use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Secret;
use api::kube::api::{Patch, PatchParams, PostParams};
use apiserver::ApiServer;
use futures::{FutureExt, StreamExt};
use operator::client::Api;
use serde_json::json;

use super::*;

/// Connects to a server in this process, or fails.
struct Switch {
    server: ApiServer,
    on: AtomicBool,
}

impl Debug for Switch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Switch")
    }
}

impl Connector for Switch {
    fn connect<'a>(
        &'a self,
        _: &'a ClusterKey,
        _: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        let answer = match self.on.load(Ordering::SeqCst) {
            true => Ok(Client::new(self.server.in_process(), "default")),
            false => Err("connection refused".to_owned()),
        };
        async move { answer }.boxed()
    }
}

async fn setup(on: bool) -> (Remote, Arc<Switch>, Client, ClusterKey) {
    let management = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let management = Client::new(management.in_process(), "default");
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let switch = Arc::new(Switch {
        server,
        on: AtomicBool::new(on),
    });
    let remote = Remote::new(
        management.clone(),
        switch.clone(),
        8,
        CancellationToken::new(),
    );
    (
        remote,
        switch,
        management,
        ClusterKey::new("default", "demo"),
    )
}

async fn publish(management: &Client) {
    let secrets: Api<Secret> = Api::namespaced(management.clone(), "default");
    let secret = json!({
        "metadata": { "name": "demo-kubeconfig" }, "stringData": { "value": "text" },
    });
    let secret = serde_json::from_value(secret).unwrap();
    secrets
        .create(&PostParams::default(), &secret)
        .await
        .unwrap();
}

#[tokio::test]
async fn nobody_waits_for_a_connection() {
    let (remote, _, _, key) = setup(true).await;
    let refusal = remote.client(&key).err().unwrap();
    assert_eq!(
        refusal.to_string(),
        "cluster default/demo cannot be reached: not tried yet"
    );
    remote.track(&key);
    let mut message = String::new();
    while !message.contains("demo-kubeconfig") {
        message = remote.client(&key).err().unwrap().to_string();
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(message.contains("does not exist yet"), "{message}");
}

#[tokio::test]
async fn a_cluster_is_connected_when_it_answers_and_its_nodes_are_told_of() {
    let (remote, switch, management, key) = setup(false).await;
    let mut changes = remote.changes();
    remote.track(&key);
    publish(&management).await;
    while remote.health(&key).problem.as_deref() != Some("connection refused") {
        remote.track(&key);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    switch.on.store(true, Ordering::SeqCst);
    remote.track(&key);
    // The first attempt has failed; later failures send no change.
    let first = changes.next().await;
    assert_eq!(first, Some(Change::Disconnected(key.clone())));
    assert_eq!(changes.next().await, Some(Change::Connected(key.clone())));
    assert!(remote.health(&key).connected);
    assert!(remote.health(&key).uid.is_some());
    let client = remote.client(&key).unwrap();
    let nodes: Api<Node> = Api::all(client);
    let node = json!({ "metadata": { "name": "n" }, "spec": { "providerID": "fake:///1" } });
    let node = serde_json::from_value(node).unwrap();
    nodes.create(&PostParams::default(), &node).await.unwrap();
    let change = Change::Node {
        cluster: key.clone(),
        name: "n".to_owned(),
        provider_id: Some("fake:///1".to_owned()),
    };
    assert_eq!(changes.next().await, Some(change));
    assert_eq!(remote.nodes_of(&key, "fake:///1").unwrap().len(), 1);
    assert!(remote.nodes_of(&key, "fake:///2").unwrap().is_empty());
    let label = Patch::Merge(json!({ "metadata": { "labels": { "a": "b" } } }));
    nodes
        .patch("n", &PatchParams::default(), &label)
        .await
        .unwrap();
    assert!(matches!(changes.next().await, Some(Change::Node { .. })));
    remote.forget(&key);
    assert_eq!(
        changes.next().await,
        Some(Change::Disconnected(key.clone()))
    );
    assert!(remote.client(&key).is_err());
}

#[tokio::test]
async fn a_kubeconfig_must_not_name_programs_or_files() {
    let user = |content: &str| {
        format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: c\n\
             clusters: [{{name: c, cluster: {{server: 'https://127.0.0.1:1'}}}}]\n\
             contexts: [{{name: c, context: {{cluster: c, user: u}}}}]\n\
             users: [{{name: u, user: {{{content}}}}}]\n"
        )
    };
    let key = ClusterKey::new("default", "demo");
    for (content, word) in [
        (
            "exec: {apiVersion: client.authentication.k8s.io/v1, command: sh}",
            "program",
        ),
        ("tokenFile: /etc/passwd", "file"),
        ("client-key: /etc/passwd", "file"),
    ] {
        let text = SecretString::from(user(content));
        let refusal = KubeconfigConnector::default()
            .connect(&key, &text)
            .await
            .err()
            .unwrap();
        assert!(refusal.contains(word), "{refusal}");
    }
    let broken = SecretString::from("users: 3".to_owned());
    assert!(
        KubeconfigConnector::default()
            .connect(&key, &broken)
            .await
            .is_err()
    );
}

/// A client that counts the requests whose path contains `part`.
fn counting(server: &ApiServer, part: &'static str) -> (Client, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let (inner, counted) = (
        Client::new(server.in_process(), "default"),
        Arc::clone(&count),
    );
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        if request.uri().path().contains(part) {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        let client = inner.clone();
        async move { client.send(request).await }
    });
    (Client::new(service, "default"), count)
}

#[tokio::test(start_paused = true)]
async fn a_kubeconfig_is_read_again_only_when_a_watch_shows_another_version() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let (management, reads) = counting(&server, "/secrets/demo-kubeconfig");
    let workload = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let switch = Arc::new(Switch {
        server: workload,
        on: AtomicBool::new(true),
    });
    publish(&Client::new(server.in_process(), "default")).await;
    let shutdown = CancellationToken::new();
    let remote = Remote::new(management.clone(), switch, 8, shutdown.clone());
    let _stop = shutdown.drop_guard();
    let key = ClusterKey::new("default", "demo");
    let mut changes = remote.changes();
    remote.track(&key);
    assert_eq!(changes.next().await, Some(Change::Connected(key.clone())));
    let first = reads.load(Ordering::SeqCst);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(reads.load(Ordering::SeqCst), first);
    assert!(remote.health(&key).connected);
    // The resourceVersion of the Secret is between 1 and the maximum.
    remote.kubeconfig_is(&key, "1");
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(reads.load(Ordering::SeqCst), first);
    remote.kubeconfig_is(&key, &u64::MAX.to_string());
    assert_eq!(
        changes.next().await,
        Some(Change::Disconnected(key.clone()))
    );
    assert_eq!(reads.load(Ordering::SeqCst), first);
    remote.track(&key);
    while reads.load(Ordering::SeqCst) == first {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Counts how many connect at a time; none succeeds.
#[derive(Debug, Default)]
struct Crowd {
    now: AtomicUsize,
    most: AtomicUsize,
    all: AtomicUsize,
}

impl Connector for Crowd {
    fn connect<'a>(
        &'a self,
        _: &'a ClusterKey,
        _: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        async {
            let now = self.now.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(now, Ordering::SeqCst);
            self.all.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(20)).await;
            self.now.fetch_sub(1, Ordering::SeqCst);
            Err("connection refused".to_owned())
        }
        .boxed()
    }
}

#[tokio::test]
async fn no_more_clusters_are_connected_to_at_a_time_than_allowed() {
    let server = ApiServer::open(apiserver::Options::default())
        .await
        .unwrap();
    let management = Client::new(server.in_process(), "default");
    let secrets: Api<Secret> = Api::namespaced(management.clone(), "default");
    let crowd = Arc::new(Crowd::default());
    let remote = Remote::new(management, crowd.clone(), 2, CancellationToken::new());
    for cluster in 0..6 {
        let secret = json!({
            "metadata": { "name": format!("c{cluster}-kubeconfig") }, "stringData": { "value": "text" },
        });
        let secret = serde_json::from_value(secret).unwrap();
        secrets
            .create(&PostParams::default(), &secret)
            .await
            .unwrap();
        remote.track(&ClusterKey::new("default", format!("c{cluster}")));
    }
    while crowd.all.load(Ordering::SeqCst) < 12 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(crowd.most.load(Ordering::SeqCst), 2);
}
