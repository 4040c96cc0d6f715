//! Two replicas that are asked for the same at once, while each has a list of before: what both make is there once in the
//! end, and both answer the same.

use std::sync::Arc;
use std::time::Duration;

use csi::Driver;
use csi_spec::{
    Controller, CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest, DeleteSnapshotRequest,
    DeleteVolumeGroupSnapshotRequest, GroupController,
};
use futures::FutureExt as _;
use futures::future::LocalBoxFuture;
use grpc::{Code, Status};
use proptest::prelude::*;
use serde_json::json;
use simulator::cloud::{Latency, Options as CloudOptions};

use crate::world::{World, minutes, new_volume, options, pairs};

/// A class of snapshots.
type Class = &'static [(&'static str, &'static str)];

const SNAPSHOTS: Class = &[];
const BACKUPS: Class = &[("type", "backup")];

async fn open(latency: Latency) -> World {
    let cloud = CloudOptions {
        latency,
        ..CloudOptions::default()
    };
    World::open_on(cloud, options()).await
}

/// Two replicas whose lists are of now.
async fn replicas(world: &World, volume: &str) -> [Arc<Driver>; 2] {
    let replicas = [world.replica(), world.replica()];
    for (index, driver) in replicas.iter().enumerate() {
        // Each has taken something else a moment ago.
        for class in [SNAPSHOTS, BACKUPS] {
            let name = format!("other-{index}-{}", class.len());
            let id = until_ready(driver, &name, volume, class).await;
            delete(driver, &id).await;
        }
    }
    replicas
}

