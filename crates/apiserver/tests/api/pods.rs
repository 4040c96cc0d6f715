//! Pods and their kubelets: logs, and answers without a kubelet.

use std::sync::Arc;

use apiserver::{ApiServer, Connection, Kubelet, Line, Log, Options};
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, stream};
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;

use crate::support::*;

pub(crate) const PODS: &str = "/api/v1/namespaces/default/pods";

/// Kubelets of pods that log two lines, add a third when followed, and echo the bytes on port 7.
pub(crate) struct Simulated;

impl Kubelet for Simulated {
    fn is_reachable(&self, node: &Value) -> bool {
        node["metadata"]["name"] == "up"
    }

    fn log<'a>(
        &'a self,
        _: &'a Value,
        pod: &'a Value,
        container: &'a str,
        follow: bool,
    ) -> BoxFuture<'a, Result<Log, String>> {
        let line = |second: i64, text: String| Line {
            at: jiff::Timestamp::from_second(second).unwrap(),
            text,
        };
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        let lines = vec![
            line(1, format!("{name}/{container} starts")),
            line(2, "it runs".to_owned()),
        ];
        let last = line(3, "it ends".to_owned());
        let more = follow.then(|| stream::iter([last]).boxed());
        async { Ok(Log { lines, more }) }.boxed()
    }

    fn connect<'a>(
        &'a self,
        _: &'a Value,
        _: &'a Value,
        port: u16,
    ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
        async move {
            if port != 7 {
                return Err(format!(
                    "dial tcp4 127.0.0.1:{port}: connect: connection refused"
                ));
            }
            let (here, there) = tokio::io::duplex(1 << 16);
            let (mut read, mut write) = tokio::io::split(there);
            tokio::spawn(async move {
                let _ = tokio::io::copy(&mut read, &mut write).await;
                let _ = write.shutdown().await;
            });
            Ok(Box::new(here) as Box<dyn Connection>)
        }
        .boxed()
    }
}

/// A server with two nodes, of which one can be reached, and pods on both and on none.
pub(crate) async fn with_pods(options: Options) -> ApiServer {
    let server = ApiServer::open(options).await.unwrap();
    furnish(&server).await;
    server
}

pub(crate) async fn furnish(server: &ApiServer) {
    for (node, address) in [("up", "10.6.0.5"), ("down", "10.6.0.6"), ("nowhere", "")] {
        let object = json!({"metadata": {"name": node}});
        assert_eq!(post(server, "/api/v1/nodes", &object).await.0, 201);
        if !address.is_empty() {
            let status =
                json!({"status": {"addresses": [{"type": "InternalIP", "address": address}]}});
            let path = format!("/api/v1/nodes/{node}/status");
            assert_eq!(patch(server, &path, MERGE, &status).await.0, 200);
        }
    }
    for (name, node) in [
        ("p", "up"),
        ("q", "down"),
        ("r", "nowhere"),
        ("s", "absent"),
        ("free", ""),
    ] {
        pod(server, name, node, &["c"]).await;
    }
    pod(server, "two", "up", &["a", "b"]).await;
}

async fn pod(server: &ApiServer, name: &str, node: &str, containers: &[&str]) {
    let listed: Vec<Value> = containers
        .iter()
        .map(|name| json!({"name": name, "image": "i"}))
        .collect();
    let mut object = json!({"metadata": {"name": name}, "spec": {"containers": listed}});
    if !node.is_empty() {
        object["spec"]["nodeName"] = Value::from(node);
    }
    let (code, answer) = post(server, PODS, &object).await;
    assert_eq!(code, 201, "{answer}");
    let statuses: Vec<Value> = containers
        .iter()
        .map(|name| {
            json!({
                "name": name, "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
                "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
            })
        })
        .collect();
    let status = json!({"status": {"phase": "Running", "containerStatuses": statuses}});
    let path = format!("{PODS}/{name}/status");
    assert_eq!(patch(server, &path, MERGE, &status).await.0, 200);
}

