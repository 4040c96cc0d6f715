//! What users read has no debug forms of Rust, no error numbers of the operating system, and no escape sequences where
//! there is no terminal: in conditions, events and the log of a cluster that fails in several ways, and in the output
//! of commands that fail.

use std::collections::BTreeMap;
use std::path::Path;

use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use simulator::guest;

use crate::cloud::TestCloud;
use crate::main_job::{kind, machines};
use crate::process::{KINDS, Up, eventually, run, texts};

/// What no text for users contains.
const FORMS: [&str; 14] = [
    "Some(",
    "None,",
    "Ok(",
    "Err(",
    "Error {",
    "Error(",
    "Custom {",
    "(os error",
    "client error (",
    "ServiceError",
    "HyperError",
    "Elapsed(",
    "\\\"",
    "\u{1b}[",
];

/// The debug forms in a text.
fn forms(text: &str) -> Vec<&'static str> {
    let found = FORMS.into_iter().filter(|form| text.contains(form));
    found.collect()
}

/// The texts of the management API: the messages of events, and every string of a status.
async fn texts_of_objects(client: &kube::Client) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for (group, version, kind) in KINDS {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        for object in api.list(&ListParams::default()).await.unwrap() {
            let name = object.metadata.name.unwrap_or_default();
            let read = match kind {
                "Event" if group.is_empty() => &object.data["message"],
                "Event" => &object.data["note"],
                _ => &object.data["status"],
            };
            strings(read, &mut |text| {
                texts.push((format!("{kind} {name}"), text.to_owned()));
            });
        }
    }
    texts
}

fn strings(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, take)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, take)),
        _ => {}
    }
}

/// The lines of the log that are not for developers.
fn texts_of_log(home: &Path) -> Vec<(String, String)> {
    let log = std::fs::read_to_string(home.join("log")).unwrap();
    log.lines()
        .filter(|line| {
            ![" DEBUG ", " TRACE "]
                .iter()
                .any(|level| line.contains(level))
        })
        .map(|line| ("log".to_owned(), line.to_owned()))
        .collect()
}

