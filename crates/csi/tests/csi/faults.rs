//! Answers that are lost, calls that end early, and a driver that is killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use csi_spec::volume_content_source::{SnapshotSource, Type};
use csi_spec::{
    Controller, GetCapacityRequest, Topology, TopologyRequirement, VolumeContentSource, context,
};
use grpc::{Code, Context, Status};
use serde_json::{Value, json};
use simulator::cloud::{Latency, Options as CloudOptions};
use tokio::time::Instant;

use crate::world::{World, minutes, new_volume, options, pairs, refused};

const VOLUMES: &str = "/v3/{project}/volumes";
const ATTACHMENTS: &str = "/v2.1/servers/{server_id}/os-volume_attachments";

/// Service, method and route of the requests that fail here, of each life.
pub(crate) const OF_LIFE: [[&str; 3]; 9] = [
    ["volume", "POST", VOLUMES],
    ["volume", "DELETE", "/v3/{project}/volumes/{id}"],
    ["volume", "GET", "/v3/{project}/volumes/detail"],
    ["volume", "POST", "/v3/{project}/volumes/{id}/action"],
    ["volume", "POST", "/v3/{project}/snapshots"],
    ["volume", "DELETE", "/v3/{project}/snapshots/{id}"],
    ["volume", "GET", "/v3/{project}/snapshots/detail"],
    ["compute", "POST", ATTACHMENTS],
    [
        "compute",
        "DELETE",
        "/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}",
    ],
];
pub(crate) const OF_BACKUP_LIFE: [[&str; 3]; 3] = [
    ["volume", "POST", "/v3/{project}/backups"],
    ["volume", "GET", "/v3/{project}/backups/detail"],
    ["volume", "DELETE", "/v3/{project}/backups/{id}"],
];
pub(crate) const OF_LOST_SERVER: [[&str; 3]; 1] =
    [["volume", "DELETE", "/v3/{project}/attachments/{id}"]];
/// Routes read besides lists of volumes.
pub(crate) const BESIDE: [[&str; 3]; 5] = [
    ["volume", "GET", "/v3/{project}/attachments"],
    ["volume", "GET", "/v3/{project}/os-availability-zone"],
    ["volume", "GET", "/v3/{project}/os-quota-sets/{target}"],
    ["volume", "GET", "/v3/{project}/messages"],
    ["volume", "GET", "/v3/{project}/types/{id}"],
];

