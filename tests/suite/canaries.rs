//! What clouds, nodes and other tenants say reaches no terminal raw: escape sequences, carriage returns, line breaks that
//! forge a line, and characters that change the order of others.

use std::path::Path;

use api::printable;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use crate::process::{Up, run, texts};

const CANARY: &str = "broken\u{1b}]0;title\u{7}\u{9b}2Jred\rback\nALL CLUSTERS READY\u{202e}txt";

/// A Cluster that nobody reconciles, with a Machine and its parts.
const PAUSED: &str = r"
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: default}
spec:
  paused: true
  controlPlaneEndpoint: {host: 127.0.0.1, port: 1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackCluster, name: demo}
";

/// Writes conditions with the canary into the status of an object.
async fn speak(client: &kube::Client, kind: &str, group: &str, name: &str) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind));
    let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let condition = |type_: &str, status: &str| {
        json!({"type": type_, "status": status, "reason": "InstanceStateError", "message": CANARY,
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    };
    let status = json!({"status": {"conditions": [
        condition("Ready", "False"), condition("Available", "False"), condition("InfrastructureReady", "False"),
    ]}});
    let params = PatchParams::default();
    let patched = api
        .patch_status(name, &params, &Patch::Merge(&status))
        .await;
    patched.unwrap();
}

/// The problems of an output, of which no line may begin as the canary's second one.
fn problems(text: &str) -> Vec<String> {
    let raw = text
        .chars()
        .filter(|it| *it != '\n' && printable::is_hidden(*it));
    let raw = raw.map(|it| format!("{} is raw", it.escape_default()));
    let forged = text.lines().filter(|line| line.starts_with("ALL CLUSTERS"));
    raw.chain(forged.map(|line| format!("a forged line: {line}")))
        .collect()
}

async fn check(home: &Path, command: &str) -> String {
    let data = home.join("data").display().to_string();
    let mut words: Vec<&str> = command.split_whitespace().collect();
    words.extend(["--data-dir", &data]);
    let (out, errors) = texts(&run(home, &words).await);
    for text in [&out, &errors] {
        let problems = problems(text);
        assert!(problems.is_empty(), "{command}: {problems:?}\n{text}");
    }
    format!("{out}{errors}")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_command_prints_what_a_terminal_would_obey() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file = home.join("paused.yaml");
    std::fs::write(&file, PAUSED).unwrap();
    let args = ["-f", file.to_str().unwrap()];
    let mut up = Up::start(home, &args, &[]);
    up.read_lines(2).await;
    let client = up.client().await;
    let group = "cluster.x-k8s.io";
    crate::process::eventually("the Cluster", || async {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", "Cluster"));
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        api.get_opt("demo").await.unwrap()
    })
    .await;
    speak(&client, "Cluster", group, "demo").await;

    for command in [
        "describe cluster demo",
        "describe cluster demo --show-conditions all",
        "describe cluster demo -o wide",
        "get clusters",
        "get clusters -o wide",
        "status",
        "why",
        "why cluster/demo",
        "delete cluster none",
        "get kubeconfig none",
    ] {
        let printed = check(home, command).await;
        let says = ["describe", "why"].iter().any(|it| command.starts_with(it));
        if says && command != "why" && command != "why cluster/demo" {
            assert!(printed.contains("broken"), "{command}: {printed}");
        }
    }
    for command in [
        "describe cluster demo -o json",
        "get clusters -o json",
        "why -o json",
        "status -o json",
    ] {
        let printed = check(home, command).await;
        let read: Result<Value, _> = serde_json::from_str(&printed);
        assert!(read.is_ok(), "{command}: {printed}");
    }
    let whole: Value = serde_json::from_str(&check(home, "get clusters -o json").await).unwrap();
    let message = &whole["items"][0]["status"]["conditions"][0]["message"];
    assert_eq!(message, CANARY, "programs read what was said");
    for command in ["describe cluster demo -o yaml", "get clusters -o yaml"] {
        check(home, command).await;
    }
    let log = std::fs::read_to_string(home.join("log")).unwrap();
    assert!(problems(&log).is_empty(), "{:?}", problems(&log));
    let story = up.story();
    let raw = story
        .chars()
        .any(|it| it != '\n' && printable::is_hidden(it));
    assert!(!raw, "{story}");
    up.stop().await;
}
