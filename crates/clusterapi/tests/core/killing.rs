//! Killing the controllers at each of their writes, and starting them again.

use std::collections::BTreeSet;

use api::core::v1beta2::{Cluster, Machine, MachineDeployment};
use api::kube::ResourceExt;
use serde_json::json;
use testbed::written_at_rest;

use crate::world::{World, machine_template};

/// Intervals between kills, in writes: the controllers are killed at every nth write, so that different writes are
/// the last ones.
const WRITES: [usize; 5] = [1, 2, 3, 4, 7];

#[tokio::test(start_paused = true)]
async fn a_restart_at_rest_writes_nothing() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    let writes = written_at_rest(world.kill(), |fuse| world.run_with(fuse)).await;
    assert_eq!(writes, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_create_no_machine_twice() {
    for nth in WRITES {
        let world = World::open().await;
        world.cluster(2).await;
        let kills = world.killed_at_every(nth, || world.settled(2)).await;
        assert!(
            kills > 20 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let gone = world.gone.lock().clone();
        assert!(gone.is_empty(), "created in vain: {gone:?}");
        assert_eq!(world.nodes().await.len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_scale_a_deployment() {
    for nth in WRITES {
        let world = World::start().await;
        world.cluster(3).await;
        world.settled(3).await;
        world.kill().await;
        for replicas in [1, 4] {
            let scale = json!({ "spec": { "replicas": replicas } });
            world.merge::<MachineDeployment>("demo-md", scale).await;
            let kills = world.killed_at_every(nth, || world.settled(replicas)).await;
            assert!(
                kills >= 8 / nth,
                "only {kills} kills at each write number {nth}"
            );
        }
        let gone = world.gone.lock().clone();
        let machines = gone.iter().filter(|name| name.starts_with("FakeMachine/"));
        assert_eq!(machines.count(), 2, "deleted: {gone:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_roll_a_template_out_within_its_bounds() {
    for nth in [1, 3] {
        let world = World::start().await;
        world.cluster(3).await;
        world.settled(3).await;
        world.kill().await;
        let before = names(&world).await;
        world.apply([machine_template("demo-md-2")]).await;
        let change = json!({ "spec": { "template": { "spec": {
            "infrastructureRef": { "name": "demo-md-2" },
        }}}});
        world.merge::<MachineDeployment>("demo-md", change).await;
        let settled = || async {
            world.settled(3).await;
            assert!(names(&world).await.is_disjoint(&before));
        };
        let kills = world.killed_at_every(nth, settled).await;
        assert!(
            kills > 20 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let gone = world.gone.lock().clone();
        let machines = gone.iter().filter(|name| name.starts_with("FakeMachine/"));
        assert_eq!(machines.count(), 3, "deleted: {gone:?}");
    }
}

/// The names of all Machines.
async fn names(world: &World) -> BTreeSet<String> {
    let machines = world.list::<Machine>().await;
    machines.iter().map(ResourceExt::name_any).collect()
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_delete_a_cluster_to_the_end() {
    for nth in WRITES {
        let world = World::start().await;
        world.cluster(3).await;
        world.settled(3).await;
        world.kill().await;
        world.delete::<Cluster>("demo").await;
        let gone = || world.gone::<Cluster>("demo");
        let kills = world.killed_at_every(nth, gone).await;
        assert!(
            kills > 8 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let gone = world.gone.lock().clone();
        for (kind, expected) in [
            ("FakeMachine/", 3),
            ("FakeConfig/", 3),
            ("FakeControlPlane/", 1),
            ("FakeCluster/", 1),
        ] {
            let count = gone.iter().filter(|name| name.starts_with(kind)).count();
            assert_eq!(count, expected, "{kind}: {gone:?}");
        }
    }
}
