//! Snapshots and backups.

use std::time::Duration;

use csi_spec::volume_content_source::{SnapshotSource, Type};
use csi_spec::{Controller, ListSnapshotsRequest, VolumeContentSource};
use grpc::{Code, Status};
use serde_json::{Value, json};
use simulator::cloud::{Latency, Options as CloudOptions};

use crate::faults::until_final;
use crate::world::{GIB, World, minutes, new_volume, options, refused};

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_taken_once_and_deleted() {
    let world = World::open().await;
    let volume = world.volume("pvc-1", 2).await.volume_id;
    let first = world.snapshot("snap", &volume, &[]).await.unwrap();
    assert!(first.ready_to_use);
    assert_eq!(
        (first.size_bytes, &first.source_volume_id),
        (2 * GIB, &volume)
    );
    assert!(first.creation_time.is_some());
    assert_eq!(world.snapshot("snap", &volume, &[]).await.unwrap(), first);
    let created = world.one("snapshots", &first.snapshot_id).await;
    assert_eq!(
        created["metadata"],
        json!({"cinder.csi.openstack.org/cluster": "kubernetes"})
    );
    let other = world.volume("pvc-2", 1).await.volume_id;
    refused(
        world.snapshot("snap", &other, &[]).await,
        Code::AlreadyExists,
        "of another volume",
    );
    for _ in 0..2 {
        world.delete_snapshot(&first.snapshot_id).await.unwrap();
    }
    assert!(world.all("snapshots").await.is_empty());
    refused(
        world.snapshot("snap", "absent", &[]).await,
        Code::NotFound,
        "volume absent does not exist",
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_of_a_volume_in_use_is_forced_when_the_class_says_so() {
    let world = World::open().await;
    let volume = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    world.attach(&volume, &server).await.unwrap();
    for words in ["create snapshot snap", "`force-create: \"true\"`"] {
        refused(
            world.snapshot("snap", &volume, &[]).await,
            Code::FailedPrecondition,
            words,
        );
    }
    let forced = [("force-create", "true")];
    assert!(
        world
            .snapshot("snap", &volume, &forced)
            .await
            .unwrap()
            .ready_to_use
    );
}

#[tokio::test(start_paused = true)]
async fn a_backup_takes_no_longer_call_than_a_snapshot_and_leaves_no_snapshot() {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    let world = World::open_on(cloud, options()).await;
    let volume = world.volume("pvc-1", 3).await.volume_id;
    let mut ids = Vec::new();
    for _ in 0..100 {
        match world
            .snapshot("backup", &volume, &[("type", "backup")])
            .await
        {
            Ok(backup) => {
                ids.push(backup.snapshot_id.clone());
                if backup.ready_to_use {
                    break;
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
            Err(status) => assert_eq!(status.code, Code::Aborted, "{}", status.message),
        }
    }
    ids.dedup();
    let [id] = ids.as_slice() else {
        panic!("one backup under one id: {ids:?}");
    };
    let backup = world.one("backups", id).await;
    assert_eq!(backup["status"], "available");
    assert!(world.all("snapshots").await.is_empty());
    world.delete_snapshot(id).await.unwrap();
    assert!(world.all("backups").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn wrong_parameters_of_a_class_are_told() {
    let world = World::open().await;
    for (key, value, words) in [
        ("type", "image", "is snapshot or backup, not `image`"),
        ("force-create", "yes", "is true or false, not `yes`"),
        (
            "backup-max-duration-seconds-per-gb",
            "long",
            "is a number of seconds",
        ),
        ("incremental", "true", "there are: type, force-create"),
        ("availability", "az1", "has no `type: backup`"),
    ] {
        let taken = world.snapshot("snap", "x", &[(key, value)]).await;
        refused(taken, Code::InvalidArgument, words);
    }
    let contradicting = [("type", "snapshot"), ("availability", "az1")];
    refused(
        world.snapshot("snap", "x", &contradicting).await,
        Code::InvalidArgument,
        "the parameter `availability` is the zone of a backup",
    );
    refused(
        world.snapshot("", "x", &[]).await,
        Code::InvalidArgument,
        "name is missing",
    );
    refused(
        world.snapshot("a", "", &[]).await,
        Code::InvalidArgument,
        "source_volume_id",
    );
    refused(
        world.delete_snapshot("").await,
        Code::InvalidArgument,
        "snapshot_id is missing",
    );
}

#[tokio::test(start_paused = true)]
async fn snapshots_are_listed_in_pages_and_by_source() {
    let world = World::open().await;
    let one = world.volume("pvc-1", 1).await.volume_id;
    let two = world.volume("pvc-2", 1).await.volume_id;
    for index in 0..3 {
        world
            .snapshot(&format!("a-{index}"), &one, &[])
            .await
            .unwrap();
        world
            .snapshot(&format!("b-{index}"), &two, &[])
            .await
            .unwrap();
    }
    let list = async |request: ListSnapshotsRequest| {
        let answer = world
            .driver
            .list_snapshots(minutes(3), request)
            .await
            .unwrap();
        let ids = answer
            .entries
            .into_iter()
            .map(|it| it.snapshot.unwrap().snapshot_id);
        (ids.collect::<Vec<_>>(), answer.next_token)
    };
    let (mut seen, mut token) = (Vec::new(), String::new());
    loop {
        let (page, next) = list(ListSnapshotsRequest {
            max_entries: 2,
            starting_token: token,
            source_volume_id: two.clone(),
            ..ListSnapshotsRequest::default()
        })
        .await;
        seen.extend(page);
        token = next;
        if token.is_empty() {
            break;
        }
    }
    assert_eq!(seen.len(), 3);
    let (all, _) = list(ListSnapshotsRequest::default()).await;
    assert_eq!(all.len(), 6);
    let (found, _) = list(ListSnapshotsRequest {
        snapshot_id: seen[0].clone(),
        ..ListSnapshotsRequest::default()
    })
    .await;
    assert_eq!(found, seen[..1]);
    let (none, _) = list(ListSnapshotsRequest {
        snapshot_id: "absent".to_owned(),
        ..ListSnapshotsRequest::default()
    })
    .await;
    assert!(none.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_that_others_need_stays_and_cinder_says_why() {
    let world = World::open().await;
    let volume = world.volume("pvc-1", 1).await.volume_id;
    let snapshot = world
        .snapshot("snap", &volume, &[])
        .await
        .unwrap()
        .snapshot_id;
    let mut restored = new_volume("pvc-2", 1);
    restored.volume_content_source = Some(VolumeContentSource {
        r#type: Some(Type::Snapshot(SnapshotSource {
            snapshot_id: snapshot.clone(),
        })),
    });
    let restored = world.create(restored).await.unwrap().volume_id;
    refused(
        world.delete_snapshot(&snapshot).await,
        Code::FailedPrecondition,
        &format!("Cinder has kept snapshot {snapshot}: "),
    );
    world.delete(&restored).await.unwrap();
    world.delete_snapshot(&snapshot).await.unwrap();
    world.trouble("snapshot-delete-fails").await;
    let snapshot = world
        .snapshot("snap", &volume, &[])
        .await
        .unwrap()
        .snapshot_id;
    refused(
        world.delete_snapshot(&snapshot).await,
        Code::FailedPrecondition,
        "Cinder has kept snapshot",
    );
    // An administrator has to look at it.
    refused(
        world.delete_snapshot(&snapshot).await,
        Code::FailedPrecondition,
        "must be available or error",
    );
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_or_backup_that_failed_is_deleted_and_made_anew() {
    let world = World::open().await;
    let volume = world.volume("pvc-1", 1).await.volume_id;
    for (fault, class) in [("snapshot-fails", ""), ("backup-fails", "backup")] {
        world.trouble(fault).await;
        let mut refusals = Vec::new();
        let taken = loop {
            match world.snapshot("snap", &volume, &[("type", class)]).await {
                Ok(taken) if taken.ready_to_use => break taken,
                Ok(_) => tokio::time::sleep(Duration::from_secs(1)).await,
                Err(status) => {
                    assert_eq!(status.code, Code::Aborted, "{}", status.message);
                    refusals.push(status.message);
                }
            }
        };
        let has_reason = |it: &String| it.contains("which was deleted: ");
        assert!(refusals.iter().any(has_reason), "{fault}: {refusals:?}");
        let left = [world.all("snapshots").await, world.all("backups").await].concat();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(left[0]["id"], taken.snapshot_id.as_str());
        world.delete_snapshot(&taken.snapshot_id).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_not_ready_is_not_listed_as_ready() {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    let world = World::open_on(cloud, options()).await;
    let volume = world.volume("pvc-1", 1).await.volume_id;
    let body = json!({"snapshot": {"name": "by hand", "volume_id": volume}});
    let path = world.volumes("/snapshots");
    let created = world.request("POST", &path, body).await;
    let id = created["snapshot"]["id"].as_str().unwrap();
    let ready = async || {
        let request = ListSnapshotsRequest {
            snapshot_id: id.to_owned(),
            ..ListSnapshotsRequest::default()
        };
        let listed = world.driver.list_snapshots(minutes(3), request).await;
        let entries = listed.unwrap().entries;
        entries[0].snapshot.as_ref().unwrap().ready_to_use
    };
    assert!(!ready().await);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert!(ready().await);
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_is_not_gone_because_a_list_fails() {
    let world = World::open().await;
    for kind in ["backups", "snapshots"] {
        let rule = json!({"service": "volume", "method": "GET", "route": format!("/v3/{{project}}/{kind}/detail"),
            "status": 503});
        world.fault(rule).await;
        let refusal = world.delete_snapshot("absent").await.unwrap_err();
        assert_eq!(refusal.code, Code::Unavailable, "{}", refusal.message);
        world
            .request("DELETE", "/_simulator/faults", Value::Null)
            .await;
    }
    // A list that began before may fail yet.
    let gone = until_final(async || world.delete_snapshot("absent").await);
    gone.await.unwrap();
}

async fn until_ready(world: &World, name: &str, volume: &str, class: &[(&str, &str)]) -> String {
    for _ in 0..100 {
        match world.snapshot(name, volume, class).await {
            Ok(taken) if taken.ready_to_use => return taken.snapshot_id,
            Ok(_) => tokio::time::sleep(Duration::from_secs(1)).await,
            Err(status) => assert_eq!(status.code, Code::Aborted, "{}", status.message),
        }
    }
    panic!("{name} is not ready");
}

/// How many snapshots of an id, or of any, are listed.
async fn listed(world: &World, id: &str) -> Result<usize, Status> {
    let request = ListSnapshotsRequest {
        snapshot_id: id.to_owned(),
        ..ListSnapshotsRequest::default()
    };
    let answer = world.driver.list_snapshots(minutes(3), request).await?;
    Ok(answer.entries.len())
}

/// A list that cannot be read is no empty list, and only calls that need it wait for it.
#[tokio::test(start_paused = true)]
async fn backups_that_cannot_be_listed_are_not_taken_for_none() {
    let mut world = World::open().await;
    let volume = world.volume("pvc-1", 1).await.volume_id;
    let class = [("type", "backup")];
    let backup = until_ready(&world, "back-1", &volume, &class).await;
    for fault in [
        json!({"status": 401}),
        json!({"status": 403}),
        json!({"garbage": true}),
    ] {
        let plain = world.snapshot("snap-1", &volume, &[]).await.unwrap();
        let mut rule =
            json!({"service": "volume", "method": "GET", "route": "/v3/{project}/backups/detail"});
        // The list of a moment ago would still be recent enough.
        world.restart();
        let rule = rule.as_object_mut().unwrap();
        rule.extend(fault.as_object().unwrap().clone());
        world.fault(Value::Object(rule.clone())).await;
        let unavailable = |status: Status| {
            assert_eq!(
                status.code,
                Code::Unavailable,
                "{fault}: {}",
                status.message
            );
        };
        unavailable(world.delete_snapshot(&backup).await.unwrap_err());
        let restore = |from: &str| {
            let mut request = new_volume(&format!("pvc-of-{from}"), 1);
            let snapshot_id = from.to_owned();
            request.volume_content_source = Some(VolumeContentSource {
                r#type: Some(Type::Snapshot(SnapshotSource { snapshot_id })),
            });
            request
        };
        unavailable(world.create(restore(&backup)).await.unwrap_err());
        unavailable(world.snapshot("back-1", &volume, &class).await.unwrap_err());
        unavailable(world.snapshot("back-2", &volume, &class).await.unwrap_err());
        unavailable(listed(&world, &backup).await.unwrap_err());
        // Snapshots are still listed if the cloud denies backups for good.
        if fault["status"] == 403 {
            assert_eq!(listed(&world, &plain.snapshot_id).await.unwrap(), 1);
            assert_eq!(listed(&world, "").await.unwrap(), 1);
        }
        let copy = world.create(restore(&plain.snapshot_id)).await.unwrap();
        world.delete(&copy.volume_id).await.unwrap();
        world.delete_snapshot(&plain.snapshot_id).await.unwrap();
        world
            .request("DELETE", "/_simulator/faults", Value::Null)
            .await;
        assert_eq!(world.one("backups", &backup).await["status"], "available");
    }
    let gone = until_final(async || world.delete_snapshot(&backup).await);
    gone.await.unwrap();
    assert!(world.all("backups").await.is_empty());
}
