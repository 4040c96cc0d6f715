//! Cost of defaults, in a process of its own, because its memory is measured.

#![allow(clippy::unwrap_used)]

use std::time::{Duration, Instant};

use apiserver::{ApiServer, Options};
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Map, Value, json};
use tower::ServiceExt as _;

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";

async fn post(server: &ApiServer, path: &str, body: &Value) -> (u16, Value) {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header("content-type", "application/json")
        .body(Full::new(bytes::Bytes::from(body.to_string())))
        .unwrap();
    let response = server.in_process().oneshot(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// The most memory that the process has had, in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.unwrap().split_whitespace().nth(1).unwrap();
    kib.parse::<u64>().unwrap() / 1024
}

fn definition(spec: &Value) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    })
}

fn objects(of: &Value) -> Value {
    json!({"type": "array", "items": of})
}

#[tokio::test]
async fn a_small_request_with_many_defaults_takes_neither_time_nor_memory() {
    let properties: Map<String, Value> = (0..1000)
        .map(|number| {
            let property = json!({"type": "string", "default": "a default of some length"});
            (format!("field{number}"), property)
        })
        .collect();
    let wide = objects(&json!({"type": "object", "properties": properties}));
    // Ten objects in each of ten, and so on: a request without any of them asks for 10^9.
    let ten = Value::from(vec![json!({}); 10]);
    let mut nested = json!({"type": "integer", "default": 1});
    for _ in 0..9 {
        let mut list = objects(&json!({"type": "object", "properties": {"next": nested}}));
        list["default"] = ten.clone();
        nested = list;
    }
    let spec = json!({"type": "object", "properties": {
        "wide": wide,
        "deep": {"type": "object", "properties": {"next": nested}},
    }});
    let server = ApiServer::open(Options::default()).await.unwrap();
    let (code, answer) = post(&server, CRDS, &definition(&spec)).await;
    assert_eq!(code, 201, "{answer}");
    let before = peak();
    let widget = |name: &str, spec: Value| json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
    let empty = |count: usize| Value::from(vec![json!({}); count]);
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": empty(900_000)}});
    for (what, path, object) in [
        (
            "4000 objects with 1000 defaults each",
            WIDGETS,
            widget("wide", json!({"wide": empty(4000)})),
        ),
        (
            "defaults in defaults",
            WIDGETS,
            widget("deep", json!({"deep": {}})),
        ),
        (
            "a pod of 900000 containers",
            "/api/v1/namespaces/default/pods",
            pod,
        ),
    ] {
        let began = Instant::now();
        let (code, answer) = post(&server, path, &object).await;
        let (took, grown) = (began.elapsed(), peak() - before);
        assert_eq!(
            (code, &answer["message"]),
            (500, &json!("etcdserver: request is too large")),
            "{what}"
        );
        assert!(took < Duration::from_secs(20), "{what}: {took:?}");
        assert!(grown < 700, "{what}: {grown} MiB");
    }
    // As many defaults as can be stored are.
    let (code, answer) = post(&server, WIDGETS, &widget("some", json!({"wide": empty(5)}))).await;
    assert_eq!(code, 201, "{answer}");
    assert_eq!(
        answer["spec"]["wide"][4]["field999"],
        "a default of some length"
    );
}
