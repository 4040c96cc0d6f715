//! The requests that volumes cost, counted by the cloud.

use std::collections::BTreeMap;
use std::time::Duration;

use csi_spec::{Controller, ListVolumesRequest};
use futures::future::join_all;
use futures::stream::{self, StreamExt as _};
use serde_json::json;
use simulator::cloud::{Latency, Options as CloudOptions, RouteTiming, Timings};
use tokio::time::Instant;

use crate::world::{World, minutes, options};

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

/// The time of a cloud of so many volumes that are created, attached, detached and deleted, so many at a time, and the
/// longest time of an attachment.
async fn crowd(
    world: &World,
    count: usize,
    at_once: usize,
    servers: &[String],
) -> (Duration, Duration) {
    let begun = Instant::now();
    let each = |index: usize| async move { world.volume(&format!("pvc-{index}"), 1).await };
    let volumes = stream::iter((0..count).map(each)).buffered(at_once);
    let volumes: Vec<_> = volumes.collect().await;
    let of = |index: usize| (&volumes[index].volume_id, &servers[index % servers.len()]);
    let attach = |index: usize| async move {
        let ((id, server), begun) = (of(index), Instant::now());
        world.attach(id, server).await.unwrap();
        begun.elapsed()
    };
    let times = stream::iter((0..count).map(attach)).buffer_unordered(at_once);
    let longest = times.collect::<Vec<_>>().await.into_iter().max();
    let detach = |index: usize| async move {
        let (id, server) = of(index);
        world.detach(id, server).await.unwrap();
    };
    let detached = stream::iter((0..count).map(detach)).buffer_unordered(at_once);
    detached.collect::<Vec<()>>().await;
    let delete = |index: usize| async move { world.delete(of(index).0).await.unwrap() };
    let deleted = stream::iter((0..count).map(delete)).buffer_unordered(at_once);
    deleted.collect::<Vec<()>>().await;
    (begun.elapsed(), longest.unwrap())
}

/// The cloud's own times alone count here: 60 ms for a write, so many for a list, 170 for what a write begins.
#[tokio::test(start_paused = true)]
async fn a_hundred_calls_at_once_wait_for_the_cloud_and_not_for_each_other() {
    for (list, most, attachment) in [(20, 8000, 530), (150, 11_500, 1100)] {
        let ms = Duration::from_millis;
        let timings = Timings {
            request: ms(60),
            volume: ms(170),
            routes: vec![RouteTiming {
                service: "volume".to_owned(),
                method: "GET".to_owned(),
                route: "/v3/{project}/volumes/detail".to_owned(),
                duration: ms(list),
            }],
            ..Timings::default()
        };
        let cloud = CloudOptions {
            latency: Latency::Custom(Box::new(timings)),
            ..CloudOptions::default()
        };
        let world = World::open_on(cloud, options()).await;
        let names: Vec<String> = (0..20).map(|it| format!("node-{it}")).collect();
        let servers = join_all(names.iter().map(|name| world.server(name))).await;
        world.requests();
        let (all, longest) = crowd(&world, 500, 100, &servers).await;
        let requests = world.requests();
        let (writes, reads) = sums(&requests);
        assert_eq!(writes, 2000, "{requests:?}");
        assert!(reads <= 200, "{requests:?}");
        assert!(
            all < ms(most) && longest < ms(attachment),
            "list {list} ms: {all:?}, attached in {longest:?}, {reads} reads"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn five_hundred_volumes_are_attached_and_detached_at_once() {
    let world = slow().await;
    let names: Vec<String> = (0..20).map(|it| format!("node-{it}")).collect();
    let servers = join_all(names.iter().map(|name| world.server(name))).await;
    world.requests();
    crowd(&world, 500, 500, &servers).await;
    let requests = world.requests();
    let (writes, reads) = sums(&requests);
    assert_eq!(writes, 2000, "{requests:?}");
    assert!(reads <= 200, "{requests:?}");
    world.assert_empty("all at once").await;
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
        // The attacher asks each minute.
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_secs(60)).await;
            let listed = world
                .driver
                .list_volumes(minutes(1), ListVolumesRequest::default());
            assert_eq!(listed.await.unwrap().entries.len(), count);
        }
        let requests = world.requests();
        assert!(requests.values().sum::<u64>() <= 4, "{count}: {requests:?}");
    }
}
