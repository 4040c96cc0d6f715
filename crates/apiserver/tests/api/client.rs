//! kube's client and controller runtime on a server in the same process.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::runtime::{Controller, WatchStreamExt as _, watcher};
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

#[tokio::test]
async fn a_controller_reconciles_what_it_watches() {
    let server = server().await;
    let client = Client::new(server.in_process(), "default");
    let maps: Api<ConfigMap> = Api::default_namespaced(client);
    let reconcile = |map: Arc<ConfigMap>, maps: Arc<Api<ConfigMap>>| async move {
        let seen = serde_json::json!({"data": {"seen": "yes"}});
        let name = map.metadata.name.as_deref().unwrap_or_default();
        maps.patch(name, &PatchParams::default(), &Patch::Merge(seen))
            .await?;
        Ok::<_, kube::Error>(Action::await_change())
    };
    let on_error = |_: Arc<ConfigMap>, _: &kube::Error, _: Arc<Api<ConfigMap>>| {
        Action::requeue(Duration::from_secs(1))
    };
    let controller = Controller::new(maps.clone(), watcher::Config::default()).run(
        reconcile,
        on_error,
        Arc::new(maps.clone()),
    );
    let mut controller = Box::pin(controller);
    for name in ["a", "b"] {
        let map: ConfigMap = serde_json::from_value(config_map(name, "1")).unwrap();
        maps.create(&PostParams::default(), &map).await.unwrap();
    }
    loop {
        controller.next().await.unwrap().unwrap();
        let all = maps.list(&ListParams::default()).await.unwrap();
        let seen = |map: &ConfigMap| {
            map.data
                .as_ref()
                .is_some_and(|data| data.contains_key("seen"))
        };
        if all.items.len() == 2 && all.items.iter().all(seen) {
            return;
        }
    }
}