pub(crate) fn simulated() -> Options {
    Options {
        kubelet: Some(Arc::new(Simulated)),
        ..Options::default()
    }
}

/// The code and the message of a refusal.
async fn refusal(server: &ApiServer, path: &str) -> (u16, String) {
    let (code, status) = get(server, &format!("{PODS}/{path}")).await;
    assert_eq!(status["kind"], "Status", "{path}: {status}");
    let message = status["message"].as_str().unwrap_or_default();
    (code, message.to_owned())
}

#[tokio::test]
async fn a_log_is_text_of_which_options_choose_lines() {
    let server = with_pods(simulated()).await;
    let response = send(&server, Method::GET, &format!("{PODS}/p/log"), &[], "").await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["content-type"], "text/plain");
    let text = response.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(text, "p/c starts\nit runs\n");
    for (query, expected) in [
        ("?tailLines=1", "it runs\n"),
        ("?follow=true&tailLines=1", "it runs\nit ends\n"),
        ("?container=c&limitBytes=3", "p/c"),
        (
            "?timestamps=true&tailLines=1",
            "1970-01-01T00:00:02.000000000Z it runs\n",
        ),
    ] {
        let (code, text) = get(&server, &format!("{PODS}/p/log{query}")).await;
        assert_eq!((code, text), (200, Value::from(expected)), "{query}");
    }
    let (_, text) = get(&server, &format!("{PODS}/two/log?container=b")).await;
    assert_eq!(text, "two/b starts\nit runs\n");
}

#[tokio::test]
async fn a_log_that_cannot_be_had_is_refused_in_the_words_of_the_real_server() {
    let server = with_pods(simulated()).await;
    for (path, code, words) in [
        ("absent/log", 404, "pods \"absent\" not found"),
        (
            "two/log",
            400,
            "a container name must be specified for pod two, choose one of: [a b]",
        ),
        (
            "p/log?container=x",
            400,
            "container x is not valid for pod p",
        ),
        (
            "p/log?previous=true",
            400,
            "previous terminated container \"c\" in pod \"p\" not found",
        ),
        (
            "p/log?tailLines=-1",
            422,
            "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            "p/log?sinceSeconds=soon",
            400,
            "strconv.ParseInt: parsing \"soon\": invalid syntax",
        ),
        ("s/log", 404, "pods \"absent\" not found"),
        (
            "q/log?tailLines=3",
            500,
            "Get \"https://10.6.0.6:10250/containerLogs/default/q/c?tailLines=3\": dial tcp 10.6.0.6:10250: connect: connection refused",
        ),
        (
            "r/log",
            500,
            "no preferred addresses found; known addresses: []",
        ),
    ] {
        let expected = (code, words.to_owned());
        assert_eq!(refusal(&server, path).await, expected, "{path}");
    }
    // A pod without a node has written nothing.
    let response = send(&server, Method::GET, &format!("{PODS}/free/log"), &[], "").await;
    assert_eq!(response.status(), 204);
    let (code, _) = post(&server, &format!("{PODS}/p/log"), &json!({})).await;
    assert_eq!(code, 405);
}

#[tokio::test]
async fn without_kubelets_none_is_reached() {
    let server = with_pods(Options::default()).await;
    let (code, words) = refusal(&server, "p/log").await;
    assert_eq!(code, 500);
    assert!(
        words.ends_with("dial tcp 10.6.0.5:10250: connect: connection refused"),
        "{words}"
    );
    let upgrade = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let path = format!("{PODS}/p/portforward");
    let (code, status) = read(send(&server, Method::POST, &path, &upgrade, "").await).await;
    assert_eq!(code, 500);
    assert_eq!(
        status["message"],
        "error dialing backend: dial tcp 10.6.0.5:10250: connect: connection refused"
    );
}

