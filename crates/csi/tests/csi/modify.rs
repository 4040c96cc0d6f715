//! A volume gets another type, and metadata.

use std::time::Duration;

use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::{Controller, ControllerModifyVolumeRequest, ValidateVolumeCapabilitiesRequest};
use grpc::{Code, Context};
use serde_json::{Value, json};
use simulator::cloud::{Latency, Options as CloudOptions};
use tokio::time::Instant;

use crate::faults::{killed_after_each_write, until_final};
use crate::world::{World, capability, minutes, new_volume, options, pairs, refused};

const ACTION: &str = "/v3/{project}/volumes/{id}/action";
const METADATA: &str = "/v3/{project}/volumes/{id}/metadata";

/// The requests of a change that fail here.
pub(crate) const OF_LIFE: [[&str; 3]; 4] = [
    ["volume", "POST", ACTION],
    ["volume", "POST", METADATA],
    ["volume", "GET", "/v3/{project}/volumes/detail"],
    ["volume", "GET", "/v3/{project}/types"],
];

/// Another type, and metadata.
const CLASS: &[(&str, &str)] = &[("type", "fast"), ("metadata/backup", "nightly")];

/// Changes a volume as the resizer does.
async fn change(world: &World, id: &str, class: &[(&str, &str)]) -> Result<(), grpc::Status> {
    until_final(async || world.modify(id, class).await).await
}

#[tokio::test(start_paused = true)]
async fn a_volume_gets_another_type_and_metadata() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let before = world.one("volumes", &id).await["metadata"].clone();
    world.requests();
    for _ in 0..2 {
        change(&world, &id, CLASS).await.unwrap();
    }
    let requests = world.requests();
    assert_eq!(requests[&format!("POST {ACTION}")], 1, "{requests:?}");
    assert_eq!(requests[&format!("POST {METADATA}")], 1, "{requests:?}");
    let now = world.one("volumes", &id).await;
    assert_eq!(now["volume_type"], "fast");
    let mut expected = before;
    expected["backup"] = json!("nightly");
    assert_eq!(now["metadata"], expected);
    // Keys without a parameter in the class stay.
    change(&world, &id, &[("metadata/backup", "weekly")])
        .await
        .unwrap();
    let now = world.one("volumes", &id).await;
    assert_eq!(
        (&now["volume_type"], &now["metadata"]["backup"]),
        (&json!("fast"), &json!("weekly"))
    );
    change(&world, &id, &[]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_type_is_named_by_its_id_as_well() {
    let world = World::open().await;
    let kind = world.volume_type("gold", json!({})).await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    for _ in 0..2 {
        change(&world, &id, &[("type", &kind)]).await.unwrap();
        assert_eq!(world.one("volumes", &id).await["volume_type"], "gold");
    }
    // One that was made since types were listed is found.
    let kind = world.volume_type("silver", json!({})).await;
    change(&world, &id, &[("type", &kind)]).await.unwrap();
    let mut request = new_volume("pvc-2", 1);
    request.parameters.extend(pairs(&[("type", &kind)]));
    let id = world.create(request.clone()).await.unwrap().volume_id;
    assert_eq!(world.create(request).await.unwrap().volume_id, id);
}

#[tokio::test(start_paused = true)]
async fn a_change_of_type_is_waited_for_by_one_call_or_several() {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    let world = World::open_on(cloud, options()).await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    world.requests();
    let soon = async || {
        let context = Context {
            deadline: Some(Instant::now() + Duration::from_millis(1100)),
        };
        let request = ControllerModifyVolumeRequest {
            volume_id: id.clone(),
            mutable_parameters: pairs(&[("type", "fast")]),
            ..ControllerModifyVolumeRequest::default()
        };
        world
            .driver
            .controller_modify_volume(context, request)
            .await
    };
    let first = soon().await.unwrap_err();
    assert_eq!(first.code, Code::Aborted, "{}", first.message);
    until_final(soon).await.unwrap();
    assert_eq!(world.one("volumes", &id).await["volume_type"], "fast");
    assert_eq!(world.requests()[&format!("POST {ACTION}")], 1);
}

#[tokio::test(start_paused = true)]
async fn data_move_only_if_the_class_says_so() {
    let world = World::open().await;
    world
        .volume_type("elsewhere", json!({"volume_backend_name": "other"}))
        .await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    for policy in [None, Some("never")] {
        let mut class = vec![("type", "elsewhere"), ("metadata/a", "b")];
        class.extend(policy.map(|it| ("migration-policy", it)));
        refused(
            change(&world, &id, &class).await,
            Code::FailedPrecondition,
            "needs `migration-policy: on-demand`",
        );
        // Nothing of the class is applied.
        let now = world.one("volumes", &id).await;
        assert_eq!(now["status"], "available");
        assert_eq!(now["metadata"]["a"], Value::Null);
    }
    let class = [("type", "elsewhere"), ("migration-policy", "on-demand")];
    change(&world, &id, &class).await.unwrap();
    assert_eq!(world.one("volumes", &id).await["volume_type"], "elsewhere");
    world.snapshot("snap", &id, &[]).await.unwrap();
    let back = [("type", "fast"), ("migration-policy", "on-demand")];
    refused(
        change(&world, &id, &back).await,
        Code::FailedPrecondition,
        "it has snapshots, which are not moved",
    );
}

#[tokio::test(start_paused = true)]
async fn a_change_that_cinder_gives_up_is_told_without_older_words() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    // Cinder has a message about an earlier failure, and none about this one.
    world.trouble("extend-fails").await;
    world.expand(&id, 2).await.unwrap_err();
    let reset = json!({"os-reset_status": {"status": "available"}});
    let admin = format!("/volumes/{id}/action");
    world.administrate("POST", &admin, reset).await;
    world.trouble("retype-fails").await;
    let status = change(&world, &id, CLASS).await.unwrap_err();
    assert_eq!(status.code, Code::FailedPrecondition);
    assert!(
        status.message.contains("instead of fast"),
        "{}",
        status.message
    );
    assert!(
        !status.message.contains("extend volume"),
        "{}",
        status.message
    );
    change(&world, &id, CLASS).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_a_volume_cannot_become_is_refused_before_anything_is_changed() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    world.attach(&id, &server).await.unwrap();
    world.requests();
    for (class, code, words) in [
        (
            ("type", "absent"),
            Code::InvalidArgument,
            "there is no volume type absent",
        ),
        (
            ("iops", "100"),
            Code::InvalidArgument,
            "`iops` of the VolumeAttributesClass is unknown",
        ),
        (
            ("type", "shared"),
            Code::FailedPrecondition,
            "only allowed on available volumes",
        ),
    ] {
        let class = [class, ("metadata/a", "b")];
        refused(change(&world, &id, &class).await, code, words);
        assert_eq!(
            world.one("volumes", &id).await["metadata"]["a"],
            Value::Null
        );
    }
    refused(
        world.modify("", CLASS).await,
        Code::InvalidArgument,
        "volume_id is missing",
    );
    refused(
        world.modify("absent", CLASS).await,
        Code::NotFound,
        "volume absent does not exist",
    );
    let quota = json!({"quota_set": {"volumes_fast": 0}});
    let project = world.project();
    world
        .administrate("PUT", &format!("/os-quota-sets/{project}"), quota)
        .await;
    refused(
        change(&world, &id, CLASS).await,
        Code::ResourceExhausted,
        "volumes_fast",
    );
}

