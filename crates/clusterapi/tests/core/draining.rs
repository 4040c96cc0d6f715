//! MachineDrainRules: the Pods of a Node are evicted in groups, skipped or waited for.

use std::time::Duration;

use api::conditions;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Pod;
use api::kube::ResourceExt;
use api::kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

use crate::world::{NS, World, eventually};

fn rule(name: &str, drain: &Value, app: &str) -> Value {
    json!({
        "apiVersion": "cluster.x-k8s.io/v1beta1", "kind": "MachineDrainRule",
        "metadata": { "name": name, "namespace": NS },
        "spec": {
            "drain": drain,
            "machines": [{ "selector": { "matchLabels": { "pool": "demo-md" } } }],
            "pods": [{
                "selector": { "matchLabels": { "app": app } },
                "namespaceSelector": { "matchLabels": { "kubernetes.io/metadata.name": NS } },
            }],
        },
    })
}

fn pods(world: &World) -> Api<Pod> {
    Api::namespaced(world.workload.clone(), NS)
}

async fn pod(world: &World, app: &str, node: &str) {
    let pod = serde_json::from_value(json!({
        "metadata": { "name": app, "labels": { "app": app } },
        "spec": {
            "nodeName": node, "containers": [{ "name": "c", "image": "i" }],
            "tolerations": [{ "operator": "Exists" }],
        },
    }))
    .unwrap();
    let created = pods(world).create(&PostParams::default(), &pod).await;
    created.unwrap();
}

/// Whether the Pod is evicted: gone, or being deleted.
async fn is_leaving(world: &World, app: &str) -> bool {
    let found = pods(world).get_opt(app).await.unwrap();
    found.is_none_or(|pod| pod.metadata.deletion_timestamp.is_some())
}

async fn leaves(world: &World, app: &str) {
    eventually(&format!("{app} to be evicted"), || async {
        match is_leaving(world, app).await {
            true => Ok(()),
            false => Err("still there".to_owned()),
        }
    })
    .await;
}

/// What a kubelet does at the end of a Pod.
async fn remove(world: &World, app: &str) {
    let at_once = DeleteParams::default().grace_period(0);
    if pods(world).get_opt(app).await.unwrap().is_some() {
        drop(pods(world).delete(app, &at_once).await.unwrap());
    }
}

async fn reports(world: &World, machine: &str, words: &str) {
    eventually(&format!("the drain to report {words}"), || async {
        let machine = world.api::<Machine>().get(machine).await.unwrap();
        let found = conditions::find(machine.conditions(), "Deleting");
        match found {
            Some(found) if found.message.contains(words) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn pods_leave_in_the_order_of_the_rules() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let drain = |order: i32| json!({ "behavior": "Drain", "order": order });
    world.create(rule("storage", &drain(10), "storage")).await;
    world.create(rule("first", &drain(-1), "first")).await;
    let wait = json!({ "behavior": "WaitCompleted" });
    world.create(rule("job", &wait, "job")).await;
    let skip = json!({ "behavior": "Skip" });
    world.create(rule("agent", &skip, "agent")).await;
    let name = world.list::<Machine>().await[0].name_any();
    for app in ["storage", "first", "job", "agent", "web"] {
        pod(&world, app, &name).await;
    }
    world.delete::<Machine>(&name).await;

    leaves(&world, "first").await;
    remove(&world, "first").await;
    leaves(&world, "web").await;
    reports(&world, &name, "waiting for completion").await;
    reports(
        &world,
        &name,
        "storage: evicted after the Pods of a lower order are gone",
    )
    .await;
    remove(&world, "web").await;
    // The job has order 0, and is still running.
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(!is_leaving(&world, "storage").await);
    let done = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
    let params = PatchParams::default();
    pods(&world)
        .patch_status("job", &params, &done)
        .await
        .unwrap();
    leaves(&world, "storage").await;
    assert!(!is_leaving(&world, "agent").await && !is_leaving(&world, "job").await);
    remove(&world, "storage").await;
    world.gone::<Machine>(&name).await;
    assert!(!is_leaving(&world, "agent").await);
}
