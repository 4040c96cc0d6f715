//! The requests that volumes cost, counted by the cloud.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use serde_json::json;
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
async fn a_volume_alone_costs_eight_requests_after_a_list_of_the_last_seconds() {
    let world = World::open().await;
    let server = world.server("node-1").await;
    for (name, lists) in [("cold", 5), ("warm", 4)] {
        world.requests();
        let id = world.volume(name, 1).await.volume_id;
        world.attach(&id, &server).await.unwrap();
        world.detach(&id, &server).await.unwrap();
        world.delete(&id).await.unwrap();
        let requests = world.requests();
        assert_eq!(sums(&requests), (4, lists), "{name}: {requests:?}");
    }
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
async fn many_volumes_share_their_lists() {
    for (count, nodes, most) in [(100, 5, 60), (500, 20, 200)] {
        let world = slow().await;
        let names: Vec<String> = (0..nodes).map(|it| format!("node-{it}")).collect();
        let servers = join_all(names.iter().map(|name| world.server(name))).await;
        world.requests();
        lives(&world, count, &servers).await;
        let requests = world.requests();
        let (writes, reads) = sums(&requests);
        assert_eq!(writes, 4 * count as u64, "{requests:?}");
        assert!(reads <= most, "{requests:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_at_rest_asks_nothing_however_many_volumes_there_are() {
    for count in [1, 1000] {
        let world = slow().await;
        for index in 1..count {
            let volume = json!({"volume": {"name": format!("pvc-{index}"), "size": 1}});
            world
                .cinder("POST", &world.volumes("/volumes"), volume)
                .await;
        }
        world.volume("pvc-0", 1).await;
        assert_eq!(world.all("volumes").await.len(), count);
        tokio::time::sleep(Duration::from_secs(600)).await;
        world.requests();
        tokio::time::sleep(Duration::from_secs(600)).await;
        let requests = world.requests();
        assert!(requests.values().sum::<u64>() <= 4, "{count}: {requests:?}");
    }
}