#[tokio::test]
async fn exec_and_attach_say_that_they_are_not_done() {
    let server = with_pods(simulated()).await;
    for kind in ["exec", "attach"] {
        for (pod, code, words) in [
            ("absent", 404, "pods \"absent\" not found"),
            ("free", 400, "pod free does not have a host assigned"),
            ("p", 400, "Upgrade request required"),
        ] {
            let expected = (code, words.to_owned());
            assert_eq!(refusal(&server, &format!("{pod}/{kind}")).await, expected);
        }
        let upgrade = [("connection", "Upgrade"), ("upgrade", "websocket")];
        let path = format!("{PODS}/p/{kind}?command=id&stdout=true");
        let (code, status) = read(send(&server, Method::GET, &path, &upgrade, "").await).await;
        assert_eq!(
            (code, status["reason"].as_str()),
            (405, Some("MethodNotAllowed"))
        );
        assert_eq!(
            status["message"],
            format!(
                "the server does not allow {kind} on pods: its pods are objects without processes, in which nothing can be run"
            )
        );
    }
}

#[tokio::test]
async fn discovery_names_logs_and_forwarded_ports() {
    let server = server().await;
    let (_, list) = get(&server, "/api/v1").await;
    let resources = list["resources"].as_array().unwrap();
    let find = |name: &str| resources.iter().find(|resource| resource["name"] == name);
    let log = find("pods/log").unwrap();
    assert_eq!(
        (&log["kind"], &log["verbs"]),
        (&json!("Pod"), &json!(["get"]))
    );
    let forward = find("pods/portforward").unwrap();
    assert_eq!(forward["kind"], "PodPortForwardOptions");
    assert_eq!(forward["verbs"], json!(["create", "get"]));
    // Rejected subresources are not offered.
    assert!(find("pods/exec").is_none());

    let (_, document) = get(&server, "/openapi/v3/api/v1").await;
    let path = |subresource: &str| {
        &document["paths"][format!("/api/v1/namespaces/{{namespace}}/pods/{{name}}/{subresource}")]
    };
    let log = &path("log")["get"];
    assert_eq!(log["operationId"], "readCoreV1NamespacedPodLog");
    let text = json!({"text/plain": {"schema": {"type": "string"}}});
    assert_eq!(log["responses"]["200"]["content"], text);
    for (method, id) in [
        ("get", "connectCoreV1GetNamespacedPodPortforward"),
        ("post", "connectCoreV1PostNamespacedPodPortforward"),
    ] {
        assert_eq!(path("portforward")[method]["operationId"], id);
    }
}

#[tokio::test]
async fn a_log_that_is_followed_ends_with_the_server() {
    struct Endless;
    impl Kubelet for Endless {
        fn is_reachable(&self, _: &Value) -> bool {
            true
        }
        fn log<'a>(
            &'a self,
            _: &'a Value,
            _: &'a Value,
            _: &'a str,
            _: bool,
        ) -> BoxFuture<'a, Result<Log, String>> {
            let more = Some(stream::pending().boxed());
            let lines = Vec::new();
            async { Ok(Log { lines, more }) }.boxed()
        }
        fn connect<'a>(
            &'a self,
            _: &'a Value,
            _: &'a Value,
            _: u16,
        ) -> BoxFuture<'a, Result<Box<dyn Connection>, String>> {
            async { Err(String::new()) }.boxed()
        }
    }
    let options = Options {
        kubelet: Some(Arc::new(Endless)),
        ..Options::default()
    };
    let server = with_pods(options).await;
    let path = format!("{PODS}/p/log?follow=true");
    let response = send(&server, Method::GET, &path, &[], "").await;
    let followed = tokio::spawn(response.into_body().collect());
    tokio::task::yield_now().await;
    server.close().await;
    let end = tokio::time::timeout(std::time::Duration::from_secs(60), followed).await;
    assert!(end.unwrap().unwrap().unwrap().to_bytes().is_empty());
}
