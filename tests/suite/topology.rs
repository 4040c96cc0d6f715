//! The ClusterClass that the Go provider publishes, with its topology template: a cluster is built, scaled, upgraded and
//! deleted.

use std::path::Path;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde_json::{Value, json};

use crate::cloud::{IMAGE, TestCloud};
use crate::main_job::{data, kind, machines, wait_for_nodes};
use crate::process::{self, Up, eventually, run, texts};
use crate::templates::{generate, released};

const CORE: &str = "cluster.x-k8s.io";

/// The documents of a published file, with its variables.
async fn documents(home: &Path, cloud: &TestCloud, file: &Path) -> Vec<Value> {
    let manifests = generate(home, cloud, &["--from", file.to_str().unwrap()]).await;
    serde_saphyr::from_multiple(&manifests).unwrap()
}

/// The class, the cluster, and the credentials that both take for granted. Images of ORC and Ignition are left out.
async fn manifests(home: &Path, cloud: &TestCloud, folder: &Path) -> String {
    let mut all = documents(home, cloud, &folder.join("clusterclass-dev-test.yaml")).await;
    let mut cluster = documents(home, cloud, &folder.join("cluster-template-topology.yaml")).await;
    for cluster in cluster
        .iter_mut()
        .filter(|document| document["kind"] == "Cluster")
    {
        let variables = cluster["spec"]["topology"]["variables"]
            .as_array_mut()
            .unwrap();
        let changed = ["imageRef", "injectIgnitionSysext"];
        variables.retain(|variable| !changed.contains(&variable["name"].as_str().unwrap()));
        variables.push(json!({ "name": "imageRef", "value": "" }));
        variables.push(json!({ "name": "imageName", "value": IMAGE }));
        variables.push(json!({ "name": "injectIgnitionSysext", "value": false }));
    }
    all.extend(cluster);
    let clouds = std::fs::read_to_string(home.join("clouds.yaml")).unwrap();
    all.push(json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "dev-test-cloud-config" },
        "stringData": { "clouds.yaml": clouds, "cacert": "" },
    }));
    let texts: Vec<String> = all.iter().map(Value::to_string).collect();
    texts.join("\n---\n")
}

fn api(client: &Client, name: &str) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), "default", &kind(CORE, name))
}

async fn change(client: &Client, topology: Value) {
    let change = Patch::Merge(json!({ "spec": { "topology": topology } }));
    let clusters = api(client, "Cluster");
    clusters
        .patch("x", &PatchParams::default(), &change)
        .await
        .unwrap();
}

/// Waits until the topology is reconciled and all machines have this version.
async fn reaches(client: &Client, version: &str, count: usize) {
    eventually(&format!("{count} machines of {version}"), || async {
        let cluster = api(client, "Cluster").get("x").await.ok()?;
        let conditions = cluster.data["status"]["conditions"].as_array()?.clone();
        let is = |type_: &str| {
            conditions
                .iter()
                .any(|it| it["type"] == type_ && it["status"] == "True")
        };
        let all = machines(client)
            .list(&ListParams::default())
            .await
            .ok()?
            .items;
        let done = |it: &DynamicObject| {
            it.data["spec"]["version"] == version && it.data["status"]["phase"] == "Running"
        };
        let done = is("TopologyReconciled")
            && is("Available")
            && all.len() == count
            && all.iter().all(done);
        done.then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_class_builds_upgrades_and_deletes_a_cluster() {
    let Some(released) = released() else { return };
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let text = manifests(home.path(), &cloud, &released.join("capo-v0.15.0-beta.0")).await;
    let file = home.path().join("x.yaml");
    std::fs::write(&file, text).unwrap();
    let args = ["--cloud", "simulated", "-f", file.to_str().unwrap()];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;
    reaches(&client, "v1.34.2", 2).await;
    let directory = data(home.path());
    let kubeconfig = ["get", "kubeconfig", "x", "--data-dir", &directory];
    let (text, errors) = texts(&run(home.path(), &kubeconfig).await);
    assert!(!text.is_empty(), "{errors}");
    let path = home.path().join("workload.kubeconfig");
    std::fs::write(&path, text).unwrap();
    let nodes: Api<Node> = Api::all(process::client(&path).await);

    let workers = json!([{ "class": "default-worker", "name": "md-0", "replicas": 2 }]);
    change(
        &client,
        json!({ "workers": { "machineDeployments": workers } }),
    )
    .await;
    reaches(&client, "v1.34.2", 3).await;
    wait_for_nodes(&nodes, 3).await;
    let mut topology =
        api(&client, "Cluster").get("x").await.unwrap().data["spec"]["topology"].clone();
    topology["version"] = json!("v1.35.0");
    let wanted = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": { "name": "x" },
        "spec": { "topology": topology },
    });
    let file = home.path().join("wanted.yaml");
    std::fs::write(&file, wanted.to_string()).unwrap();
    let file = file.to_str().unwrap();
    let plan = [
        "topology",
        "plan",
        "-f",
        file,
        "-o",
        "json",
        "--data-dir",
        &directory,
    ];
    let (text, errors) = texts(&run(home.path(), &plan).await);
    let planned: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{errors}"));
    let of = |kind: &str| {
        let changes = planned["changes"].as_array().unwrap().iter();
        changes
            .filter(|it| it["kind"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(
        of("KubeadmControlPlane")[0]["fields"],
        json!(["spec.version"]),
        "{planned}"
    );
    assert_eq!(
        of("MachineDeployment"),
        Vec::<Value>::new(),
        "workers wait for the control plane"
    );
    change(&client, json!({ "version": "v1.35.0" })).await;
    reaches(&client, "v1.35.0", 3).await;
    wait_for_nodes(&nodes, 3).await;

    let delete = ["delete", "cluster", "x", "--wait", "--data-dir", &directory];
    let (out, err) = texts(&run(home.path(), &delete).await);
    assert!(
        out.contains("cluster x is gone"),
        "{out}{err}\n{}",
        up.story()
    );
    let owned = ListParams::default().labels("topology.cluster.x-k8s.io/owned");
    for (group, name) in [
        (CORE, "MachineDeployment"),
        ("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate"),
        (
            "infrastructure.cluster.x-k8s.io",
            "OpenStackMachineTemplate",
        ),
    ] {
        let all: Api<DynamicObject> =
            Api::namespaced_with(client.clone(), "default", &kind(group, name));
        eventually(&format!("no {name}"), || async {
            let left = all.list(&owned).await.ok()?.items;
            left.iter()
                .map(ResourceExt::name_any)
                .next()
                .is_none()
                .then_some(())
        })
        .await;
    }
    up.stop().await;
}
