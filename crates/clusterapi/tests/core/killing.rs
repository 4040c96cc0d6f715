//! Stopping the controllers at each of their writes, and starting them again.

use std::time::Duration;

use api::core::v1beta2::{Cluster, MachineDeployment};
use serde_json::json;

use crate::fuse::killed_at_every;
use crate::world::{World, eventually};

/// At which of their writes controllers are killed that must come to rest beside a cluster: two of them are made by each
/// start, which reports the connection as lost and then as established.
const BESIDES_CONNECTING: [usize; 3] = [3, 4, 7];

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_make_no_machine_twice() {
    for nth in BESIDES_CONNECTING {
        let world = World::open().await;
        world.cluster(2).await;
        let kills = killed_at_every(nth, &world, || world.settled(2)).await;
        assert!(
            kills > 20 / nth,
            "only {kills} kills at each write number {nth}"
        );
        let gone = world.gone.lock().clone();
        assert!(gone.is_empty(), "made in vain: {gone:?}");
        assert_eq!(world.nodes().await.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_killed_while_a_deployment_is_scaled_settle() {
    let world = World::start().await;
    world.cluster(5).await;
    world.settled(5).await;
    for (replicas, pause) in [(2, 10), (6, 20), (1, 15), (4, 35)] {
        let scale = json!({ "spec": { "replicas": replicas } });
        world.merge::<MachineDeployment>("demo-md", scale).await;
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.kill().await;
        world.run();
    }
    world.settled(4).await;
}

#[tokio::test(start_paused = true)]
async fn controllers_killed_at_every_write_delete_a_cluster_to_the_end() {
    for nth in [1, 2, 3] {
        let world = World::start().await;
        world.cluster(3).await;
        world.settled(3).await;
        world.kill().await;
        world.delete::<Cluster>("demo").await;
        let gone = || {
            eventually("the Cluster to be gone", || async {
                match world.api::<Cluster>().get_opt("demo").await.unwrap() {
                    None => Ok(()),
                    Some(cluster) => Err(format!("{:?}", cluster.status)),
                }
            })
        };
        let kills = killed_at_every(nth, &world, gone).await;
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