fn check(texts: &[(String, String)]) {
    let wrong: Vec<String> = texts
        .iter()
        .filter(|(_, text)| !forms(text).is_empty())
        .map(|(place, text)| format!("{place}: {:?} in: {text}", forms(text)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_debug_form_is_found() {
    assert_eq!(forms("the server `a` is ACTIVE (requested: 3)"), [""; 0]);
    for text in [
        "held by Some(\"a\")".to_owned(),
        format!("{:?}", std::io::Error::other("x")),
        std::io::Error::from_raw_os_error(2).to_string(),
        format!("{:?}", "a \"b\""),
    ] {
        assert!(!forms(&text).is_empty(), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_fails_is_reported_in_words() {
    let home = tempfile::tempdir().unwrap();
    let quotas = BTreeMap::from([("instances".to_owned(), 2)]);
    let mut cloud = TestCloud::with(home.path(), quotas, guest::Options::default()).await;
    let args = [
        "--cloud",
        "simulated",
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;

    // Two workers, of which the quota allows one.
    let deployments: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &kind("cluster.x-k8s.io", "MachineDeployment"),
    );
    let two = Patch::Merge(json!({"spec": {"replicas": 2}}));
    let params = PatchParams::default();
    let patched = deployments.patch("demo-md-0", &params, &two);
    patched.await.unwrap();
    let events: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Event")),
    );
    let event = async |word: &str| {
        eventually(&format!("an event with `{word}`"), || async {
            let found = events.list(&ListParams::default()).await.ok()?.items;
            let message = |event: &DynamicObject| {
                event.data["message"].as_str()?.contains(word).then_some(())
            };
            found.iter().find_map(message)
        })
        .await;
    };
    event("Quota exceeded").await;
    // A Pod that the management API does not run.
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "nginx"},
        "spec": {"containers": [{"name": "nginx", "image": "nginx"}]}});
    let pods: Api<DynamicObject> = Api::default_namespaced_with(
        client.clone(),
        &ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Pod")),
    );
    let pod = serde_json::from_value(pod).unwrap();
    pods.create(&Default::default(), &pod).await.unwrap();
    event("has no nodes").await;
    let mut seen = texts_of_objects(&client).await;

    // The cloud and the workload cluster no longer answer.
    cloud.stop();
    let deleted = machines(&client)
        .list(&ListParams::default().labels("cluster.x-k8s.io/deployment-name=demo-md-0"))
        .await
        .unwrap()
        .items;
    for machine in deleted {
        let name = machine.metadata.name.unwrap();
        machines(&client)
            .delete(&name, &Default::default())
            .await
            .unwrap();
    }
    eventually(
        "the log has the problem of a request to the cloud",
        || async {
            let log = std::fs::read_to_string(home.path().join("log")).ok()?;
            log.lines()
                .any(|line| line.contains("ERROR") || line.contains("WARN"))
                .then_some(())
        },
    )
    .await;
    eventually("a condition has the problem of the cloud", || async {
        let seen = texts_of_objects(&client).await;
        let refused = |(_, text): &(String, String)| {
            text.contains("refused") || text.contains("does not answer")
        };
        seen.iter().any(refused).then_some(())
    })
    .await;
    seen.extend(texts_of_objects(&client).await);
    seen.extend(texts_of_log(home.path()));
    seen.push((
        "output".to_owned(),
        up.story()
            .split("--- log")
            .next()
            .unwrap()
            .replace("\\\"", ""),
    ));
    let data = home.path().join("data").display().to_string();
    for args in [
        &["describe", "cluster", "demo"][..],
        &["get", "clusters", "-A"],
        &["status"],
    ] {
        let args = [args, &["--data-dir", &data]].concat();
        let (out, err) = texts(&run(home.path(), &args).await);
        assert!(!out.is_empty(), "{args:?}: {err}");
        seen.push((args.join(" "), out));
        seen.push((args.join(" "), err));
    }
    check(&seen);
    up.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_fail_say_why_in_words() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    std::fs::write(&file, "a: [\n").unwrap();
    let kubeconfig = home.path().join("kubeconfig");
    let refusing = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
        clusters: [{name: a, cluster: {server: 'https://127.0.0.1:1'}}]\n\
        contexts: [{name: a, context: {cluster: a, user: a}}]\nusers: [{name: a, user: {}}]\n";
    std::fs::write(&kubeconfig, refusing).unwrap();
    let (file, kubeconfig) = (file.display().to_string(), kubeconfig.display().to_string());
    let mut seen = Vec::new();
    for args in [
        &["up", "--from", "/nowhere"][..],
        &["up", "-f", "/nowhere"],
        &["up", "-f", &file],
        &["up", "--data-dir", &file],
        &["up", "--data-dir", "/proc/nowhere"],
        &["up", "--cloud", "nowhere"],
        &["generate", "cluster", "a", "--from", "/nowhere"],
        &["generate", "cluster", "a", "--cloud", "nowhere"],
        &["get", "kubeconfig", "a"],
        &["get", "clusters", "--kubeconfig", &kubeconfig],
        &["get", "clusters", "--kubeconfig", &file],
        &["describe", "cluster", "a", "--kubeconfig", &kubeconfig],
        &["delete", "cluster", "a", "--kubeconfig", &kubeconfig],
        &["apply", "-f", "/nowhere"],
        &["apply", "-f", &file, "--kubeconfig", &kubeconfig],
        &[
            "apply",
            "-f",
            "http://127.0.0.1:1/a.yaml",
            "--kubeconfig",
            &kubeconfig,
        ],
        &["admin", "restore", &file],
        &["admin", "restore", "/nowhere"],
        &["admin", "backup", "/nowhere/a"],
        &["manager", "--kubeconfig", &kubeconfig],
        &["manager", "--kubeconfig", "/nowhere"],
        &["simulate", "--clouds-file", "/proc/nowhere/clouds.yaml"],
        &["cloud-conf", "check", "/nowhere"],
        &["cloud-controller-manager", "--cloud-config", "/nowhere"],
    ] {
        let output = run(home.path(), args).await;
        let (out, err) = texts(&output);
        assert!(!output.status.success(), "{args:?}: {out}");
        assert!(!err.is_empty(), "{args:?} says why");
        seen.push((args.join(" "), format!("{out}{err}")));
    }
    // It succeeds, and says why it does not know everything.
    let version = run(home.path(), &["version", "--kubeconfig", &kubeconfig]).await;
    let (out, _) = texts(&version);
    assert!(out.contains("\nno API server answers at "), "{out}");
    seen.push(("version".to_owned(), out));
    check(&seen);
}
