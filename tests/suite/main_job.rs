//! The main job as the README tells it: up, look with kubectl, scale, replace, delete.

use std::collections::BTreeSet;
use std::path::Path;

use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt};
use serde_json::json;

use crate::managers;
use crate::process::{self, Checked, Up, eventually, kubectl, run, texts};

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_comes_up_is_scaled_mended_and_deleted_without_a_trace() {
    let home = tempfile::tempdir().unwrap();
    let empty = home.path().join("nothing.yaml");
    std::fs::write(
        &empty,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
    )
    .unwrap();

    let mut up = Up::start(home.path(), &[], &[]);
    let ready = up.ready().await;
    let simulator = ready["simulatedOpenStack"].as_str().unwrap().to_owned();
    let client = up.client().await;

    // Six Ready nodes whose provider ids are those of the Machines.
    let workload = workload_client(home.path()).await;
    let nodes: Api<Node> = Api::all(workload.clone());
    let listed = nodes.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(listed.len(), 6, "{}", up.story());
    assert!(listed.iter().all(is_ready));
    assert_eq!(
        provider_ids_of_nodes(&listed),
        provider_ids_of_machines(&client).await
    );

    // Whoever wrote something is named in it.
    let writers = managers::all(&client).await;
    for controller in [
        "cluster",
        "kubeadmconfig",
        "kubeadmcontrolplane",
        "machine",
        "machinedeployment",
        "machineset",
        "openstackcluster",
        "openstackmachine",
    ] {
        let name = format!("ferrostack-{controller}");
        assert!(writers.contains(&name), "{name} is not among {writers:?}");
    }
    let writers = managers::all(&workload).await;
    for name in [
        "ferrostack-kubeadmconfig",
        "ferrostack-machine",
        "kubeadm",
        "kubelet",
    ] {
        assert!(writers.contains(name), "{name} is not among {writers:?}");
    }

    // Scale up, delete a worker Machine, scale down.
    scale(&client, "demo-md-0", 4).await;
    wait_for_nodes(&nodes, 7).await;
    let victim = worker_machines(&client).await.remove(0);
    machines(&client)
        .delete(&victim, &DeleteParams::default())
        .await
        .unwrap();
    eventually(
        "another Machine in the place of the deleted one",
        || async {
            let names = worker_machines(&client).await;
            (names.len() == 4 && !names.contains(&victim)).then_some(())
        },
    )
    .await;
    scale(&client, "demo-md-0", 3).await;
    wait_for_nodes(&nodes, 6).await;

    // Deletion leaves the cloud as an empty one.
    let data = data(home.path());
    let delete = ["delete", "cluster", "demo", "--wait", "--data-dir", &data];
    let (out, err) = texts(&run(home.path(), &delete).await);
    assert!(
        out.contains("cluster demo is gone"),
        "{out}{err}\n{}",
        up.story()
    );
    let after = resources(&simulator).await;
    up.stop().await;
    let fresh = tempfile::tempdir().unwrap();
    let mut other = Up::start(
        fresh.path(),
        &[
            "-f",
            empty.to_str().unwrap(),
            "--exit-when-ready",
            "--timeout",
            "1s",
        ],
        &[],
    );
    assert_eq!(
        other.ended().await,
        Some(1),
        "nothing to wait for is not ready"
    );
    let url = format!(
        "http://{}",
        endpoints(fresh.path())["cloud"].as_str().unwrap()
    );
    let other = Up::start(fresh.path(), &["-f", empty.to_str().unwrap()], &[]);
    let untouched = eventually("the other simulated cloud", || resources_or_none(&url)).await;
    assert_eq!(after, untouched);
    other.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_when_ready_exits_and_a_second_up_resumes_at_once() {
    let home = tempfile::tempdir().unwrap();
    let small = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
        "--exit-when-ready",
    ];
    let mut up = Up::start(home.path(), &small, &[]);
    up.ready().await;
    assert_eq!(up.ended().await, Some(0), "{}", up.story());
    let mut again = Up::start(home.path(), &[], &[]);
    again.ready().await;
    let nodes: Api<Node> = Api::all(workload_client(home.path()).await);
    wait_for_nodes(&nodes, 2).await;
    again.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_kill_minus_nine_the_whole_of_it_resumes_cloud_and_guests_included() {
    let home = tempfile::tempdir().unwrap();
    let counts = [
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
    ];
    for lines in [4, 9, 14, 6, 11] {
        let mut up = Up::start(home.path(), &counts, &[]);
        up.read_lines(lines).await;
        up.kill().await;
    }
    let mut up = Up::start(home.path(), &counts, &[]);
    let ready = up.ready().await;
    let nodes: Api<Node> = Api::all(workload_client(home.path()).await);
    wait_for_nodes(&nodes, 2).await;
    let cloud = resources(ready["simulatedOpenStack"].as_str().unwrap()).await;
    let demo = &cloud["resources"]["demo"];
    for (kind, count) in [
        ("server", 2),
        ("network", 1),
        ("loadbalancer", 1),
        ("router", 1),
    ] {
        assert_eq!(demo[kind], count, "{kind}: {demo}");
    }
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn kubectl_works_on_both_kubeconfigs() {
    let Some(kubectl) = kubectl() else { return };
    let home = tempfile::tempdir().unwrap();
    let mut up = Up::start(
        home.path(),
        &[
            "--control-plane-machine-count",
            "1",
            "--worker-machine-count",
            "1",
        ],
        &[],
    );
    up.ready().await;
    let management = home.path().join("data/kubeconfig").display().to_string();
    workload_client(home.path()).await;
    let workload = home
        .path()
        .join("workload.kubeconfig")
        .display()
        .to_string();
    let call = async |kubeconfig: &str, args: &[&str]| -> String {
        let output = Checked::of(tokio::process::Command::new(&kubectl))
            .args(["--kubeconfig", kubeconfig])
            .args(args)
            .env("HOME", home.path())
            .output()
            .await;
        let (out, err) = texts(&output);
        assert!(output.status.success(), "kubectl {args:?}: {out}{err}");
        out
    };
    let header = |text: &str| -> Vec<String> {
        let first = text.lines().next().unwrap_or_default();
        first
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .map(str::to_owned)
            .collect()
    };

    for (resource, columns) in [
        (
            "clusters",
            "NAME|CLUSTERCLASS|AVAILABLE|CP DESIRED|CP AVAILABLE|CP UP-TO-DATE|W DESIRED|W AVAILABLE|W UP-TO-DATE|PHASE|AGE|VERSION",
        ),
        (
            "machines",
            "NAME|CLUSTER|NODE NAME|READY|AVAILABLE|UP-TO-DATE|PHASE|AGE|VERSION",
        ),
        (
            "machinedeployments",
            "NAME|CLUSTER|AVAILABLE|DESIRED|CURRENT|READY|AVAILABLE|UP-TO-DATE|PHASE|AGE|VERSION",
        ),
        (
            "kubeadmcontrolplanes",
            "NAME|CLUSTER|AVAILABLE|DESIRED|CURRENT|READY|AVAILABLE|UP-TO-DATE|INITIALIZED|AGE|VERSION",
        ),
        ("openstackclusters", "NAME|CLUSTER|NETWORK|BASTION IP|AGE"),
        ("openstackmachines", "NAME|CLUSTER|PROVIDERID|MACHINE|AGE"),
    ] {
        let found = header(&call(&management, &["get", resource]).await);
        for column in columns.split('|') {
            assert!(
                found.iter().any(|name| name == column),
                "{resource}: {column} in {found:?}"
            );
        }
    }
    let nodes = call(&workload, &["get", "nodes"]).await;
    assert_eq!(
        nodes
            .lines()
            .filter(|line| line.contains(" Ready "))
            .count(),
        2,
        "{nodes}"
    );
    let described = call(
        &management,
        &["describe", "cluster.cluster.x-k8s.io", "demo"],
    )
    .await;
    assert!(described.contains("Infrastructure Ref"), "{described}");
    let described = call(&management, &["describe", "openstackcluster", "demo"]).await;
    assert!(
        described.contains("Events:") && described.contains("SuccessfulCreate"),
        "{described}"
    );
    for scope in [&[][..], &["--server-side"][..]] {
        let manifest = home.path().join("map.yaml");
        std::fs::write(
            &manifest,
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: b}\n",
        )
        .unwrap();
        let path = manifest.to_str().unwrap();
        for kubeconfig in [&management, &workload] {
            call(kubeconfig, &[&["apply", "-f", path], scope].concat()).await;
            std::fs::write(
                &manifest,
                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {a: c}\n",
            )
            .unwrap();
            call(kubeconfig, &[&["apply", "-f", path], scope].concat()).await;
            let value = call(
                kubeconfig,
                &["get", "configmap", "m", "-o", "jsonpath={.data.a}"],
            )
            .await;
            assert_eq!(value, "c");
            call(kubeconfig, &["delete", "configmap", "m"]).await;
        }
    }
    call(
        &management,
        &["scale", "machinedeployment", "demo-md-0", "--replicas=2"],
    )
    .await;
    call(
        &management,
        &[
            "wait",
            "machinedeployment/demo-md-0",
            "--for=jsonpath={.status.readyReplicas}=2",
            "--timeout=300s",
        ],
    )
    .await;
    up.stop().await;
}

/// The workload cluster of `demo`, as `get kubeconfig` gives access to it.
pub(crate) async fn workload_client(home: &Path) -> Client {
    let output = run(
        home,
        &["get", "kubeconfig", "demo", "--data-dir", &data(home)],
    )
    .await;
    let (text, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    let path = home.join("workload.kubeconfig");
    std::fs::write(&path, text).unwrap();
    process::client(&path).await
}

pub(crate) fn data(home: &Path) -> String {
    home.join("data").display().to_string()
}

fn endpoints(home: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(home.join("data/endpoints.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

fn is_ready(node: &Node) -> bool {
    let conditions = node
        .status
        .as_ref()
        .and_then(|status| status.conditions.as_ref());
    conditions
        .into_iter()
        .flatten()
        .any(|c| c.type_ == "Ready" && c.status == "True")
}

fn provider_ids_of_nodes(nodes: &[Node]) -> BTreeSet<String> {
    nodes
        .iter()
        .filter_map(|node| node.spec.as_ref()?.provider_id.clone())
        .collect()
}

pub(crate) fn machines(client: &Client) -> Api<DynamicObject> {
    Api::namespaced_with(
        client.clone(),
        "default",
        &kind("cluster.x-k8s.io", "Machine"),
    )
}

async fn provider_ids_of_machines(client: &Client) -> BTreeSet<String> {
    let list = machines(client).list(&ListParams::default()).await.unwrap();
    list.items
        .iter()
        .filter_map(|m| Some(m.data["spec"]["providerID"].as_str()?.to_owned()))
        .collect()
}

async fn worker_machines(client: &Client) -> Vec<String> {
    let params = ListParams::default().labels("cluster.x-k8s.io/deployment-name=demo-md-0");
    let list = machines(client).list(&params).await.unwrap();
    list.items
        .iter()
        .filter(|m| m.data["status"]["phase"] == "Running")
        .map(ResourceExt::name_any)
        .collect()
}

async fn scale(client: &Client, name: &str, replicas: u32) {
    let deployment = kind("cluster.x-k8s.io", "MachineDeployment");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &deployment);
    let patch = json!({"spec": {"replicas": replicas}});
    api.patch_scale(name, &PatchParams::default(), &Patch::Merge(&patch))
        .await
        .unwrap();
}

pub(crate) async fn wait_for_nodes(nodes: &Api<Node>, count: usize) {
    eventually(&format!("{count} Ready nodes"), || async {
        let items = nodes.list(&ListParams::default()).await.ok()?.items;
        (items.len() == count && items.iter().all(is_ready)).then_some(())
    })
    .await;
}

pub(crate) async fn resources(simulator: &str) -> serde_json::Value {
    resources_or_none(simulator).await.unwrap()
}

async fn resources_or_none(simulator: &str) -> Option<serde_json::Value> {
    reqwest::get(format!("{simulator}/_simulator/resources"))
        .await
        .ok()?
        .json()
        .await
        .ok()
}

/// A kind of ours in the stored version.
pub(crate) fn kind(group: &str, kind: &str) -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta2", kind))
}