#[tokio::test(start_paused = true)]
async fn a_new_volume_has_the_attributes_of_its_class() {
    let world = World::open().await;
    let mut request = new_volume("pvc-1", 1);
    request.parameters.extend(pairs(&[("type", "standard")]));
    request.mutable_parameters = pairs(CLASS);
    let id = world.create(request.clone()).await.unwrap().volume_id;
    assert_eq!(world.create(request).await.unwrap().volume_id, id);
    let created = world.one("volumes", &id).await;
    assert_eq!(created["volume_type"], "fast");
    assert_eq!(created["metadata"]["backup"], "nightly");
    assert_eq!(created["metadata"]["csi.storage.k8s.io/pv/name"], "pvc-1");
    let mut wrong = new_volume("pvc-2", 1);
    wrong.mutable_parameters = pairs(&[("iops", "1")]);
    refused(world.create(wrong).await, Code::InvalidArgument, "`iops`");
    let unknown = &[("iops", "1")][..];
    for (storage_class, class, confirmed) in [
        (&[][..], CLASS, true),
        (&[("type", "fast")][..], CLASS, true),
        (&[][..], unknown, false),
        (unknown, CLASS, false),
    ] {
        let request = ValidateVolumeCapabilitiesRequest {
            volume_id: id.clone(),
            volume_capabilities: vec![capability(Mode::SingleNodeWriter, false)],
            parameters: pairs(storage_class),
            mutable_parameters: pairs(class),
            ..ValidateVolumeCapabilitiesRequest::default()
        };
        let answer = world
            .driver
            .validate_volume_capabilities(minutes(1), request)
            .await;
        assert_eq!(answer.unwrap().confirmed.is_some(), confirmed);
    }
}

/// A volume that is modified, and deleted.
pub(crate) async fn life(world: &World) -> Result<(), grpc::Status> {
    let id = until_final(async || world.create(new_volume("pvc-1", 1)).await)
        .await?
        .volume_id;
    change(world, &id, CLASS).await?;
    let now = world.one("volumes", &id).await;
    assert_eq!(
        (&now["volume_type"], &now["metadata"]["backup"]),
        (&json!("fast"), &json!("nightly"))
    );
    until_final(async || world.delete(&id).await).await
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_is_killed_after_any_write_goes_on_with_a_change() {
    let mut world = World::open().await;
    killed_after_each_write(&mut world, 4, async |world| life(world).await).await;
}

#[tokio::test(start_paused = true)]
async fn random_faults_end_in_a_volume_that_has_its_attributes() {
    let world = World::open().await;
    for route in OF_LIFE {
        world.each_fault(route, async || life(&world).await).await;
    }
}