/// Asks again as the snapshotter does, until the snapshot is ready; returns its id, which never changes.
async fn until_ready(driver: &Driver, name: &str, volume: &str, class: Class) -> String {
    let mut known = None;
    for _ in 0..400 {
        let request = CreateSnapshotRequest {
            name: name.to_owned(),
            source_volume_id: volume.to_owned(),
            parameters: pairs(class),
            ..CreateSnapshotRequest::default()
        };
        match driver.create_snapshot(minutes(3), request).await {
            Ok(taken) => {
                let snapshot = taken.snapshot.unwrap();
                let known = known.get_or_insert(snapshot.snapshot_id.clone());
                assert_eq!(*known, snapshot.snapshot_id, "{name} has another id");
                if snapshot.ready_to_use {
                    return snapshot.snapshot_id;
                }
            }
            Err(status) => may_be_repeated(&status),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{name} does not become ready");
}

async fn delete(driver: &Driver, id: &str) {
    for _ in 0..400 {
        let request = DeleteSnapshotRequest {
            snapshot_id: id.to_owned(),
            ..DeleteSnapshotRequest::default()
        };
        match driver.delete_snapshot(minutes(3), request).await {
            Ok(_) => return,
            Err(status) => may_be_repeated(&status),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{id} is not deleted");
}

/// Asks for a group snapshot until it is there; returns its id.
async fn until_together(driver: &Driver, name: &str, volumes: &[String]) -> String {
    for _ in 0..400 {
        let request = CreateVolumeGroupSnapshotRequest {
            name: name.to_owned(),
            source_volume_ids: volumes.to_vec(),
            parameters: pairs(&[("group-type", "together"), ("consistency", "declared")]),
            ..CreateVolumeGroupSnapshotRequest::default()
        };
        match driver
            .create_volume_group_snapshot(minutes(3), request)
            .await
        {
            Ok(taken) => return taken.group_snapshot.unwrap().group_snapshot_id,
            Err(status) => may_be_repeated(&status),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{name} is not taken");
}

async fn delete_together(driver: &Driver, id: &str) {
    for _ in 0..400 {
        let request = DeleteVolumeGroupSnapshotRequest {
            group_snapshot_id: id.to_owned(),
            ..DeleteVolumeGroupSnapshotRequest::default()
        };
        match driver
            .delete_volume_group_snapshot(minutes(3), request)
            .await
        {
            Ok(_) => return,
            Err(status) => may_be_repeated(&status),
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("{id} is not deleted");
}

fn may_be_repeated(status: &Status) {
    assert!(
        matches!(status.code, Code::Aborted | Code::Unavailable),
        "{}: {}",
        status.code.name(),
        status.message
    );
}

/// Ids of the objects of a kind that are not being deleted.
async fn left(world: &World, kind: &str) -> Vec<String> {
    let all = world.all(kind).await;
    let stays = all.into_iter().filter(|it| it["status"] != "deleting");
    stays
        .map(|it| it["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_two_replicas_take_at_once_is_there_once() {
    for latency in [Latency::None, Latency::Real] {
        let world = open(latency).await;
        let volume = world.volume("pvc-1", 1).await.volume_id;
        let [one, two] = replicas(&world, &volume).await;
        let (first, second) = futures::join!(
            until_ready(&one, "snap", &volume, SNAPSHOTS),
            until_ready(&two, "snap", &volume, SNAPSHOTS),
        );
        assert_eq!(first, second);
        assert_eq!(left(&world, "snapshots").await, [first]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_backup_that_two_replicas_make_at_once_is_there_once_without_a_snapshot() {
    for latency in [Latency::None, Latency::Real] {
        let world = open(latency).await;
        let volume = world.volume("pvc-1", 1).await.volume_id;
        let [one, two] = replicas(&world, &volume).await;
        let (first, second) = futures::join!(
            until_ready(&one, "backup", &volume, BACKUPS),
            until_ready(&two, "backup", &volume, BACKUPS),
        );
        assert_eq!(first, second);
        assert_eq!(left(&world, "backups").await, [first]);
        assert_eq!(left(&world, "snapshots").await, [""; 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_snapshot_that_two_replicas_take_at_once_is_there_once_with_its_group() {
    for latency in [Latency::None, Latency::Real] {
        let world = open(latency).await;
        let specs = json!({"consistent_group_snapshot_enabled": "<is> True"});
        world.group_type("together", specs).await;
        let one_back_end = json!({"volume_backend_name": "ceph"});
        world.volume_type("ceph", one_back_end).await;
        let mut volumes = Vec::new();
        for name in ["pvc-1", "pvc-2"] {
            let mut request = new_volume(name, 1);
            request.parameters.extend(pairs(&[("type", "ceph")]));
            volumes.push(world.create(request).await.unwrap().volume_id);
        }
        let replicas = [world.replica(), world.replica()];
        for driver in &replicas {
            let id = until_together(driver, "other", &volumes).await;
            delete_together(driver, &id).await;
        }
        let [one, two] = &replicas;
        let (first, second) = futures::join!(
            until_together(one, "together", &volumes),
            until_together(two, "together", &volumes),
        );
        assert_eq!(first, second);
        assert_eq!(
            left(&world, "group_snapshots").await,
            std::slice::from_ref(&first)
        );
        assert_eq!(left(&world, "snapshots").await.len(), volumes.len());
        assert_eq!(left(&world, "groups").await.len(), 1);
        delete_together(one, &first).await;
        assert_eq!(left(&world, "groups").await, [""; 0]);
    }
}

/// Request of one client.
#[derive(Clone, Copy, Debug)]
struct Turn {
    /// The number in the name.
    name: usize,
    /// Its client gives up after so many milliseconds, and asks again at the end.
    patience: Option<u64>,
    /// Milliseconds before the next request.
    pause: u64,
}

async fn client(driver: &Driver, volume: &str, class: Class, turns: &[Turn]) {
    for turn in turns {
        let name = format!("snap-{}", turn.name);
        let asked: LocalBoxFuture<'_, String> =
            until_ready(driver, &name, volume, class).boxed_local();
        let patience = turn.patience.map_or(Duration::MAX, Duration::from_millis);
        let _ = tokio::time::timeout(patience, asked).await;
        tokio::time::sleep(Duration::from_millis(turn.pause)).await;
    }
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let patience = prop_oneof![3 => Just(None), 1 => (0..3000u64).prop_map(Some)];
    let pause = prop_oneof![2 => Just(0), 1 => 0..4000u64];
    let turn = (0..3usize, patience, pause).prop_map(|(name, patience, pause)| Turn {
        name,
        patience,
        pause,
    });
    prop::collection::vec(turn, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_clients_double_no_snapshot(one in turns(), two in turns(), slow in any::<bool>(), backup in any::<bool>()) {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build().unwrap();
        let latency = if slow { Latency::Real } else { Latency::None };
        let class = if backup { BACKUPS } else { SNAPSHOTS };
        runtime.block_on(async {
            let world = open(latency).await;
            let volume = world.volume("pvc-1", 1).await.volume_id;
            let [first, second] = [world.replica(), world.replica()];
            futures::join!(
                client(&first, &volume, class, &one),
                client(&second, &volume, class, &two),
            );
            // A write whose caller has gone may still be in progress.
            tokio::time::sleep(Duration::from_secs(120)).await;
            let mut ids = Vec::new();
            let mut names: Vec<usize> = one.iter().chain(&two).map(|it| it.name).collect();
            names.sort_unstable();
            names.dedup();
            for name in names {
                ids.push(until_ready(&first, &format!("snap-{name}"), &volume, class).await);
            }
            let (kind, other) = if backup { ("backups", "snapshots") } else { ("snapshots", "backups") };
            let mut there = left(&world, kind).await;
            there.sort_unstable();
            ids.sort_unstable();
            assert_eq!(there, ids);
            assert_eq!(left(&world, other).await, [""; 0]);
        });
    }
}
