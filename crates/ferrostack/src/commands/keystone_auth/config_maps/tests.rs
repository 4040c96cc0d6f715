use std::collections::BTreeMap;

use apiserver::ApiServer;
use k8s_openapi::api::events::v1::Event;
use keystone_auth::keystone::Http;
use keystone_auth::tokens::{self, Tokens};
use keystone_auth::user;
use kube::api::{DeleteParams, ListParams, PostParams};

use super::*;
use crate::commands::keystone_auth::tests::{args, eventually};

/// A webhook whose Keystone is nowhere.
fn webhook() -> Arc<Webhook> {
    let transport = Arc::new(openstack::InProcess::new(axum::Router::new()));
    let agent = http::HeaderValue::from_static("test");
    let url = "http://k/v3".to_owned();
    let time = Duration::from_secs(5);
    let keystone = Http::new(url, transport, time, &agent, Metrics::default()).unwrap();
    let options = tokens::Options::default();
    let tokens = Tokens::new(
        Arc::new(keystone),
        options,
        jiff::Timestamp::now,
        Metrics::default(),
    );
    Arc::new(Webhook::new(
        tokens,
        user::Options::default(),
        Vec::new(),
        Metrics::default(),
    ))
}

/// True if the webhook lets members of demo get this resource.
async fn allows(webhook: &Webhook, resource: &str) -> bool {
    let body = serde_json::json!({"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "a", "extra": {"alpha.kubernetes.io/identity/project/name": ["demo"]},
        "resourceAttributes": {"verb": "get", "resource": resource, "namespace": "n"}}});
    let answer = webhook.answer(body.to_string().as_bytes()).await;
    let answer: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
    answer["status"]["allowed"] == true
}

fn policy(resource: &str) -> String {
    format!(
        r#"[{{"users": {{"projects": ["demo"]}}, "resource_permissions": {{"*/{resource}": ["get"]}}}}]"#
    )
}

/// The notes of the events of the namespace.
async fn notes(client: &Client) -> String {
    let api: Api<Event> = Api::namespaced(client.clone(), NAMESPACE);
    let events = api.list(&ListParams::default()).await.unwrap().items;
    let notes = events.into_iter().map(|it| {
        assert_eq!(it.type_.as_deref(), Some("Warning"));
        it.note.unwrap_or_default()
    });
    notes.collect::<Vec<_>>().join("\n")
}

fn text_of(metrics: &Metrics) -> String {
    let all = operator::metrics::Metrics::default();
    all.register(|registry| metrics.register(registry));
    all.prometheus_text()
}

#[tokio::test]
async fn a_policy_is_that_of_its_config_map_until_that_is_deleted() {
    let options = apiserver::Options {
        hooks: Arc::new(apiserver::NoHooks),
        ..apiserver::Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = Client::new(server.in_process(), "default");
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let webhook = webhook();
    let flags = args(&["--policy-configmap-name=k8s-auth-policy"]);
    let source = sources(&flags, &webhook).remove(0);
    let metrics = Metrics::default();
    let (watched, counted) = (client.clone(), metrics.clone());
    tokio::spawn(async move { watch(&watched, source, &counted).await });
    // It may come later, and others are nobody's business.
    let mut map = ConfigMap {
        data: Some(BTreeMap::from([("policies".to_owned(), policy("pods"))])),
        ..ConfigMap::default()
    };
    map.metadata.name = Some("other".to_owned());
    api.create(&PostParams::default(), &map).await.unwrap();
    map.data = Some(BTreeMap::from([("policies".to_owned(), policy("nodes"))]));
    map.metadata.name = Some("k8s-auth-policy".to_owned());
    let mut map = api.create(&PostParams::default(), &map).await.unwrap();
    let allowed = async |resource: &str| allows(&webhook, resource).await;
    eventually("the policy is read", async || allowed("nodes").await).await;
    assert!(!allowed("pods").await);
    let unusable = "ferrostack_keystone_auth_unusable{file=\"the policy\"} 1";
    for (data, words) in [
        (
            Some(("policies", "[{".to_owned())),
            "kube-system/k8s-auth-policy: policies: line 1, column 3",
        ),
        (
            Some(("policy", policy("secrets"))),
            "kube-system/k8s-auth-policy has no key policies",
        ),
        (None, "has no key policies"),
    ] {
        map.data = data.map(|(key, text)| BTreeMap::from([(key.to_owned(), text)]));
        map = api
            .replace("k8s-auth-policy", &PostParams::default(), &map)
            .await
            .unwrap();
        let noted = async || notes(&client).await.contains(words);
        eventually("there is an event", noted).await;
        assert!(text_of(&metrics).contains(unusable));
        assert!(allowed("nodes").await);
    }
    map.data = Some(BTreeMap::from([("policies".to_owned(), policy("secrets"))]));
    api.replace("k8s-auth-policy", &PostParams::default(), &map)
        .await
        .unwrap();
    eventually("the policy is replaced", async || allowed("secrets").await).await;
    assert!(!allowed("nodes").await && !text_of(&metrics).contains(unusable));
    api.delete("k8s-auth-policy", &DeleteParams::default())
        .await
        .unwrap();
    eventually("the policy is gone", async || !allowed("secrets").await).await;
}

#[test]
fn a_file_takes_precedence_over_its_config_map() {
    let webhook = webhook();
    let names = |flags: &[&str]| {
        let all = sources(&args(flags), &webhook);
        all.into_iter().map(|it| it.name).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["--policy-configmap-name=a", "--sync-configmap-name=b"]),
        ["a", "b"]
    );
    assert_eq!(
        names(&[
            "--policy-configmap-name=a",
            "--keystone-policy-file=f",
            "--sync-configmap-name=b"
        ]),
        ["b"]
    );
    assert_eq!(
        names(&[
            "--policy-configmap-name=",
            "--sync-configmap-name=b",
            "--sync-config-file=f"
        ]),
        [""; 0]
    );
}
