//! Stopping the controllers anywhere, and starting them again.

use std::time::Duration;

use api::core::v1beta2::{Cluster, MachineDeployment};
use serde_json::json;

use crate::world::{World, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_killed_while_machines_are_made_leave_nothing_twice() {
    let world = World::open().await;
    world.cluster(5).await;
    for pause in [3, 8, 15, 30, 60, 5, 12, 25, 50, 100] {
        world.run();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.kill().await;
    }
    world.run();
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_killed_while_a_cluster_goes_finish_when_they_are_back() {
    let world = World::start().await;
    world.cluster(3).await;
    world.settled(3).await;
    world.delete::<Cluster>("demo").await;
    for pause in [5, 10, 20, 40, 80, 15, 30] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.kill().await;
        world.run();
    }
    eventually("the Cluster to be gone", || async {
        match world.api::<Cluster>().get_opt("demo").await.unwrap() {
            None => Ok(()),
            Some(cluster) => Err(format!("{:?}", cluster.status)),
        }
    })
    .await;
    let machines: Vec<_> = world.gone.lock().clone();
    let machines = machines
        .iter()
        .filter(|name| name.starts_with("FakeMachine/"))
        .count();
    assert_eq!(machines, 3);
}
