//! kube's client and controller runtime on a server in the same process.

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};

use crate::support::*;

#[tokio::test]
async fn the_client_reads_writes_and_applies() {
    let server = server().await;
    let client = Client::new(server.in_process(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let map: ConfigMap = serde_json::from_value(config_map("a", "1")).unwrap();
    maps.create(&PostParams::default(), &map).await.unwrap();
    let merge = serde_json::json!({"data": {"x": "y"}});
    let merged = maps
        .patch("a", &PatchParams::default(), &Patch::Merge(merge))
        .await
        .unwrap();
    assert_eq!(merged.data.unwrap()["x"], "y");
    assert_eq!(
        maps.list(&ListParams::default()).await.unwrap().items.len(),
        1
    );
    let error = maps.get("none").await.unwrap_err();
    assert!(matches!(error, kube::Error::Api(status) if status.reason == "NotFound"));
    let namespaces: Api<Namespace> = Api::all(client);
    assert_eq!(
        namespaces
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        4
    );
}

#[tokio::test]
async fn the_watcher_sees_changes_after_its_first_list() {
    let server = server().await;
    for config in [
        watcher::Config::default(),
        watcher::Config::default().streaming_lists(),
    ] {
        let client = Client::new(server.in_process(), "default");
        let maps: Api<ConfigMap> = Api::default_namespaced(client);
        let mut seen = Box::pin(
            watcher(maps.clone(), config)
                .default_backoff()
                .applied_objects(),
        );
        let name = format!("m{}", server.stats().revision);
        let map: ConfigMap = serde_json::from_value(config_map(&name, "1")).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
        loop {
            let object = seen.next().await.unwrap().unwrap();
            if object.metadata.name.as_deref() == Some(&name) {
                break;
            }
        }
    }
}
