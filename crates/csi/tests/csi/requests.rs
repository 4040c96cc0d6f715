//! The requests that volumes cost, counted by the cloud.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use simulator::cloud::{Latency, Options as CloudOptions};

use crate::world::{World, options};

async fn slow() -> World {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    World::open_on(cloud, options()).await
}

/// Writes and reads.
fn sums(requests: &BTreeMap<String, u64>) -> (u64, u64) {
    let reads = |it: &&String| it.starts_with("GET");
    let all: u64 = requests.values().sum();
    let read = requests
        .iter()
        .filter(|(name, _)| reads(name))
        .map(|(_, count)| count)
        .sum();
    (all - read, read)
}

#[tokio::test(start_paused = true)]
async fn a_volume_alone_costs_nine_requests_on_a_cloud_that_answers_at_once() {
    let world = World::open().await;
    let server = world.server("node-1").await;
    world.requests();
    let id = world.volume("pvc-1", 1).await.volume_id;
    world.attach(&id, &server).await.unwrap();
    world.detach(&id, &server).await.unwrap();
    world.delete(&id).await.unwrap();
    let requests = world.requests();
    let (writes, reads) = sums(&requests);
    assert_eq!(writes, 4, "{requests:?}");
    assert!(reads <= 5, "{requests:?}");
}

/// The lives of many volumes, 20 at a time.
async fn lives(world: &World, count: usize, servers: &[String]) {
    let life = async |index: usize| {
        let id = world.volume(&format!("pvc-{index}"), 1).await.volume_id;
        let server = &servers[index % servers.len()];
        world.attach(&id, server).await.unwrap();
        world.detach(&id, server).await.unwrap();
        world.delete(&id).await.unwrap();
    };
    stream::iter(0..count)
        .map(life)
        .buffer_unordered(20)
        .collect::<Vec<()>>()
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_hundred_volumes_cost_their_writes_and_a_hundred_lists() {
    let world = slow().await;
    let servers = join_all(["a", "b", "c", "d", "e"].map(|name| world.server(name))).await;
    world.requests();
    lives(&world, 100, &servers).await;
    let requests = world.requests();
    let (writes, reads) = sums(&requests);
    assert_eq!(writes, 400, "{requests:?}");
    assert!(reads <= 100, "{requests:?}");
}

#[tokio::test(start_paused = true)]
async fn a_driver_at_rest_asks_nothing() {
    let world = Arc::new(slow().await);
    world.volume("pvc-1", 1).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    world.requests();
    tokio::time::sleep(Duration::from_secs(600)).await;
    let requests = world.requests();
    assert!(requests.values().sum::<u64>() <= 4, "{requests:?}");
}
