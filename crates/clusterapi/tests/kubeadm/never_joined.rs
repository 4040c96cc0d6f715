//! Machines that never became members of etcd.

use std::time::Duration;

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Node;
use api::kube::ResourceExt;
use api::kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::json;
use testbed::Fuse;
use tokio::time::Instant;

use crate::world::{NEVER_JOINS, NO_SERVER, World, cluster, eventually, template};

/// Lets the control plane roll out to the template `name`.
async fn roll_out(world: &World, name: &str) {
    world.apply([template(name)]).await;
    let change =
        json!({"spec": {"machineTemplate": {"spec": {"infrastructureRef": {"name": name}}}}});
    world.merge::<KubeadmControlPlane>("demo", change).await;
}

/// Reports a Node without heartbeats for long, as the controller manager of the workload cluster does.
async fn falls_silent(world: &World, node: &str) {
    let nodes: Api<Node> = Api::all(world.workload.clone());
    let silent = json!({"status": {"conditions": [{
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "silent",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    let params = PatchParams::default();
    nodes
        .patch_status(node, &params, &Patch::Merge(silent))
        .await
        .unwrap();
}

/// Waits until there is one machine besides `known`, with a server or without, and returns its name.
async fn another(world: &World, known: &[String], server: bool) -> String {
    eventually("one more machine", || async {
        let names = world.machine_names().await;
        let mut new = names.iter().filter(|name| !known.contains(name));
        let Some(new) = new.next() else {
            return Err(format!("{names:?}"));
        };
        let machine = world.api::<Machine>().get(new).await.unwrap();
        let status = machine.status.unwrap_or_default();
        match status.addresses.is_some() == server {
            true => Ok(new.clone()),
            false => Err(format!("{status:?}")),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typo_in_the_template_of_a_single_machine_is_mended_by_its_correction() {
    let world = World::start().await;
    world.cluster(1).await;
    world.settled(1).await;
    let names = world.machine_names().await;
    roll_out(&world, NO_SERVER).await;
    let stuck = another(&world, &names, false).await;
    let why = format!("Machine {stuck} has no Node yet");
    world.condition("RollingOut", "True", &why).await;
    roll_out(&world, "good").await;
    eventually("both machines to be replaced", || async {
        let now = world.machine_names().await;
        match now.contains(&stuck) || now.contains(&names[0]) {
            true => Err(format!("{now:?}")),
            false => Ok(()),
        }
    })
    .await;
    world.settled(1).await;
    assert_eq!(world.members.names(), world.machine_names().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typo_in_the_template_of_the_first_machine_is_mended_by_its_correction() {
    let world = World::start().await;
    let config = json!({"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}});
    let mut objects = cluster(1, config);
    objects[3]["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"] = json!(NO_SERVER);
    objects.push(template(NO_SERVER));
    world.apply(objects).await;
    let stuck = another(&world, &[], false).await;
    roll_out(&world, "good").await;
    world.gone::<Machine>(&stuck).await;
    world.settled(1).await;
    assert_eq!(world.members.names(), world.machine_names().await);
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_half_made_of_a_former_template_is_in_nobodys_way() {
    let mut kills = 0;
    for nth in 1.. {
        let world = World::open().await;
        let config = json!({"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}});
        let mut objects = cluster(1, config);
        objects[3]["spec"]["machineTemplate"]["spec"]["infrastructureRef"]["name"] =
            json!(NO_SERVER);
        objects.push(template(NO_SERVER));
        world.apply(objects).await;
        let fuse = Fuse::at(nth);
        let running = world.run_with(&fuse);
        let blown = tokio::time::timeout(Duration::from_secs(60), fuse.blown()).await;
        running.kill().await;
        if blown.is_err() || !world.machine_names().await.is_empty() {
            break;
        }
        if infrastructure(&world).await.is_empty() {
            continue;
        }
        kills += 1;
        roll_out(&world, "good").await;
        world.run();
        world.settled(1).await;
        let objects = infrastructure(&world).await;
        assert_eq!(
            objects,
            world.machine_names().await,
            "killed at write {nth}"
        );
        world.kill().await;
    }
    assert!(kills > 0, "no kill came between infrastructure and Machine");
}

/// The names of the infrastructure of machines.
async fn infrastructure(world: &World) -> Vec<String> {
    let api = world.fake("FakeMachine");
    let items = api.list(&ListParams::default()).await.unwrap().items;
    items.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn a_template_that_comes_after_its_control_plane_gives_a_machine_at_once() {
    let world = World::start().await;
    let config = json!({"clusterConfiguration": {"encryptionAlgorithm": "ECDSA-P256"}});
    let mut objects = cluster(1, config);
    let late = objects.remove(2);
    world.apply(objects).await;
    world
        .condition(
            "Reconciled",
            "False",
            "FakeMachineTemplate default/demo does not exist",
        )
        .await;
    // After this, retries of an error are a minute apart.
    tokio::time::sleep(Duration::from_secs(120)).await;
    let begun = Instant::now();
    world.apply([late]).await;
    eventually("a machine", || async {
        match world.machine_names().await.len() {
            1 => Ok(()),
            other => Err(format!("{other}")),
        }
    })
    .await;
    assert!(
        begun.elapsed() < Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    world.settled(1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_member_and_a_machine_that_never_joins_are_both_replaced() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let names = world.machine_names().await;
    let selector = json!({"matchLabels": {"cluster.x-k8s.io/control-plane": ""}});
    let silent = json!({"type": "Ready", "status": "Unknown", "timeoutSeconds": 1});
    let check = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "MachineHealthCheck",
        "metadata": {"name": "control-plane", "namespace": crate::world::NS},
        "spec": {
            "clusterName": "demo", "selector": selector,
            "checks": {"unhealthyNodeConditions": [silent]},
            "remediation": {"triggerIf": {"unhealthyLessThanOrEqualTo": "100%"}},
        },
    });
    world.apply([check]).await;
    roll_out(&world, NEVER_JOINS).await;
    let never = another(&world, &names, true).await;
    // etcd refuses the addition of the one that never joins from now on.
    world.members.switch_off(&names[0]);
    falls_silent(&world, &names[0]).await;
    world
        .condition("Reconciled", "False", "etcdserver: unhealthy cluster")
        .await;
    roll_out(&world, "good").await;
    // In place of the timeout for its start.
    let ask = json!({"metadata": {"annotations": {"cluster.x-k8s.io/remediate-machine": ""}}});
    world.merge::<Machine>(&never, ask).await;
    eventually("all machines to be replaced", || async {
        let now = world.machine_names().await;
        match now.contains(&never) || now.iter().any(|name| names.contains(name)) {
            true => Err(format!("{now:?}")),
            false => Ok(()),
        }
    })
    .await;
    world.settled(3).await;
    assert_eq!(world.members.names(), world.machine_names().await);
    world.condition("Reconciled", "True", "").await;
}
