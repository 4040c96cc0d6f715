//! MachineHealthChecks on a cluster of simulated guests: a machine whose kubelet dies is replaced.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Node;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use serde_json::{Value, json};

use crate::cloud::TestCloud;
use crate::main_job::{kind, machines, wait_for_nodes, workload_client};
use crate::process::{Up, eventually};

const CONTROL_PLANE: &str = "cluster.x-k8s.io/control-plane";
const WORKERS: &str = "cluster.x-k8s.io/deployment-name=demo-md-0";

fn check(name: &str, selector: Value) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": { "name": name, "namespace": "default" },
        "spec": {
            "clusterName": "demo", "selector": selector,
            "checks": { "unhealthyNodeConditions": [
                { "type": "Ready", "status": "Unknown", "timeoutSeconds": 2 },
                { "type": "Ready", "status": "False", "timeoutSeconds": 2 },
            ]},
            "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "40%" } },
        },
    }))
    .unwrap()
}

/// Switches off the server of one of the machines that `selector` selects; returns the name of the machine.
async fn switch_off(cloud: &TestCloud, machines: &Api<DynamicObject>, selector: &str) -> String {
    let params = ListParams::default().labels(selector);
    let machine = machines.list(&params).await.unwrap().items.remove(0);
    let id = machine.data["spec"]["providerID"].as_str().unwrap();
    cloud.stop_server(id.rsplit('/').next().unwrap()).await;
    machine.name_any()
}

async fn replaced(machines: &Api<DynamicObject>, selector: &str, victim: &str, count: usize) {
    eventually(
        &format!("another machine in the place of {victim}"),
        || async {
            let params = ListParams::default().labels(selector);
            let list = machines.list(&params).await.ok()?.items;
            let names: BTreeSet<_> = list.iter().map(ResourceExt::name_any).collect();
            let running = list.iter().all(|m| m.data["status"]["phase"] == "Running");
            (names.len() == count && running && !names.contains(victim)).then_some(())
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn machines_whose_kubelet_dies_are_replaced_workers_and_control_plane() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let args = ["--cloud", "simulated", "--worker-machine-count", "2"];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    let client = up.client().await;
    let resource = kind("cluster.x-k8s.io", "MachineHealthCheck");
    let checks: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let by_label = |label: &str| json!({ "matchLabels": { label: "demo-md-0" } });
    let selectors = [
        ("workers", by_label("cluster.x-k8s.io/deployment-name")),
        (
            "control-plane",
            json!({ "matchExpressions": [{ "key": CONTROL_PLANE, "operator": "Exists" }] }),
        ),
    ];
    for (name, selector) in selectors {
        let created = checks
            .create(&PostParams::default(), &check(name, selector))
            .await;
        created.unwrap();
    }
    let machines = machines(&client);
    let nodes: Api<Node> = Api::all(workload_client(home.path()).await);

    // Half of the workers: more than the check allows.
    let worker = switch_off(&cloud, &machines, WORKERS).await;
    eventually("the refusal", || async {
        let check = checks.get("workers").await.ok()?;
        let conditions = check.data["status"]["conditions"].as_array()?.clone();
        let refused = |c: &Value| c["type"] == "RemediationAllowed" && c["status"] == "False";
        conditions.iter().any(refused).then_some(())
    })
    .await;
    assert!(machines.get_opt(&worker).await.unwrap().is_some());
    let all =
        json!({ "spec": { "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": 1 } } } });
    let params = kube::api::PatchParams::default();
    let patch = kube::api::Patch::Merge(&all);
    checks.patch("workers", &params, &patch).await.unwrap();
    replaced(&machines, WORKERS, &worker, 2).await;

    // One of three control plane machines; its etcd member is replaced with it.
    let victim = switch_off(&cloud, &machines, CONTROL_PLANE).await;
    replaced(&machines, CONTROL_PLANE, &victim, 3).await;
    wait_for_nodes(&nodes, 5).await;
    let healthy = || async {
        let check = checks.get("control-plane").await.ok()?;
        (check.data["status"]["currentHealthy"] == 3).then_some(())
    };
    eventually("three healthy control plane machines", healthy).await;
    up.stop().await;
}