/// Calls until the answer is a code after which a sidecar does not repeat a call.
pub(crate) async fn until_final<T>(call: impl AsyncFn() -> Result<T, Status>) -> Result<T, Status> {
    for _ in 0..50 {
        match call().await {
            Err(status) if matches!(status.code, Code::Aborted | Code::Unavailable) => {}
            outcome => return outcome,
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    panic!("the call does not end");
}

#[tokio::test(start_paused = true)]
async fn a_volume_whose_answer_was_lost_is_found_and_not_leaked() {
    let world = World::open().await;
    for (status, after) in [(504, true), (500, true), (503, false)] {
        let rule = json!({"service": "volume", "method": "POST", "route": VOLUMES, "count": 1,
            "after_change": after, "status": status});
        world.fault(rule).await;
        refused(
            world.create(new_volume("pvc-1", 1)).await,
            Code::Aborted,
            "next call",
        );
        let volume = world.create(new_volume("pvc-1", 1)).await.unwrap();
        assert_eq!(world.all("volumes").await.len(), 1);
        world.delete(&volume.volume_id).await.unwrap();
        assert!(world.all("volumes").await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn an_attachment_and_a_snapshot_whose_answers_were_lost_are_found() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    let rule = json!({"service": "compute", "method": "POST", "route": ATTACHMENTS, "count": 1,
        "after_change": true, "status": 504});
    world.fault(rule).await;
    refused(world.attach(&id, &server).await, Code::Aborted, "next call");
    world.attach(&id, &server).await.unwrap();
    world.detach(&id, &server).await.unwrap();
    let rule = json!({"service": "volume", "method": "POST", "route": "/v3/{project}/snapshots", "count": 1,
        "after_change": true, "status": 504});
    world.fault(rule).await;
    refused(
        world.snapshot("snap", &id, &[]).await,
        Code::Aborted,
        "next call",
    );
    let snapshot = world.snapshot("snap", &id, &[]).await.unwrap();
    assert_eq!(world.all("snapshots").await.len(), 1);
    assert!(snapshot.ready_to_use);
}

#[tokio::test(start_paused = true)]
async fn a_cloud_that_cannot_be_read_is_never_a_final_code() {
    let world = World::open().await;
    for status in [401, 403, 404, 429, 500, 503] {
        let rule = json!({"service": "volume", "method": "GET", "route": "/v3/{project}/volumes/detail",
            "count": 20, "status": status});
        world.fault(rule).await;
        let refusal = world.create(new_volume("pvc-1", 1)).await.unwrap_err();
        assert_eq!(
            refusal.code,
            Code::Unavailable,
            "{status}: {}",
            refusal.message
        );
        world
            .request("DELETE", "/_simulator/faults", Value::Null)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_ends_before_its_deadline_and_the_next_one_goes_on() {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    let world = World::open_on(cloud, options()).await;
    let soon = || Context {
        deadline: Some(Instant::now() + Duration::from_millis(1100)),
    };
    let begun = Instant::now();
    let refusal = world
        .driver
        .create_volume(soon(), new_volume("pvc-1", 1))
        .await
        .unwrap_err();
    assert_eq!(refusal.code, Code::Aborted, "{}", refusal.message);
    assert!(begun.elapsed() <= Duration::from_millis(1100));
    let call = async || {
        world
            .driver
            .create_volume(soon(), new_volume("pvc-1", 1))
            .await
    };
    until_final(call).await.unwrap();
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_its_caller_gives_up_is_not_made_twice() {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    let world = Arc::new(World::open_on(cloud, options()).await);
    world.volume("other", 1).await;
    for pause in [0, 1, 10, 50, 100, 200, 500, 1000, 2000] {
        let call = tokio::spawn({
            let world = Arc::clone(&world);
            async move { world.create(new_volume(&format!("pvc-{pause}"), 1)).await }
        });
        tokio::time::sleep(Duration::from_millis(pause)).await;
        call.abort();
        let again = async || world.create(new_volume(&format!("pvc-{pause}"), 1)).await;
        until_final(again).await.unwrap();
    }
    assert_eq!(world.all("volumes").await.len(), 10);
}

#[tokio::test(start_paused = true)]
async fn calls_about_one_volume_come_one_after_another() {
    let world = World::open().await;
    let (one, two) = tokio::join!(
        world.create(new_volume("pvc-1", 1)),
        world.create(new_volume("pvc-1", 1)),
    );
    assert_eq!(one.unwrap().volume_id, two.unwrap().volume_id);
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_two_replicas_made_at_once_becomes_one() {
    let mut world = World::open().await;
    let first = world.volume("pvc-1", 1).await.volume_id;
    let metadata = world.one("volumes", &first).await["metadata"].clone();
    let body = json!({"volume": {"name": "pvc-1", "size": 1, "metadata": metadata}});
    let path = world.volumes("/volumes");
    world.request("POST", &path, body).await;
    world.restart();
    let call = async || world.create(new_volume("pvc-1", 1)).await;
    let volume = until_final(call).await.unwrap();
    let left = world.all("volumes").await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0]["id"], volume.volume_id.as_str());
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_cinder_cannot_make_is_deleted_with_its_reason() {
    let world = World::open().await;
    world.trouble("create-fails").await;
    let call = async || world.create(new_volume("pvc-1", 1)).await;
    let refusal = until_final(call).await.unwrap_err();
    assert_eq!(refusal.code, Code::ResourceExhausted, "{}", refusal.message);
    assert!(
        refusal
            .message
            .contains("Cinder could not create the volume"),
        "{}",
        refusal.message
    );
    assert!(world.all("volumes").await.is_empty());
    world.volume("pvc-1", 1).await;
}

/// One life of a volume and a snapshot; each call is repeated as by its sidecar.
pub(crate) async fn life(world: &World, server: &str) -> Result<(), Status> {
    let id = until_final(async || world.create(new_volume("pvc-1", 1)).await)
        .await?
        .volume_id;
    until_final(async || world.attach(&id, server).await).await?;
    let snapshot = until_final(async || {
        let class = [("force-create", "true")];
        world.snapshot("snap", &id, &class).await
    });
    let snapshot = snapshot.await?.snapshot_id;
    let counts = [
        world.all("volumes").await.len(),
        world.all("snapshots").await.len(),
    ];
    assert_eq!(counts, [1, 1]);
    until_final(async || world.expand(&id, 2).await).await?;
    until_final(async || world.delete_snapshot(&snapshot).await).await?;
    until_final(async || world.detach(&id, server).await).await?;
    until_final(async || world.expand(&id, 3).await).await?;
    assert_eq!(world.one("volumes", &id).await["size"], 3);
    until_final(async || world.delete(&id).await).await
}

/// One life of a volume and of a backup, of which another volume is made.
pub(crate) async fn backup_life(world: &World) -> Result<(), Status> {
    let id = until_final(async || world.create(new_volume("pvc-1", 1)).await)
        .await?
        .volume_id;
    let mut backup = None;
    for _ in 0..50 {
        let class = [("type", "backup")];
        let taken = until_final(async || world.snapshot("snap", &id, &class).await).await?;
        if taken.ready_to_use {
            backup = Some(taken.snapshot_id);
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    let backup = backup.expect("a backup becomes ready");
    assert_eq!(world.all("snapshots").await.len(), 0);
    assert_eq!(world.all("backups").await.len(), 1);
    let mut restored = new_volume("pvc-2", 1);
    restored.volume_content_source = Some(VolumeContentSource {
        r#type: Some(Type::Snapshot(SnapshotSource {
            snapshot_id: backup.clone(),
        })),
    });
    let restored = until_final(async || world.create(restored.clone()).await).await?;
    until_final(async || world.delete(&restored.volume_id).await).await?;
    // Its name is asked for again, for the same volume.
    until_final(async || world.delete_snapshot(&backup).await).await?;
    until_final(async || world.delete(&id).await).await
}

/// Plays a life again and again, the driver killed after its first write, its second, ... After each, a whole life leaves
/// nothing. A life has at least `least` writes.
pub(crate) async fn killed_after_each_write(
    world: &mut World,
    least: u64,
    life: impl AsyncFn(&World) -> Result<(), Status>,
) {
    for nth in 0.. {
        let writes = Arc::new(AtomicU64::new(0));
        let count = Arc::clone(&writes);
        let killed = Arc::new(tokio::sync::Notify::new());
        let kill = Arc::clone(&killed);
        world.cloud.on_write(move |_| {
            if count.fetch_add(1, Ordering::SeqCst) == nth {
                kill.notify_one();
            }
        });
        let ended = tokio::select! {
            biased;
            () = killed.notified() => false,
            ended = life(world) => {
                ended.unwrap();
                true
            }
        };
        if ended {
            assert!(
                nth >= least,
                "a life has {least} writes, and {nth} were seen"
            );
            break;
        }
        world.restart();
        world.cloud.on_write(|_| {});
        life(world).await.unwrap();
        world
            .assert_empty(&format!("killed after write {nth}"))
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_after_any_write_leaves_nothing() {
    let mut world = World::open().await;
    let server = world.server("node-1").await;
    killed_after_each_write(&mut world, 8, async |world| life(world, &server).await).await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_after_any_write_leaves_no_backup() {
    let mut world = World::open().await;
    killed_after_each_write(&mut world, 7, backup_life).await;
}

#[tokio::test(start_paused = true)]
async fn random_faults_end_in_a_backup_that_is_gone() {
    let world = World::open().await;
    for route in OF_BACKUP_LIFE {
        world
            .each_fault(route, async || backup_life(&world).await)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn random_faults_end_in_a_volume_that_is_gone() {
    let world = World::open().await;
    let server = world.server("node-1").await;
    for route in OF_LIFE {
        world
            .each_fault(route, async || life(&world, &server).await)
            .await;
    }
}

/// A volume whose server goes without it.
pub(crate) async fn life_with_a_lost_server(world: &World) -> Result<(), Status> {
    let created = until_final(async || world.create(new_volume("pvc-1", 1)).await).await?;
    let id = created.volume_id;
    // Objects left by a life that ended too early.
    until_final(async || world.detach(&id, "").await).await?;
    let server = world.server("node-1").await;
    until_final(async || world.attach(&id, &server).await).await?;
    world.orphan(&server).await;
    until_final(async || world.detach(&id, &server).await).await?;
    until_final(async || world.delete(&id).await).await
}

#[tokio::test(start_paused = true)]
async fn random_faults_end_in_a_volume_that_no_lost_server_has() {
    let world = World::open().await;
    for route in OF_LOST_SERVER {
        world
            .each_fault(route, async || life_with_a_lost_server(&world).await)
            .await;
    }
}

/// Of a volume in a zone, which is reserved on the way, with what is read beside the lists of volumes.
pub(crate) async fn life_with_reads(world: &World, server: &str) -> Result<(), Status> {
    let zone = Topology {
        segments: pairs(&[(context::ZONE, "az1")]),
    };
    let capacity = GetCapacityRequest {
        accessible_topology: Some(zone.clone()),
        ..GetCapacityRequest::default()
    };
    let room = async || {
        let call = world.driver.get_capacity(minutes(3), capacity.clone());
        call.await.map(drop)
    };
    until_final(room).await?;
    let mut request = new_volume("pvc-1", 1);
    request.accessibility_requirements = Some(TopologyRequirement {
        requisite: vec![zone],
        preferred: Vec::new(),
    });
    let created = until_final(async || world.create(request.clone()).await).await?;
    let id = created.volume_id;
    world.trouble("attach-stays-reserved").await;
    until_final(async || world.attach(&id, server).await).await?;
    until_final(async || world.detach(&id, server).await).await?;
    until_final(async || world.delete(&id).await).await
}

#[tokio::test(start_paused = true)]
async fn what_is_read_beside_a_call_and_fails_ends_no_call() {
    let mut world = World::open().await;
    let server = world.server("node-1").await;
    for [_, _, route] in BESIDE {
        for fault in [
            json!({"status": 401}),
            json!({"status": 403}),
            json!({"status": 404}),
            json!({"status": 503}),
            json!({"drop": true}),
            json!({"garbage": true}),
        ] {
            // Nothing is known from before.
            world.restart();
            let mut rule =
                json!({"service": "volume", "method": "GET", "route": route, "count": 1});
            let parts = rule.as_object_mut().unwrap();
            parts.extend(fault.as_object().unwrap().clone());
            world.fault(rule).await;
            let ended = life_with_reads(&world, &server).await;
            assert!(ended.is_ok(), "{route} {fault}: {ended:?}");
            world
                .request("DELETE", "/_simulator/faults", Value::Null)
                .await;
            world.assert_empty(&format!("{route} {fault}")).await;
        }
    }
}
