//! Garbage collection and namespaces: what goes because something else goes.

use apiserver::{ApiServer, Options};
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

/// Waits until a path answers with a code. The collector runs on its own; only a bug makes this wait long.
async fn until(server: &ApiServer, path: &str, code: u16) {
    for _ in 0..30_000 {
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
    let finalizer = json!({"metadata": {"finalizers": ["example.org/hold"]}});
    patch(&server, &format!("{MAPS}/b"), MERGE, &finalizer).await;
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

/// Makes one of two maps the owner of the other, with a blocked deletion.
async fn set_owner(server: &ApiServer, owner: &Value, name: &str) {
    let reference = json!({"metadata": {"ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    }]}});
    patch(server, &format!("{MAPS}/{name}"), MERGE, &reference).await;
}

#[tokio::test]
async fn a_cycle_of_owners_is_deleted_in_the_foreground() {
    let server = server().await;
    for names in [&["a", "b"][..], &["c", "d", "e"]] {
        let mut last = post(&server, MAPS, &config_map(names[0], "1")).await.1;
        for name in &names[1..] {
            last = owned(&server, name, &last, true).await;
        }
        set_owner(&server, &last, names[0]).await;
        remove(&server, names[0], "Foreground").await;
        for name in names {
            until(&server, &format!("{MAPS}/{name}"), 404).await;
        }
    }
}

#[tokio::test]
async fn a_cycle_whose_objects_are_deleted_one_by_one_goes_too() {
    let server = server().await;
    let (_, a) = post(&server, MAPS, &config_map("a", "1")).await;
    let b = owned(&server, "b", &a, true).await;
    set_owner(&server, &b, "a").await;
    let (a, b) = tokio::join!(
        remove(&server, "a", "Foreground"),
        remove(&server, "b", "Foreground")
    );
    assert!(a.0 == 200 && matches!(b.0, 200 | 404));
    until(&server, &format!("{MAPS}/a"), 404).await;
    until(&server, &format!("{MAPS}/b"), 404).await;
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
    let (_, created) = post(&server, "/api/v1/namespaces", &namespace).await;
    assert_eq!(
        created["metadata"]["labels"]["kubernetes.io/metadata.name"],
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
async fn a_namespace_is_emptied_of_its_pods_first() {
    let server = server().await;
    let namespace = json!({"metadata": {"name": "n"}});
    post(&server, "/api/v1/namespaces", &namespace).await;
    let (maps, pods) = (
        "/api/v1/namespaces/n/configmaps",
        "/api/v1/namespaces/n/pods",
    );
    let pod = json!({
        "metadata": {"name": "p", "finalizers": ["example.org/hold"]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    assert_eq!(post(&server, pods, &pod).await.0, 201);
    post(&server, maps, &config_map("m", "1")).await;
    delete(&server, "/api/v1/namespaces/n").await;
    for _ in 0..30_000 {
        let (_, namespace) = get(&server, "/api/v1/namespaces/n").await;
        if namespace["status"]["conditions"].is_array() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let (_, pod) = get(&server, &format!("{pods}/p")).await;
    assert!(pod["metadata"]["deletionTimestamp"].is_string(), "{pod}");
    let (code, map) = get(&server, &format!("{maps}/m")).await;
    assert_eq!(
        (code, map["metadata"].get("deletionTimestamp")),
        (200, None)
    );
    let free = json!({"metadata": {"finalizers": null}});
    patch(&server, &format!("{pods}/p"), MERGE, &free).await;
    until(&server, "/api/v1/namespaces/n", 404).await;
    assert_eq!(get(&server, &format!("{maps}/m")).await.0, 404);
}

#[tokio::test]
async fn what_every_namespace_has_comes_back() {
    let options = Options {
        root_ca: Some("authority".to_owned()),
        ..Options::default()
    };
    let server = ApiServer::open(options).await.unwrap();
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    let map = &format!("{MAPS}/kube-root-ca.crt");
    for path in [account, map] {
        let (_, before) = get(&server, path).await;
        assert_eq!(delete(&server, path).await.0, 200);
        until(&server, path, 200).await;
        let (_, after) = get(&server, path).await;
        assert_ne!(after["metadata"]["uid"], before["metadata"]["uid"]);
    }
    let other = json!({"data": {"ca.crt": "other", "more": "x"}});
    patch(&server, map, MERGE, &other).await;
    let authority = json!({"ca.crt": "authority"});
    for _ in 0..30_000 {
        if get(&server, map).await.1["data"] == authority {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("{:?}", get(&server, map).await);
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
    for _ in 0..30_000 {
        if alive() == 0 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    panic!("{} tasks are alive", alive());
}
