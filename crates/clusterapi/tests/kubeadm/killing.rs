//! Killing the controllers at each of their writes, and starting them again.

use std::time::Duration;

use api::controlplane::v1beta2::KubeadmControlPlane;
use api::core::v1beta2::Cluster;
use api::k8s_openapi::api::core::v1::Secret;
use api::kube::api::{Api, ListParams};
use serde_json::json;
use testbed::{Fuse, written_at_rest};

use crate::world::{World, template};

/// Intervals between kills, in writes: the controllers are killed at every nth write, so that different writes are
/// the last ones.
const WRITES: [usize; 4] = [1, 3, 5, 11];

#[tokio::test(start_paused = true)]
async fn a_restart_at_rest_writes_nothing() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let writes = written_at_rest(world.kill(), |fuse| world.run_with(fuse)).await;
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_create_a_control_plane() {
    for nth in WRITES {
        let world = World::open().await;
        world.cluster(3).await;
        let settled = || async { drop(world.settled(3).await) };
        let kills = world.killed_at_every(nth, settled).await;
        assert!(
            kills > 40 / nth,
            "only {kills} kills at each write number {nth}"
        );
        // Both machines have joined.
        let tokens: Api<Secret> = Api::namespaced(world.workload.clone(), "kube-system");
        let tokens = tokens.list(&ListParams::default()).await.unwrap();
        assert_eq!(tokens.items.len(), 2, "a token for each machine that joins");
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_scale_upgrade_and_delete_a_control_plane() {
    for nth in WRITES {
        let world = World::start().await;
        world.cluster(1).await;
        world.settled(1).await;
        world.kill().await;
        for (change, replicas) in [
            (json!({"replicas": 3}), 3),
            (json!({"replicas": 1}), 1),
            (json!({"version": "v1.35.0"}), 1),
        ] {
            let change = json!({ "spec": change });
            world.merge::<KubeadmControlPlane>("demo", change).await;
            let settled = || async { drop(world.settled(replicas).await) };
            let kills = world.killed_at_every(nth, settled).await;
            assert!(
                kills >= 20 / nth,
                "only {kills} kills at each write number {nth}"
            );
        }
        world.delete::<Cluster>("demo").await;
        let gone = || world.gone::<Cluster>("demo");
        let kills = world.killed_at_every(nth, gone).await;
        assert!(
            kills >= 10 / nth,
            "only {kills} kills at each write number {nth}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_replace_three_machines_and_their_members() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    world.kill().await;
    world.apply([template("other")]).await;
    let reference = json!({"spec": {"infrastructureRef": {"name": "other"}}});
    for (nth, change) in [
        (1, json!({"machineTemplate": reference})),
        (4, json!({"version": "v1.35.0"})),
    ] {
        let before = world.machine_names().await;
        let change = json!({ "spec": change });
        world.merge::<KubeadmControlPlane>("demo", change).await;
        let settled = || async {
            world.settled(3).await;
            let now = world.machine_names().await;
            assert!(!now.iter().any(|name| before.contains(name)), "{now:?}");
        };
        let kills = world.killed_at_every(nth, settled).await;
        assert!(
            kills >= 40 / nth,
            "only {kills} kills at each write number {nth}"
        );
        assert_eq!(world.members.names(), world.machine_names().await);
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_in_ten_minutes_in_which_nothing_happens() {
    let world = World::open().await;
    let fuse = Fuse::recorder();
    let running = world.run_with(&fuse);
    world.cluster(3).await;
    world.settled(3).await;
    // The reconciles that follow the last change.
    tokio::time::sleep(Duration::from_secs(30)).await;
    world.stop_machines();
    let before = fuse.writes().len();
    // Longer than the interval of periodic reconciles.
    tokio::time::sleep(operator::controller::RESYNC + Duration::from_secs(60)).await;
    assert_eq!(fuse.writes()[before..], Vec::<String>::new());
    running.kill().await;
}
