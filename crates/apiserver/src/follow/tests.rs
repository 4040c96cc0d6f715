use std::pin::pin;
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, ObjectMeta, Patch, PatchParams, PostParams};
use serde_json::json;

use super::Followed;
use crate::{ApiServer, Options, Store};

async fn server(history: usize) -> (ApiServer, Api<ConfigMap>) {
    let options = Options {
        store: Store::Memory,
        history,
        ..Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let client = kube::Client::new(server.in_process(), "default");
    (server, Api::namespaced(client, "kube-system"))
}

async fn create(api: &Api<ConfigMap>, name: &str) {
    let object = ConfigMap {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        ..ConfigMap::default()
    };
    api.create(&PostParams::default(), &object).await.unwrap();
}

/// Next change of an object: `+` written, `-` deleted, `=` the list.
async fn next(stream: &mut (impl Stream<Item = Followed> + Unpin)) -> String {
    let next = tokio::time::timeout(Duration::from_secs(10), stream.next()).await;
    let name = |object: &serde_json::Value| {
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        assert!(object["metadata"]["resourceVersion"].is_string());
        name
    };
    match next.expect("a change within ten seconds") {
        None => "closed".to_owned(),
        Some(Followed::Written(object)) => format!("+{}", name(&object)),
        Some(Followed::Deleted(object)) => format!("-{}", name(&object)),
        Some(Followed::Listed(objects)) => {
            let names: Vec<_> = objects.iter().map(name).collect();
            let ours = names.iter().filter(|name| *name != "kube-root-ca.crt");
            format!(
                "={}",
                ours.map(String::as_str).collect::<Vec<_>>().join(",")
            )
        }
    }
}

#[tokio::test]
async fn a_list_is_followed_by_each_change_in_its_namespace() {
    let (server, system) = server(100).await;
    let elsewhere = Api::namespaced(system.clone().into_client(), "default");
    create(&system, "a").await;
    let followed = server
        .in_process()
        .follow("", "configmaps", Some("kube-system"));
    let mut followed = pin!(followed.unwrap());
    // Between the subscription and the first read, as well.
    create(&system, "b").await;
    assert!(next(&mut followed).await.ends_with("a,b"));
    create(&elsewhere, "other").await;
    create(&system, "c").await;
    assert_eq!(next(&mut followed).await, "+c");
    let patch = Patch::Merge(json!({"data": {"key": "value"}}));
    let written = system.patch("a", &PatchParams::default(), &patch).await;
    written.unwrap();
    assert_eq!(next(&mut followed).await, "+a");
    let deleted = system.delete("b", &DeleteParams::default()).await;
    deleted.unwrap();
    assert_eq!(next(&mut followed).await, "-b");
    server.close().await;
    assert_eq!(next(&mut followed).await, "closed");
}

#[tokio::test]
async fn who_falls_behind_the_history_gets_a_new_list() {
    let (server, system) = server(3).await;
    let mut followed = pin!(
        server
            .in_process()
            .follow("", "configmaps", Some("kube-system"))
            .unwrap()
    );
    assert!(next(&mut followed).await.starts_with('='));
    for number in 0..20 {
        create(&system, &format!("n{number}")).await;
    }
    assert!(next(&mut followed).await.ends_with("n8,n9"));
    create(&system, "z").await;
    assert_eq!(next(&mut followed).await, "+z");
}

#[tokio::test]
async fn a_kind_that_is_not_served_is_not_followed() {
    let (server, _) = server(3).await;
    assert!(server.in_process().follow("", "wishes", None).is_none());
}
