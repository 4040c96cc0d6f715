//! Events of a server without a scheduler on Pods and workloads that nothing runs.

use std::sync::Arc;
use std::time::Duration;

use apiserver::{ApiServer, Options};
use serde_json::{Value, json};

use crate::pods::PODS;
use crate::support::*;

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const EVENTS: &str = "/api/v1/namespaces/default/events";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases";

async fn without_nodes() -> ApiServer {
    let options = Options {
        not_run: Some(Arc::new(|object: &Value| {
            (object["metadata"]["name"] != "known").then(|| "nothing runs here".to_owned())
        })),
        ..Options::default()
    };
    ApiServer::open(options).await.unwrap()
}

fn pod(name: &str, more: &Value) -> Value {
    let mut spec = json!({"containers": [{"name": "c", "image": "nginx"}]});
    for (field, value) in more.as_object().unwrap() {
        spec[field] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

fn deployment(name: &str) -> Value {
    let labels = json!({"app": name});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "nginx"}]},
        }},
    })
}

/// The Events, once there are `count`: the object and reason of each.
async fn events(server: &ApiServer, count: usize) -> Vec<Value> {
    for _ in 0..15_000 {
        let items = get(server, EVENTS).await.1["items"].take();
        let items = items.as_array().cloned().unwrap_or_default();
        if items.len() >= count {
            return items;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{:#}", get(server, EVENTS).await.1);
}

/// Waits until the object does not exist.
async fn is_gone(server: &ApiServer, path: &str) {
    for _ in 0..15_000 {
        if get(server, path).await.0 == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("{path} is not removed");
}

#[tokio::test]
async fn a_pod_that_nothing_runs_has_an_event_with_the_reason() {
    let server = without_nodes().await;
    assert_eq!(post(&server, PODS, &pod("nginx", &json!({}))).await.0, 201);
    let found = events(&server, 1).await;
    let event = &found[0];
    assert_eq!(event["reason"], "FailedScheduling");
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["message"], "nothing runs here");
    let (_, stored) = get(&server, &format!("{PODS}/nginx")).await;
    assert_eq!(event["involvedObject"]["uid"], stored["metadata"]["uid"]);
    assert_eq!(stored["status"]["phase"], "Pending");
    let condition = &stored["status"]["conditions"][0];
    assert_eq!(condition["reason"], "Unschedulable");
    assert_eq!(condition["message"], "nothing runs here");

    let bound = pod("bound", &json!({"nodeName": "n"}));
    assert_eq!(post(&server, PODS, &bound).await.0, 201);
    assert_eq!(post(&server, DEPLOYMENTS, &deployment("web")).await.0, 201);
    let mut reasons: Vec<String> = events(&server, 3)
        .await
        .iter()
        .map(|event| format!("{} {}", event["involvedObject"]["name"], event["reason"]))
        .collect();
    reasons.sort();
    assert_eq!(
        reasons,
        [
            r#""bound" "NotStarted""#,
            r#""nginx" "FailedScheduling""#,
            r#""web" "NoPodsCreated""#
        ]
    );
}

#[tokio::test]
async fn what_something_runs_has_no_such_event() {
    let server = without_nodes().await;
    let now = jiff::Timestamp::now();
    let spec = json!({"holderIdentity": "a", "renewTime": format!("{now:.6}")});
    for name in ["kube-scheduler", "kube-controller-manager"] {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": name}, "spec": spec,
        });
        let (code, answer) = post(&server, LEASES, &lease).await;
        assert_eq!(code, 201, "{answer}");
    }
    post(&server, PODS, &pod("scheduled", &json!({}))).await;
    post(&server, DEPLOYMENTS, &deployment("rolled")).await;
    // The server processes objects in the order of their creation. The Leases stay until this object, without an
    // existing owner, is removed.
    let orphan = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "orphan", "ownerReferences": [{
        "apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "3f2b8a54-0000-4000-8000-000000000001",
    }]}});
    assert_eq!(post(&server, CONFIG_MAPS, &orphan).await.0, 201);
    is_gone(&server, &format!("{CONFIG_MAPS}/orphan")).await;
    for name in ["kube-scheduler", "kube-controller-manager"] {
        delete(&server, &format!("{LEASES}/{name}")).await;
    }
    let other = pod("other", &json!({"schedulerName": "other"}));
    post(&server, PODS, &other).await;
    post(&server, PODS, &pod("known", &json!({}))).await;
    post(&server, PODS, &pod("last", &json!({}))).await;
    let found = events(&server, 1).await;
    let names: Vec<&Value> = found
        .iter()
        .map(|event| &event["involvedObject"]["name"])
        .collect();
    assert_eq!(names, ["last"]);
}
