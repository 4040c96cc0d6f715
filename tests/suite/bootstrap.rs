//! A machine that does not become a node, since kubeadm refuses, is missing, or is not asked to: the Machine says why.

use std::collections::BTreeMap;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};
use simulator::guest;

use crate::cloud::TestCloud;
use crate::main_job::{kind, machines, workload_client};
use crate::process::{Up, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_token_or_ca_hash_means_no_node_and_the_machine_says_so() {
    let home = tempfile::tempdir().unwrap();
    // Patient enough for a join on a busy machine, but not five minutes as kubeadm.
    let guests = guest::Options {
        join_timeout: Duration::from_secs(30),
        ..guest::Options::default()
    };
    let cloud = TestCloud::with(home.path(), BTreeMap::new(), guests).await;
    let mut args = vec!["--cloud", "simulated", "--bootstrap-timeout", "1s"];
    args.extend([
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ]);
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;
    let nodes: Api<Node> = Api::all(workload_client(home.path()).await);

    let worker = worker(&client).await;
    let user_data = bootstrap_data(&client, &worker).await;
    for (name, wrong) in [
        ("wrong-hash", replaced(&user_data, "sha256:", 'a')),
        ("wrong-token", replaced(&user_data, "token: ", 'z')),
    ] {
        clone_machine(&client, &worker, name, &wrong, None).await;
        let message = machine_says(&client, name, "InfrastructureReady", "BootstrapFailed").await;
        assert!(
            message.contains("kubeadm") || message.contains("preflight"),
            "{message}"
        );
        assert_eq!(
            nodes
                .list(&ListParams::default())
                .await
                .unwrap()
                .items
                .len(),
            2
        );
    }
    up.stop().await;
}

/// The message of a condition of a Machine, once it has this reason.
async fn machine_says(client: &Client, name: &str, type_: &str, reason: &str) -> String {
    let what = format!("the condition {type_} of {name} with the reason {reason}");
    eventually(&what, || async {
        let machine = machines(client).get(name).await.ok()?;
        let conditions = machine.data["status"]["conditions"].as_array()?.clone();
        let found = conditions.into_iter().find(|it| it["type"] == type_)?;
        let message = found["message"].as_str()?.to_owned();
        (found["reason"] == reason).then_some(message)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn user_data_or_an_image_that_makes_no_node_is_told_on_the_machine() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let mut args = vec!["--cloud", "simulated", "--bootstrap-timeout", "1s"];
    args.extend([
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ]);
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;
    let worker = worker(&client).await;
    let user_data = bootstrap_data(&client, &worker).await;

    clone_machine(
        &client,
        &worker,
        "prose",
        "no cloud-config: a secret\n",
        None,
    )
    .await;
    let message = machine_says(&client, "prose", "InfrastructureReady", "BootstrapFailed").await;
    assert!(message.contains("Unhandled non-multipart"), "{message}");
    assert!(!message.contains("secret"), "{message}");

    clone_machine(&client, &worker, "bare", &user_data, Some("ubuntu-24.04")).await;
    let message = machine_says(&client, "bare", "InfrastructureReady", "BootstrapFailed").await;
    assert!(message.contains("kubeadm: not found"), "{message}");

    // More than Nova takes: refused before anything is made in the cloud.
    let large = format!("{user_data}# {}\n", "x".repeat(60_000));
    let servers = servers(&cloud);
    clone_machine(&client, &worker, "large", &large, None).await;
    let message = machine_says(
        &client,
        "large",
        "InfrastructureReady",
        "InvalidMachineSpec",
    )
    .await;
    assert!(
        message.contains("bytes in base64, and Nova takes 65535"),
        "{message}"
    );
    assert_eq!(self::servers(&cloud), servers, "no server was made for it");
    up.stop().await;
}

/// How many servers there are.
fn servers(cloud: &TestCloud) -> usize {
    let all = cloud.cloud.resources();
    all.values().filter_map(|one| one.get("server")).sum()
}

async fn worker(client: &Client) -> DynamicObject {
    let params = ListParams::default().labels("cluster.x-k8s.io/deployment-name=demo-md-0");
    machines(client)
        .list(&params)
        .await
        .unwrap()
        .items
        .remove(0)
}

async fn bootstrap_data(client: &Client, machine: &DynamicObject) -> String {
    let name = machine.data["spec"]["bootstrap"]["dataSecretName"]
        .as_str()
        .unwrap();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    let secret = secrets.get(name).await.unwrap();
    String::from_utf8(secret.data.unwrap()["value"].0.clone()).unwrap()
}

/// The text with the six characters after `mark` overwritten. A token may stand in quotes: some look like numbers.
fn replaced(text: &str, mark: &str, with: char) -> String {
    let after = text.find(mark).unwrap() + mark.len();
    let at = after + text[after..].find(|c: char| c != '"').unwrap();
    let mut wrong = text.to_owned();
    wrong.replace_range(at..at + 6, &with.to_string().repeat(6));
    wrong
}

/// A Machine like `model` with bootstrap data of its own, and another image if one is named.
async fn clone_machine(
    client: &Client,
    model: &DynamicObject,
    name: &str,
    user_data: &str,
    image: Option<&str>,
) {
    let secret = json!({
        "metadata": {"name": name},
        "type": "cluster.x-k8s.io/secret",
        "data": {"value": STANDARD.encode(user_data)},
    });
    let secrets: Api<Secret> = Api::namespaced(client.clone(), "default");
    secrets
        .create(
            &PostParams::default(),
            &serde_json::from_value(secret).unwrap(),
        )
        .await
        .unwrap();
    clone(client, model, name, json!({"dataSecretName": name}), image).await;
}

/// A Machine like `model` with another bootstrap, and another image if one is named.
async fn clone(
    client: &Client,
    model: &DynamicObject,
    name: &str,
    bootstrap: Value,
    image: Option<&str>,
) {
    let infra: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "default",
        &kind("infrastructure.cluster.x-k8s.io", "OpenStackMachine"),
    );
    let stored = infra.get(&model.name_any()).await.unwrap();
    let mut spec = stored.data["spec"].clone();
    spec.as_object_mut().unwrap().remove("providerID");
    if let Some(image) = image {
        spec["image"] = json!({"filter": {"name": image}});
    }
    create(
        &infra,
        "infrastructure.cluster.x-k8s.io",
        "OpenStackMachine",
        name,
        spec,
    )
    .await;

    let mut spec = model.data["spec"].clone();
    spec["bootstrap"] = bootstrap;
    spec["infrastructureRef"]["name"] = json!(name);
    spec.as_object_mut().unwrap().remove("providerID");
    create(&machines(client), "cluster.x-k8s.io", "Machine", name, spec).await;
}

async fn create(api: &Api<DynamicObject>, group: &str, kind: &str, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": format!("{group}/v1beta2"),
        "kind": kind,
        "metadata": {"name": name, "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "spec": spec,
    });
    api.create(
        &PostParams::default(),
        &serde_json::from_value(object).unwrap(),
    )
    .await
    .unwrap();
}
