//! A server and requests to it.

use apiserver::{ApiServer, Body, Options};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use serde_json::{Value, json};
use tower::ServiceExt as _;

/// A server in memory.
pub(crate) async fn server() -> ApiServer {
    ApiServer::open(Options::default()).await.unwrap()
}

/// Sends a request with headers, and returns the response as it comes.
pub(crate) async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut request = Request::builder().method(method).uri(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server
        .in_process()
        .oneshot(request.body(Full::new(body.into())).unwrap())
        .await
        .unwrap()
}

/// Sends JSON and returns the code and the JSON of the answer.
pub(crate) async fn call(
    server: &ApiServer,
    method: Method,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let response = send(
        server,
        method,
        path,
        &[("content-type", "application/json")],
        body,
    )
    .await;
    read(response).await
}

/// The code and the JSON of a response.
pub(crate) async fn read(response: Response<Body>) -> (u16, Value) {
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    let value = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::from(String::from_utf8_lossy(&bytes).into_owned()));
    (code, value)
}

pub(crate) async fn get(server: &ApiServer, path: &str) -> (u16, Value) {
    call(server, Method::GET, path, &Value::Null).await
}

pub(crate) async fn post(server: &ApiServer, path: &str, body: &Value) -> (u16, Value) {
    call(server, Method::POST, path, body).await
}

pub(crate) async fn put(server: &ApiServer, path: &str, body: &Value) -> (u16, Value) {
    call(server, Method::PUT, path, body).await
}

pub(crate) async fn delete(server: &ApiServer, path: &str) -> (u16, Value) {
    call(server, Method::DELETE, path, &Value::Null).await
}

pub(crate) async fn patch(
    server: &ApiServer,
    path: &str,
    kind: &str,
    body: &Value,
) -> (u16, Value) {
    let response = send(
        server,
        Method::PATCH,
        path,
        &[("content-type", kind)],
        body.to_string(),
    )
    .await;
    read(response).await
}

pub(crate) const MERGE: &str = "application/merge-patch+json";
pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";

pub(crate) fn config_map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"k": data}})
}

/// A definition with two versions, of which v1 is stored; status and scale.
pub(crate) fn widgets() -> Value {
    let schema = json!({"openAPIV3Schema": {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {
                "size": {"type": "integer", "minimum": 1, "default": 3},
                "color": {"type": "string", "enum": ["red", "green"]},
                "replicas": {"type": "integer"},
            }},
            "status": {"type": "object", "properties": {
                "phase": {"type": "string"}, "replicas": {"type": "integer"},
            }},
        },
    }});
    let version = |name: &str, storage: bool| {
        json!({
            "name": name, "served": true, "storage": storage, "schema": schema,
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
            }},
            "additionalPrinterColumns": [
                {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
                {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
            ],
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"},
        "spec": {
            "group": "example.org", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wd"], "categories": ["all"]},
            "versions": [version("v1beta1", false), version("v1", true)],
        },
    })
}

pub(crate) const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const WIDGETS: &str = "/apis/example.org/v1/namespaces/default/widgets";

pub(crate) fn widget(name: &str) -> Value {
    json!({"apiVersion": "example.org/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"color": "red"}})
}
