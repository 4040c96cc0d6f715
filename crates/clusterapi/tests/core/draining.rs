//! MachineDrainRules: the Pods of a Node are evicted in groups, skipped or waited for.

use std::time::Duration;

use api::conditions;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::{Node, Pod};
use api::k8s_openapi::api::events::v1::Event;
use api::k8s_openapi::jiff::{SignedDuration, Timestamp};
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

/// True if the Pod is evicted: gone, or being deleted.
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

/// Deletes a Pod at its end, as a kubelet does.
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

/// Longer than a triggered reconcile takes. The provider of these tests polls all the time.
const MOMENT: Duration = Duration::from_secs(3);

/// Updates the Node of a machine: its kubelet reports, or has been silent for this many seconds.
async fn kubelet(world: &World, node: &str, silent: Option<i64>) {
    let nodes: Api<Node> = Api::all(world.workload.clone());
    let taints = silent.map(|seconds| {
        let since = Timestamp::now() - SignedDuration::from_secs(seconds);
        json!([{
            "key": "node.kubernetes.io/unreachable", "effect": "NoExecute",
            "timeAdded": since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
        }])
    });
    let patch = Patch::Merge(json!({ "spec": { "taints": taints } }));
    let params = PatchParams::default();
    nodes.patch(node, &params, &patch).await.unwrap();
}

/// Sets the time at which the drain of a machine began.
async fn drain_began(world: &World, machine: &str, seconds: i64) {
    let since = Timestamp::now() - SignedDuration::from_secs(seconds);
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let patch = json!({ "status": { "deletion": { "nodeDrainStartTime": since } } });
    let patched = world
        .api::<Machine>()
        .patch_status(machine, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_ten_minutes_after_the_kubelet_has_fallen_silent() {
    let world = World::start().await;
    world.cluster(2).await;
    world.settled(2).await;
    let machines = world.list::<Machine>().await;
    let (name, limited) = (machines[0].name_any(), machines[1].name_any());
    // No kubelet reports that the job has completed.
    let wait = json!({ "behavior": "WaitCompleted" });
    world.create(rule("job", &wait, "job")).await;
    world.create(rule("other", &wait, "other")).await;
    pod(&world, "job", &name).await;
    pod(&world, "other", &limited).await;
    world.delete::<Machine>(&name).await;
    reports(&world, &name, "job: waiting for completion").await;

    // The drain waits for a kubelet that reports, however long it takes.
    drain_began(&world, &name, 7_200).await;
    tokio::time::sleep(MOMENT).await;
    reports(&world, &name, "job: waiting for completion").await;
    // The time of a silence counts from its own start, and the condition has the end of the wait.
    kubelet(&world, &name, Some(60)).await;
    reports(
        &world,
        &name,
        &format!("The kubelet of Node {name} has not answered since "),
    )
    .await;
    reports(
        &world,
        &name,
        "(spec.deletion.nodeDrainTimeoutSeconds is not set)",
    )
    .await;

    // 0 is no limit, also for a silent kubelet.
    let never = json!({ "spec": { "deletion": { "nodeDrainTimeoutSeconds": 0 } } });
    world.delete::<Machine>(&limited).await;
    reports(&world, &limited, "other: waiting for completion").await;
    // The set no longer writes to a machine that is being deleted.
    world.merge::<Machine>(&limited, never).await;
    kubelet(&world, &limited, Some(3_600)).await;
    drain_began(&world, &limited, 7_200).await;

    kubelet(&world, &name, Some(601)).await;
    world.gone::<Machine>(&name).await;
    let events = world.list::<Event>().await.into_iter();
    let of_drain: Vec<_> = events
        .filter(|event| event.regarding.as_ref().and_then(|it| it.name.as_ref()) == Some(&name))
        .filter(|event| event.action.as_deref() == Some("Drain"))
        .map(|event| {
            (
                event.reason.unwrap_or_default(),
                event.note.unwrap_or_default(),
            )
        })
        .collect();
    let [(reason, note)] = &of_drain[..] else {
        panic!("{of_drain:?}")
    };
    assert_eq!(reason, "FailedDrainNode");
    assert!(note.contains("has not answered since"), "{note}");
    tokio::time::sleep(MOMENT).await;
    reports(&world, &limited, "other: waiting for completion").await;
}
