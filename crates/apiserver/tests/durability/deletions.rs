//! Containers being deleted take nothing new, and fields dropped by a schema do not come back.

use std::time::Duration;

use apiserver::{ApiServer, Options};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::local::{THINGS, call, definition_of_things, open};
use crate::site::map;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A definition whose objects have `default` in `spec.v`.
fn definition(default: usize) -> Value {
    let v = json!({"type": "integer", "default": default});
    let spec = json!({"type": "object", "default": {}, "properties": {"v": v}});
    definition_of_things(&json!({"type": "object", "properties": {"spec": spec}}))
}

fn thing(name: &str) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": name}, "spec": {}})
}

/// Creates objects one after the other until one is rejected; how many, and the rejection.
async fn create_until_rejected(
    server: ApiServer,
    path: String,
    object: fn(&str) -> Value,
    client: usize,
) -> (usize, u16, Value) {
    for n in 0.. {
        let name = format!("o-{client}-{n}");
        let (code, answer) = call(&server, "POST", &path, &object(&name)).await;
        if code != 201 {
            return (n, code, answer);
        }
        tokio::task::yield_now().await;
    }
    unreachable!("it goes on until it is rejected")
}

/// Asks again until the answer is a 404, for a minute at least.
async fn gone(server: &ApiServer, path: &str) {
    for _ in 0..3000 {
        if call(server, "GET", path, &Value::Null).await.0 == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("{path} is still there");
}

async fn servers(directory: &tempfile::TempDir) -> [ApiServer; 2] {
    let memory = ApiServer::open(Options::default()).await.unwrap();
    [
        memory,
        open(&directory.path().join("objects.db")).await.unwrap(),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_definition_in_deletion_takes_no_new_object_and_none_outlives_it() {
    let directory = tempfile::tempdir().unwrap();
    for server in servers(&directory).await {
        assert_eq!(
            call(&server, "POST", DEFINITIONS, &definition(0)).await.0,
            201
        );
        let mut clients = JoinSet::new();
        for client in 0..6 {
            clients.spawn(create_until_rejected(
                server.clone(),
                THINGS.to_owned(),
                thing,
                client,
            ));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let path = format!("{DEFINITIONS}/things.example.com");
        assert_eq!(call(&server, "DELETE", &path, &Value::Null).await.0, 200);
        while let Some(client) = clients.join_next().await {
            let (_, code, answer) = client.unwrap();
            assert!(matches!(code, 403 | 404), "{code} {answer}");
        }
        gone(&server, &path).await;
        assert_eq!(
            call(&server, "POST", DEFINITIONS, &definition(0)).await.0,
            201
        );
        let (code, list) = call(&server, "GET", THINGS, &Value::Null).await;
        assert_eq!((code, &list["items"]), (200, &json!([])));
        server.close().await;
    }
}

#[tokio::test]
async fn a_create_for_a_definition_in_deletion_is_forbidden_as_by_kube_apiserver() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    assert_eq!(
        call(&server, "POST", DEFINITIONS, &definition(0)).await.0,
        201
    );
    let mut held = thing("held");
    held["metadata"]["finalizers"] = json!(["example.com/held"]);
    assert_eq!(call(&server, "POST", THINGS, &held).await.0, 201);
    let path = format!("{DEFINITIONS}/things.example.com");
    assert_eq!(call(&server, "DELETE", &path, &Value::Null).await.0, 200);
    for dry_run in ["", "?dryRun=All"] {
        let create = format!("{THINGS}{dry_run}");
        let (code, status) = call(&server, "POST", &create, &thing("late")).await;
        assert_eq!((code, &status["reason"]), (403, &json!("Forbidden")));
        assert_eq!(
            status["message"],
            "things.example.com \"late\" is forbidden: create not allowed while custom resource definition is terminating"
        );
    }
    let mut unnamed = thing("");
    unnamed["metadata"] = json!({"generateName": "late-"});
    let (code, status) = call(&server, "POST", THINGS, &unnamed).await;
    assert_eq!(code, 403);
    assert_eq!(
        status["message"],
        "things.example.com is forbidden: create not allowed while custom resource definition is terminating"
    );
    let path_of_held = format!("{THINGS}/held");
    let mut held = call(&server, "GET", &path_of_held, &Value::Null).await.1;
    held["metadata"]["finalizers"] = json!([]);
    let (code, answer) = call(&server, "PUT", &path_of_held, &held).await;
    assert_eq!(code, 200, "{answer}");
    gone(&server, &path).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_namespace_in_deletion_takes_no_new_object_and_none_outlives_it() {
    let directory = tempfile::tempdir().unwrap();
    for server in servers(&directory).await {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}});
        assert_eq!(
            call(&server, "POST", "/api/v1/namespaces", &namespace)
                .await
                .0,
            201
        );
        let maps = "/api/v1/namespaces/n/configmaps";
        let object = |name: &str| map(name, "x");
        let mut clients = JoinSet::new();
        for client in 0..6 {
            clients.spawn(create_until_rejected(
                server.clone(),
                maps.to_owned(),
                object,
                client,
            ));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(
            call(&server, "DELETE", "/api/v1/namespaces/n", &Value::Null)
                .await
                .0,
            200
        );
        while let Some(client) = clients.join_next().await {
            let (_, code, answer) = client.unwrap();
            assert!(matches!(code, 403 | 404), "{code} {answer}");
        }
        gone(&server, "/api/v1/namespaces/n").await;
        for kind in ["configmaps", "serviceaccounts", "secrets"] {
            let (_, list) = call(&server, "GET", &format!("/api/v1/{kind}"), &Value::Null).await;
            let left = list["items"].as_array().unwrap().iter();
            let left: Vec<_> = left
                .filter(|object| object["metadata"]["namespace"] == "n")
                .collect();
            assert!(left.is_empty(), "{left:?}");
        }
        server.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn objects_are_served_by_the_newest_schema_however_many_changes_of_it_run_at_once() {
    let server = ApiServer::open(Options::default()).await.unwrap();
    // Objects that were written before there was a default.
    let mut bare = definition(0);
    bare["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"] =
        json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    assert_eq!(call(&server, "POST", DEFINITIONS, &bare).await.0, 201);
    for n in 0..300 {
        assert_eq!(
            call(&server, "POST", THINGS, &thing(&format!("o{n}")))
                .await
                .0,
            201
        );
    }
    let path = format!("{DEFINITIONS}/things.example.com");
    for round in 0..4 {
        let mut changes = JoinSet::new();
        for n in 1..=6 {
            let (server, path) = (server.clone(), path.clone());
            changes.spawn(async move {
                loop {
                    let mut new = definition(round * 10 + n);
                    let current = call(&server, "GET", &path, &Value::Null).await.1;
                    new["metadata"]["resourceVersion"] =
                        current["metadata"]["resourceVersion"].clone();
                    match call(&server, "PUT", &path, &new).await {
                        (200, _) => return,
                        (409, _) => {}
                        (code, answer) => panic!("{code} {answer}"),
                    }
                }
            });
        }
        while let Some(change) = changes.join_next().await {
            change.unwrap();
        }
        let newest = call(&server, "GET", &path, &Value::Null).await.1;
        let newest = newest
            .pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/v/default")
            .unwrap();
        let (_, list) = call(&server, "GET", THINGS, &Value::Null).await;
        let other = list["items"].as_array().unwrap().iter();
        let other: Vec<_> = other
            .filter(|thing| thing["spec"]["v"] != *newest)
            .collect();
        assert!(
            other.is_empty(),
            "{newest}: {} others, as {}",
            other.len(),
            other[0]
        );
    }
}
