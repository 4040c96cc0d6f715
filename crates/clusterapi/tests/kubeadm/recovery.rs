//! Two of three control plane machines are gone for good.

use std::collections::BTreeSet;

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Machine;
use api::k8s_openapi::api::core::v1::Node;
use api::k8s_openapi::api::events::v1::Event;
use api::kube::ResourceExt;
use api::kube::api::{Api, Patch, PatchParams};
use serde_json::json;
use testbed::written_at_rest;

use crate::world::{World, eventually};

const SURVIVOR: &str = "ferrostack.dev/etcd-survivor";

/// The controllers are killed at every nth write, for each of these n.
const WRITES: [usize; 2] = [1, 3];

/// Cluster of three machines, two of them switched off: the working one, and the others.
async fn one_of_three(world: &World) -> (String, Vec<String>) {
    world.cluster(3).await;
    world.settled(3).await;
    let mut lost = world.machine_names().await;
    let survivor = lost.remove(1);
    world.members.switch_off(&lost[0]);
    // Reported while there is a quorum.
    for name in &lost {
        falls_silent(world, name).await;
    }
    world.members.switch_off(&lost[1]);
    let words = "etcd has lost its quorum: 1 of 3 voting members answers";
    world.condition("EtcdRecovered", "False", words).await;
    (survivor, lost)
}

/// Reports a Node without heartbeats, as the controller manager of the workload cluster does.
async fn falls_silent(world: &World, node: &str) {
    let nodes: Api<Node> = Api::all(world.workload.clone());
    let silent = json!({"status": {"conditions": [
        {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "silent"},
    ]}});
    let params = PatchParams::default();
    nodes
        .patch_status(node, &params, &Patch::Merge(silent))
        .await
        .unwrap();
}

async fn name_survivor(world: &World, name: &str) {
    let named = json!({"metadata": {"annotations": {SURVIVOR: name}}});
    world.merge::<KubeadmControlPlane>("demo", named).await;
}

/// Waits until three machines are members, none of which is `lost`, and the annotation is gone.
async fn recovered(world: &World, survivor: &str, lost: &[String]) {
    eventually("the lost machines to be replaced", || async {
        let (machines, members) = (world.machine_names().await, world.members.names());
        let plane = world.api::<KubeadmControlPlane>().get("demo").await;
        let named = plane.unwrap().annotations().contains_key(SURVIVOR);
        let kept = machines.iter().any(|name| name == survivor);
        let replaced = !machines.iter().any(|name| lost.contains(name));
        match kept && replaced && !named && machines == members && members.len() == 3 {
            true => Ok(()),
            false => Err(format!("{machines:?} {members:?} {named}")),
        }
    })
    .await;
    world.settled(3).await;
    world.condition("EtcdRecovered", "True", "").await;
}

async fn events(world: &World) -> BTreeSet<String> {
    let events = world.list::<Event>().await.into_iter();
    events.filter_map(|event| event.reason).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_deleted_until_the_survivor_is_restarted_alone_and_named() {
    let world = World::start().await;
    let (survivor, lost) = one_of_three(&world).await;
    let machines = world.machine_names().await;
    for name in &lost {
        let words = format!("Machine {name} is lost: it does not answer");
        world.condition("EtcdRecovered", "False", &words).await;
    }
    let words = format!("restart the etcd of Machine {survivor} alone");
    world.condition("EtcdRecovered", "False", &words).await;
    world
        .condition(
            "EtcdClusterHealthy",
            "False",
            "1 of 3 voting members are healthy",
        )
        .await;
    // Named too early: etcd has no quorum, and would remove no member.
    name_survivor(&world, &survivor).await;
    let words = "The others are deleted after that";
    world.condition("EtcdRecovered", "False", words).await;
    assert_eq!(world.machine_names().await, machines);
    assert_eq!(world.members.names(), machines);
    let none = json!({"metadata": {"annotations": {SURVIVOR: null}}});
    world.merge::<KubeadmControlPlane>("demo", none).await;

    world.members.etcd.force_new_cluster(&survivor).unwrap();
    let words = "have joined, and etcd, which has a quorum, does not list them";
    world.condition("EtcdRecovered", "False", words).await;
    for (name, why) in [
        (lost[0].as_str(), "its etcd is not a member"),
        ("nobody", "no Machine of this control plane has this name"),
    ] {
        name_survivor(&world, name).await;
        world.condition("EtcdRecovered", "False", why).await;
    }
    let deleted = world.list::<Machine>().await;
    assert!(
        deleted
            .iter()
            .all(|it| it.metadata.deletion_timestamp.is_none())
    );

    name_survivor(&world, &survivor).await;
    recovered(&world, &survivor, &lost).await;
    let reasons = events(&world).await;
    for reason in [
        "EtcdQuorumLost",
        "EtcdSurvivorNotNamed",
        "EtcdSurvivorRefused",
        "DeletingLostMachines",
        "EtcdRecovered",
    ] {
        assert!(reasons.contains(reason), "{reason} {reasons:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_annotation_on_a_control_plane_that_works_deletes_nothing_and_goes() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let machines = world.machine_names().await;
    name_survivor(&world, &machines[0]).await;
    eventually("the annotation to go", || async {
        let plane = world.api::<KubeadmControlPlane>().get("demo").await;
        match plane.unwrap().annotations().get(SURVIVOR) {
            None => Ok(()),
            Some(left) => Err(left.clone()),
        }
    })
    .await;
    world.settled(3).await;
    assert_eq!(world.machine_names().await, machines);
    assert_eq!(world.members.names(), machines);
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_recover_a_control_plane() {
    for nth in WRITES {
        let world = World::start().await;
        let (survivor, lost) = one_of_three(&world).await;
        world.kill().await;
        world.members.etcd.force_new_cluster(&survivor).unwrap();
        name_survivor(&world, &survivor).await;
        let rest = || recovered(&world, &survivor, &lost);
        let kills = world.killed_at_every(nth, rest).await;
        assert!(
            kills > 30 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let writes = written_at_rest(world.kill(), |fuse| world.run_with(fuse)).await;
        assert_eq!(writes, Vec::<String>::new());
    }
}
