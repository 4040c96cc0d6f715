//! A machine that kubeadm refuses to join: there is no node, and the Machine says why.

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
        clone_machine(&client, &worker, name, &wrong).await;
        let message = eventually(&format!("the reason why {name} is no node"), || async {
            let machine = machines(&client).get(name).await.ok()?;
            let conditions = machine.data["status"]["conditions"].as_array()?.clone();
            let ready = conditions
                .into_iter()
                .find(|c| c["type"] == "InfrastructureReady")?;
            let message = ready["message"].as_str()?.to_owned();
            (ready["reason"] == "BootstrapFailed").then_some(message)
        })
        .await;
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

/// A Machine like `model` with bootstrap data of its own.
async fn clone_machine(client: &Client, model: &DynamicObject, name: &str, user_data: &str) {
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

    let infra: Api<DynamicObject> = Api::namespaced_with(
        client.clone(),
        "default",
        &kind("infrastructure.cluster.x-k8s.io", "OpenStackMachine"),
    );
    let stored = infra.get(&model.name_any()).await.unwrap();
    let mut spec = stored.data["spec"].clone();
    spec.as_object_mut().unwrap().remove("providerID");
    create(
        &infra,
        "infrastructure.cluster.x-k8s.io",
        "OpenStackMachine",
        name,
        spec,
    )
    .await;

    let mut spec = model.data["spec"].clone();
    spec["bootstrap"] = json!({"dataSecretName": name});
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
