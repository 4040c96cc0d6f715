//! Garbage collection and namespaces: what goes because something else goes.

use apiserver::ApiServer;
use http::Method;
use serde_json::{Value, json};

use crate::support::*;

async fn owned(server: &ApiServer, name: &str, owner: &Value, block: bool) -> Value {
    let mut map = config_map(name, "1");
    map["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": block,
    }]);
    post(server, MAPS, &map).await.1
}

/// Waits until a path answers with a code. The collector runs on its own; only a bug lets this wait for long.
async fn until(server: &ApiServer, path: &str, code: u16) {
    for _ in 0..5000 {
        if get(server, path).await.0 == code {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!(
        "{path} never answered {code}: {:?}",
        get(server, path).await
    );
}

async fn remove(server: &ApiServer, name: &str, policy: &str) -> (u16, Value) {
    let options = json!({"propagationPolicy": policy});
    call(server, Method::DELETE, &format!("{MAPS}/{name}"), &options).await
}

#[tokio::test]
async fn dependents_go_after_their_owner_and_so_do_theirs() {
    let server = server().await;
    let (_, a) = post(&server, MAPS, &config_map("a", "1")).await;
    let b = owned(&server, "b", &a, false).await;
    owned(&server, "c", &b, false).await;
    assert_eq!(
        remove(&server, "a", "Background").await.1["status"],
        "Success"
    );
    until(&server, &format!("{MAPS}/c"), 404).await;
    assert_eq!(get(&server, &format!("{MAPS}/b")).await.0, 404);
}

#[tokio::test]
async fn a_foreground_deletion_waits_for_dependents_that_block() {
    let server = server().await;
    let (_, a) = post(&server, MAPS, &config_map("a", "1")).await;
    owned(&server, "b", &a, true).await;
    let hold = json!({"metadata": {"finalizers": ["example.org/hold"]}});
    patch(&server, &format!("{MAPS}/b"), MERGE, &hold).await;
    let (_, marked) = remove(&server, "a", "Foreground").await;
    assert_eq!(
        marked["metadata"]["finalizers"],
        json!(["foregroundDeletion"])
    );
    loop {
        let (_, b) = get(&server, &format!("{MAPS}/b")).await;
        if b["metadata"]["deletionTimestamp"].is_string() {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(get(&server, &format!("{MAPS}/a")).await.0, 200);
    patch(
        &server,
        &format!("{MAPS}/b"),
        MERGE,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    until(&server, &format!("{MAPS}/a"), 404).await;
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let server = server().await;
    let (_, a) = post(&server, MAPS, &config_map("a", "1")).await;
    owned(&server, "b", &a, true).await;
    remove(&server, "a", "Orphan").await;
    until(&server, &format!("{MAPS}/a"), 404).await;
    let (code, b) = get(&server, &format!("{MAPS}/b")).await;
    assert_eq!((code, b["metadata"].get("ownerReferences")), (200, None));
}

#[tokio::test]
async fn an_object_whose_owner_never_was_goes() {
    let server = server().await;
    let ghost =
        json!({"metadata": {"name": "ghost", "uid": "00000000-0000-0000-0000-000000000000"}});
    owned(&server, "b", &ghost, false).await;
    until(&server, &format!("{MAPS}/b"), 404).await;
}

#[tokio::test]
async fn a_deleted_namespace_takes_everything_in_it() {
    let server = server().await;
    let namespace = json!({"metadata": {"name": "n"}});
    let (_, made) = post(&server, "/api/v1/namespaces", &namespace).await;
    assert_eq!(
        made["metadata"]["labels"]["kubernetes.io/metadata.name"],
        "n"
    );
    let maps = "/api/v1/namespaces/n/configmaps";
    let mut held = config_map("held", "1");
    held["metadata"]["finalizers"] = json!(["example.org/hold"]);
    post(&server, maps, &held).await;
    post(&server, maps, &config_map("free", "1")).await;
    let (code, marked) = delete(&server, "/api/v1/namespaces/n").await;
    assert_eq!(
        (code, marked["status"]["phase"].as_str()),
        (200, Some("Terminating"))
    );
    until(&server, &format!("{maps}/free"), 404).await;
    let (code, status) = post(&server, maps, &config_map("late", "1")).await;
    assert_eq!(code, 403, "{status}");
    assert_eq!(
        status["details"]["causes"][0]["reason"],
        "NamespaceTerminating"
    );
    patch(
        &server,
        &format!("{maps}/held"),
        MERGE,
        &json!({"metadata": {"finalizers": null}}),
    )
    .await;
    until(&server, "/api/v1/namespaces/n", 404).await;
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects() {
    let server = server().await;
    post(&server, CRDS, &widgets()).await;
    post(&server, WIDGETS, &widget("a")).await;
    delete(&server, &format!("{CRDS}/widgets.example.org")).await;
    until(&server, &format!("{CRDS}/widgets.example.org"), 404).await;
    assert_eq!(get(&server, WIDGETS).await.0, 404);
    post(&server, CRDS, &widgets()).await;
    assert_eq!(get(&server, WIDGETS).await.1["items"], json!([]));
}

#[tokio::test]
async fn a_dropped_server_leaves_no_task_behind() {
    let server = server().await;
    drop(server);
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    for _ in 0..1000 {
        if alive() == 0 {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} tasks are alive", alive());
}
