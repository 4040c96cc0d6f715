//! What clouds, nodes and other tenants say reaches no terminal raw: escape sequences, carriage returns, line breaks that
//! forge a line, and characters that change the order of others.

use std::path::Path;

use api::printable;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use crate::cloud::TestCloud;
use crate::generate::shell;
use crate::process::{PROGRAM, Up, eventually, ferrostack, run, texts};

const CANARY: &str = "broken\u{1b}]0;title\u{7}\u{9b}2Jred\rback\nALL CLUSTERS READY\u{202e}txt";

/// A Cluster that nobody reconciles, and its infrastructure.
const PAUSED: &str = r"
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata: {name: demo, namespace: default}
spec:
  paused: true
  controlPlaneEndpoint: {host: 127.0.0.1, port: 1}
  infrastructureRef: {apiGroup: infrastructure.cluster.x-k8s.io, kind: OpenStackCluster, name: demo}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: OpenStackCluster
metadata:
  name: demo
  namespace: default
  labels: {cluster.x-k8s.io/cluster-name: demo}
  annotations: {cluster.x-k8s.io/managed-by: nobody}
spec:
  identityRef: {name: none, cloudName: none}
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
    eventually("the Cluster", || async {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", "Cluster"));
        let api: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
        api.get_opt("demo").await.unwrap()
    })
    .await;
    speak(&client, "Cluster", group, "demo").await;
    let group = "infrastructure.cluster.x-k8s.io";
    speak(&client, "OpenStackCluster", group, "demo").await;

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

/// The names of a cloud in questions, and in the list of choices where nobody answers.
#[tokio::test(flavor = "multi_thread")]
async fn no_question_shows_what_a_terminal_would_obey() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let name = format!("a-kube-v1.34.2 {CANARY}");
    let _cloud = TestCloud::of_images(home, &[&name, "b-kube-v1.34.2"]).await;
    let args = [
        "generate",
        "cluster",
        "x",
        "--cloud",
        "simulated",
        "--kubernetes-version",
        "v1.34.2",
    ];
    let output = ferrostack(home)
        .args(args)
        .env("OS_CLIENT_CONFIG_FILE", home.join("clouds.yaml"))
        .env("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9")
        .output()
        .await;
    let (out, errors) = texts(&output);
    assert!(!output.status.success() && out.is_empty(), "{out}");
    assert!(errors.contains("a-kube-v1.34.2 broken"), "{errors}");
    assert!(problems(&errors).is_empty(), "{:?}", problems(&errors));

    if !Path::new("/usr/bin/script").exists() {
        skipped::because("no script (util-linux), which gives the command a terminal");
        return;
    }
    // The hostile name is chosen, so that it is in what follows, too.
    let command = format!("{PROGRAM} {} > {}/x.yaml", args.join(" "), home.display());
    let screen = shell(home, &command, Some("2\n")).await;
    assert!(screen.contains("Which image?"), "{screen}");
    assert!(screen.contains("2  a-kube-v1.34.2 broken"), "{screen}");
    assert!(problems(&screen).is_empty(), "{:?}", problems(&screen));
    let manifests = std::fs::read_to_string(home.join("x.yaml")).unwrap();
    assert!(
        problems(&manifests).is_empty(),
        "{:?}",
        problems(&manifests)
    );
}

/// The log of a container, whose end is in the status of its Pod.
#[tokio::test(flavor = "multi_thread")]
async fn no_log_of_a_container_is_printed_raw() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file = home.join("paused.yaml");
    std::fs::write(&file, PAUSED).unwrap();
    let mut up = Up::start(home, &["-f", file.to_str().unwrap()], &[]);
    up.read_lines(2).await;
    let client = up.client().await;
    let kubeconfig = home.join("data/kubeconfig").display().to_string();
    let place = ["--kubeconfig", kubeconfig.as_str()];
    // On a cluster without nodes nothing runs but its controller.
    let mut controller = ferrostack(home)
        .args([&["openstack", "up"][..], &place[..]].concat())
        .start();
    let resource =
        |group: &str, kind: &str| ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let jobs: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "openstack", &resource("batch", "Job"));
    let job = eventually("a task", || async {
        let listed = jobs.list(&Default::default()).await.ok()?;
        listed.items.into_iter().next()
    })
    .await;
    let template = &job.data["spec"]["template"];
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {
            "name": "canary", "labels": template["metadata"]["labels"],
            "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": job.metadata.name, "uid": job.metadata.uid, "controller": true}],
        },
        "spec": template["spec"],
    });
    let pods: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), "openstack", &resource("", "Pod"));
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&Default::default(), &pod).await.unwrap();
    let ended = json!({"exitCode": 1, "reason": "Error", "message": CANARY, "finishedAt": "2026-01-01T00:00:00Z"});
    let status = json!({"status": {"phase": "Failed", "containerStatuses": [
        {"name": "main", "image": "i", "imageID": "", "ready": false, "restartCount": 1, "state": {"terminated": ended}},
    ]}});
    let patched = pods
        .patch_status("canary", &PatchParams::default(), &Patch::Merge(&status))
        .await;
    patched.unwrap();
    controller
        .line("with the log", |line| line.contains("broken"))
        .await;
    for command in [
        &["openstack", "why"][..],
        &["openstack", "why", "-o", "json"],
        &["openstack", "status"],
        &["openstack", "status", "-o", "json"],
    ] {
        let (out, errors) = texts(&run(home, &[command, &place[..]].concat()).await);
        let text = format!("{out}{errors}");
        assert!(text.contains("broken"), "{command:?}: {text}");
        assert!(
            problems(&text).is_empty(),
            "{command:?}: {:?}\n{text}",
            problems(&text)
        );
        if command.contains(&"json") {
            let read: Result<Value, _> = serde_json::from_str(&out);
            assert!(read.is_ok(), "{command:?}: {out}");
        }
    }
    controller.stop().await;
    up.stop().await;
}
