//! Stopping the controllers anywhere, and starting them again.

use std::time::Duration;

use api::controlplane::v1beta2::KubeadmControlPlane;
use serde_json::json;

use crate::world::World;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn controllers_killed_anywhere_make_nothing_twice() {
    let world = World::open().await;
    world.cluster(3).await;
    for pause in [3, 8, 15, 30, 60, 5, 12, 25, 50, 100, 200, 40, 70] {
        world.run();
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.kill().await;
    }
    world.run();
    world.settled(3).await;
    world
        .merge::<KubeadmControlPlane>("demo", json!({"spec": {"version": "v1.35.0"}}))
        .await;
    for pause in [10, 40, 20, 80, 30, 120, 15] {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        world.kill().await;
        world.run();
    }
    world.settled(3).await;
}
