//! One snapshot, and the health of volumes: behind a flag.

use std::time::Duration;

use csi::Options;
use csi_spec::controller_service_capability::Type as Capability;
use csi_spec::controller_service_capability::rpc::Type;
use csi_spec::{
    Controller, ControllerGetCapabilitiesRequest, ControllerGetVolumeHealthRequest,
    ControllerListVolumeHealthRequest, GetSnapshotRequest, Snapshot, VolumeHealth,
    VolumeHealthErrorType as Health,
};
use grpc::{Code, Status};
use serde_json::json;
use simulator::cloud::Options as CloudOptions;

use crate::world::{World, minutes, options, refused};

async fn open() -> World {
    let options = Options {
        alpha: true,
        ..options()
    };
    World::open_on(CloudOptions::default(), options).await
}

async fn snapshot(world: &World, id: &str) -> Result<Snapshot, Status> {
    let request = GetSnapshotRequest {
        snapshot_id: id.to_owned(),
        ..GetSnapshotRequest::default()
    };
    let found = world.driver.get_snapshot(minutes(1), request).await;
    found.map(|it| it.snapshot.unwrap())
}

async fn health(world: &World, id: &str) -> Result<VolumeHealth, Status> {
    let request = ControllerGetVolumeHealthRequest {
        volume_id: id.to_owned(),
        ..ControllerGetVolumeHealthRequest::default()
    };
    let found = world
        .driver
        .controller_get_volume_health(minutes(1), request)
        .await;
    found.map(|it| it.volume_health.unwrap())
}

async fn ill(world: &World, most: i32, token: &str) -> Result<(Vec<VolumeHealth>, String), Status> {
    let request = ControllerListVolumeHealthRequest {
        max_entries: most,
        starting_token: token.to_owned(),
        ..ControllerListVolumeHealthRequest::default()
    };
    let listed = world
        .driver
        .controller_list_volume_health(minutes(1), request)
        .await;
    listed.map(|it| (it.entries, it.next_token))
}

/// The statuses and reasons of a volume.
fn words(health: &VolumeHealth) -> Vec<(Health, &str)> {
    let entries = health.health_statuses.iter();
    entries
        .map(|it| (it.status(), it.reason.as_str()))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn without_the_flag_there_is_no_such_capability_and_no_such_method() {
    let alpha = [
        Type::GetSnapshot,
        Type::GetVolumeHealth,
        Type::ListVolumeHealth,
    ];
    for (world, has) in [(World::open().await, false), (open().await, true)] {
        let request = ControllerGetCapabilitiesRequest {};
        let answer = world
            .driver
            .controller_get_capabilities(minutes(1), request)
            .await;
        let capabilities = answer.unwrap().capabilities;
        let rpcs: Vec<Type> = capabilities
            .iter()
            .filter_map(|it| it.r#type.map(|Capability::Rpc(rpc)| rpc.r#type()))
            .collect();
        for kind in alpha {
            assert_eq!(rpcs.contains(&kind), has, "{kind:?}");
        }
        if !has {
            refused(
                snapshot(&world, "x").await,
                Code::Unimplemented,
                "GetSnapshot",
            );
            refused(
                health(&world, "x").await,
                Code::Unimplemented,
                "ControllerGetVolumeHealth",
            );
            refused(
                ill(&world, 0, "").await,
                Code::Unimplemented,
                "ControllerListVolumeHealth",
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_snapshot_and_a_backup_are_found_by_their_ids() {
    let world = open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    for class in [&[][..], &[("type", "backup")]] {
        let name = format!("snap-{}", class.len());
        let taken = loop {
            match world.snapshot(&name, &id, class).await {
                Ok(taken) if taken.ready_to_use => break taken,
                _ => tokio::time::sleep(Duration::from_secs(1)).await,
            }
        };
        assert_eq!(snapshot(&world, &taken.snapshot_id).await.unwrap(), taken);
    }
    refused(
        snapshot(&world, "absent").await,
        Code::NotFound,
        "absent does not exist",
    );
    refused(
        snapshot(&world, "").await,
        Code::InvalidArgument,
        "snapshot_id is missing",
    );
}

#[tokio::test(start_paused = true)]
async fn volumes_in_error_and_lost_attachments_are_listed_with_cinders_words() {
    let world = open().await;
    let well = world.volume("well", 1).await.volume_id;
    let grown = world.volume("grown", 1).await.volume_id;
    let lost = world.volume("lost", 1).await.volume_id;
    let broken = world.volume("broken", 1).await.volume_id;
    let server = world.server("node-1").await;
    for id in [&grown, &lost] {
        let node = match id == &lost {
            true => world.server("node-2").await,
            false => server.clone(),
        };
        world.attach(id, &node).await.unwrap();
        if id == &lost {
            world.orphan(&node).await;
        }
    }
    world.trouble("extend-fails").await;
    world.expand(&grown, 2).await.unwrap_err();
    let reset = json!({"os-reset_status": {"status": "error"}});
    let action = format!("/volumes/{broken}/action");
    world.administrate("POST", &action, reset).await;
    // Time is paused, and a list of this very moment would be new enough.
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(words(&health(&world, &well).await.unwrap()), []);
    // A server that has the volume goes on to use it.
    let of_grown = health(&world, &grown).await.unwrap();
    assert_eq!(words(&of_grown), [(Health::Degraded, "ExtensionFailed")]);
    let message = &of_grown.health_statuses[0].message;
    assert!(
        message.contains("is error_extending: extend volume:"),
        "{message}"
    );
    let of_lost = health(&world, &lost).await.unwrap();
    assert_eq!(words(&of_lost), [(Health::Inaccessible, "AttachmentLost")]);
    let of_broken = health(&world, &broken).await.unwrap();
    assert_eq!(words(&of_broken), [(Health::Inaccessible, "VolumeInError")]);
    let mut expected = vec![of_grown, of_lost, of_broken];
    expected.sort_by(|a, b| a.volume_id.cmp(&b.volume_id));
    assert_eq!(
        ill(&world, 0, "").await.unwrap(),
        (expected.clone(), String::new())
    );
    let (first, token) = ill(&world, 2, "").await.unwrap();
    let (second, end) = ill(&world, 2, &token).await.unwrap();
    assert_eq!([first, second].concat(), expected);
    assert_eq!(end, "");
    refused(ill(&world, 0, "x y").await, Code::Aborted, "begin again");
    refused(
        health(&world, "absent").await,
        Code::NotFound,
        "absent does not exist",
    );
    refused(
        health(&world, "").await,
        Code::InvalidArgument,
        "volume_id is missing",
    );
}
