//! Taints of a template on the Nodes of its machines.

use api::core::v1beta2::{Machine, MachineDeployment};
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::world::{World, eventually, uids};

/// Waits until every Node has exactly these taints, as `key=value:effect`.
async fn tainted(world: &World, count: usize, expected: &[&str]) {
    eventually(&format!("taints {expected:?}"), || async {
        let nodes = world.nodes().await;
        let good = |node: &Node| {
            let taints = node.spec.as_ref().and_then(|spec| spec.taints.clone());
            let mut names: Vec<_> = taints
                .unwrap_or_default()
                .into_iter()
                .map(|it| format!("{}={}:{}", it.key, it.value.unwrap_or_default(), it.effect))
                .collect();
            names.sort();
            names == expected
        };
        if nodes.len() == count && nodes.iter().all(good) {
            return Ok(());
        }
        Err(format!("{nodes:#?}"))
    })
    .await;
}

async fn template(world: &World, taints: Value) {
    let change = json!({ "spec": { "template": { "spec": { "taints": taints } } } });
    world.merge::<MachineDeployment>("demo-md", change).await;
}

fn taint(key: &str, value: &str, propagation: &str) -> Value {
    json!({ "key": key, "value": value, "effect": "NoSchedule", "propagation": propagation })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taints_of_a_template_reach_nodes_without_new_machines() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let before = uids(&world.list::<Machine>().await);
    let (kept, once) = (
        taint("kept", "1", "Always"),
        taint("once", "1", "OnInitialization"),
    );
    template(&world, json!([kept, once])).await;
    // The Nodes were initialized before the template had the second one.
    tainted(&world, 2, &["kept=1:NoSchedule"]).await;
    // A taint removed by others comes back.
    let nodes: Api<Node> = Api::all(world.workload.clone());
    for node in world.nodes().await {
        let none = Patch::Merge(json!({ "spec": { "taints": null } }));
        let name = node.name_any();
        nodes
            .patch(&name, &PatchParams::default(), &none)
            .await
            .unwrap();
    }
    tainted(&world, 2, &["kept=1:NoSchedule"]).await;
    template(&world, json!([taint("kept", "2", "Always"), once])).await;
    tainted(&world, 2, &["kept=2:NoSchedule"]).await;
    assert_eq!(uids(&world.list::<Machine>().await), before);
    // A new machine has both; the taint set once stays, the kept taint leaves with the template.
    world
        .merge::<MachineDeployment>("demo-md", json!({ "spec": { "replicas": 0 } }))
        .await;
    world.settled(0).await;
    world
        .merge::<MachineDeployment>("demo-md", json!({ "spec": { "replicas": 2 } }))
        .await;
    world.settled(2).await;
    tainted(&world, 2, &["kept=2:NoSchedule", "once=1:NoSchedule"]).await;
    template(&world, Value::Null).await;
    tainted(&world, 2, &["once=1:NoSchedule"]).await;
}
