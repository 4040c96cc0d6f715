//! Volumes are attached and detached.

use std::time::Duration;

use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::{Controller, ControllerPublishVolumeRequest};
use grpc::Code;
use serde_json::{Value, json};
use simulator::cloud::{Latency, Options as CloudOptions};

use crate::world::{World, capability, minutes, new_volume, options, pairs, refused};

async fn slow() -> World {
    let cloud = CloudOptions {
        latency: Latency::Real,
        ..CloudOptions::default()
    };
    World::open_on(cloud, options()).await
}

#[tokio::test(start_paused = true)]
async fn a_volume_is_in_use_when_its_attachment_is_answered() {
    let world = slow().await;
    let id = world.volume("pvc-1", 2).await.volume_id;
    let server = world.server("node-1").await;
    let context = world.attach(&id, &server).await.unwrap();
    let volume = world.one("volumes", &id).await;
    assert_eq!(volume["status"], "in-use");
    assert_eq!(volume["attachments"][0]["server_id"], server.as_str());
    assert_eq!(context["cinder.csi.openstack.org/size"], "2147483648");
    assert_eq!(context["DevicePath"], volume["attachments"][0]["device"]);
    world.requests();
    assert_eq!(world.attach(&id, &server).await.unwrap(), context);
    // Asked again, it costs one list, and Nova nothing.
    let requests = world.requests();
    assert_eq!(requests.values().sum::<u64>(), 1, "{requests:?}");
    world.detach(&id, &server).await.unwrap();
    let volume = world.one("volumes", &id).await;
    assert_eq!(volume["status"], "available");
    assert_eq!(volume["attachments"], json!([]));
    world.detach(&id, &server).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_volume_that_another_server_has_is_refused_before_nova_is_asked() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let (one, two) = (world.server("node-1").await, world.server("node-2").await);
    world.attach(&id, &one).await.unwrap();
    world.requests();
    refused(
        world.attach(&id, &two).await,
        Code::FailedPrecondition,
        &one,
    );
    let requests = world.requests();
    assert!(
        requests.keys().all(|it| it.starts_with("GET")),
        "{requests:?}"
    );
    // Detached from a server that does not have it: nothing to do.
    world.detach(&id, &two).await.unwrap();
    assert_eq!(world.one("volumes", &id).await["status"], "in-use");
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_a_shared_type_is_attached_to_several_servers_and_detached_from_all() {
    let world = World::open().await;
    let mut request = new_volume("pvc-1", 1);
    request.parameters.extend(pairs(&[("type", "shared")]));
    let id = world.create(request).await.unwrap().volume_id;
    let (one, two) = (world.server("node-1").await, world.server("node-2").await);
    world.attach_shared(&id, &one).await.unwrap();
    // ReadWriteOncePod on a volume that can be shared is for one node all the same.
    let alone = world
        .attach_as(&id, &two, Mode::SingleNodeSingleWriter)
        .await;
    refused(alone, Code::FailedPrecondition, "for one node");
    world.attach_shared(&id, &two).await.unwrap();
    let nodes = |volume: &Value| volume["attachments"].as_array().unwrap().len();
    assert_eq!(nodes(&world.one("volumes", &id).await), 2);
    while let Err(status) = world.detach(&id, "").await {
        assert_eq!(status.code, Code::Aborted, "{}", status.message);
    }
    assert_eq!(nodes(&world.one("volumes", &id).await), 0);
}

#[tokio::test(start_paused = true)]
async fn servers_that_attach_a_volume_at_once_wait_for_each_other() {
    let world = slow().await;
    let mut request = new_volume("pvc-1", 1);
    request.parameters.extend(pairs(&[("type", "shared")]));
    let id = world.create(request).await.unwrap().volume_id;
    let (one, two) = (world.server("node-1").await, world.server("node-2").await);
    let attach = |server| world.attach_shared(&id, server);
    let (first, second) = tokio::join!(attach(&one), attach(&two));
    // Kubernetes would take ABORTED of the one for a failure, and forget its attachment.
    first.and(second).unwrap();
    let volume = world.one("volumes", &id).await;
    assert_eq!(volume["attachments"].as_array().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn what_does_not_exist_is_named() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let absent = "00000000-0000-0000-0000-000000000000";
    refused(
        world.attach(absent, "x").await,
        Code::NotFound,
        "does not exist",
    );
    refused(world.attach(&id, absent).await, Code::NotFound, absent);
    world.detach(absent, "x").await.unwrap();
    world.detach(&id, absent).await.unwrap();
    refused(
        world.attach("", "x").await,
        Code::InvalidArgument,
        "volume_id is missing",
    );
    refused(
        world.attach(&id, "").await,
        Code::InvalidArgument,
        "node_id is missing",
    );
    refused(
        world.detach("", "x").await,
        Code::InvalidArgument,
        "volume_id is missing",
    );
}

/// Every call that has an id gets ids that are none: nothing is asked for at a path that an id makes, and nothing ends in
/// another code than that of what is not there.
#[tokio::test(start_paused = true)]
async fn ids_that_are_none_are_not_found_and_reach_no_other_path() {
    let world = World::open().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    let long = "x".repeat(4096);
    let parent = format!("../volumes/{id}");
    // A message is cut.
    let words = |odd: &str| {
        if odd.len() > 100 {
            "volume xxx"
        } else {
            "does not exist"
        }
    };
    for odd in [
        "0123456789",
        "not a uuid",
        "../detail",
        &parent,
        "%2e%2e/detail",
        "a?b=c#d",
        "a\nb",
        "größe",
        "💾",
        &long,
    ] {
        refused(world.attach(odd, &server).await, Code::NotFound, words(odd));
        world.detach(odd, &server).await.unwrap();
        world.detach(&id, odd).await.unwrap();
        refused(world.expand(odd, 2).await, Code::NotFound, words(odd));
        let modified = world.modify(odd, &[("metadata/a", "b")]).await;
        refused(modified, Code::NotFound, words(odd));
        refused(
            world.snapshot("snap", odd, &[]).await,
            Code::NotFound,
            words(odd),
        );
        world.delete(odd).await.unwrap();
        world.delete_snapshot(odd).await.unwrap();
        let refusal = world.attach(&id, odd).await.unwrap_err();
        assert_eq!(refusal.code, Code::NotFound, "{odd:?}: {}", refusal.message);
    }
    assert_eq!(world.one("volumes", &id).await["status"], "available");
    assert_eq!(world.all("volumes").await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_gone_holds_no_volume() {
    let world = slow().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    world.attach(&id, &server).await.unwrap();
    world.orphan(&server).await;
    let volume = world.one("volumes", &id).await;
    assert_eq!(
        volume["attachments"][0]["server_id"],
        server.as_str(),
        "{volume}"
    );
    world.detach(&id, &server).await.unwrap();
    let volume = world.one("volumes", &id).await;
    assert_eq!(volume["status"], "available", "{volume}");
    let other = world.server("node-2").await;
    world.attach(&id, &other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_reservation_that_nova_forgot_is_released() {
    let world = slow().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    for trouble in ["attach-stays-reserved", "detach-leaves-reserved"] {
        world.trouble(trouble).await;
        for _ in 0..5 {
            if world.attach(&id, &server).await.is_ok() {
                break;
            }
        }
        for _ in 0..5 {
            if world.detach(&id, &server).await.is_ok() {
                break;
            }
        }
        let volume = world.one("volumes", &id).await;
        assert_eq!(volume["status"], "available", "{trouble}: {volume}");
        let path = world.volumes("/attachments");
        let left = world.with_version("GET", &path, "volume 3.27").await;
        assert_eq!(left["attachments"], json!([]), "{trouble}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_has_as_many_disks_as_nova_lets_it_is_told_as_an_exhausted_resource() {
    let world = World::open().await;
    let limit = json!({"max_disk_devices_to_attach": 2});
    world.request("POST", "/_simulator/settings", limit).await;
    let server = world.server("node-1").await;
    let first = world.volume("pvc-1", 1).await.volume_id;
    world.attach(&first, &server).await.unwrap();
    let second = world.volume("pvc-2", 1).await.volume_id;
    refused(
        world.attach(&second, &server).await,
        Code::ResourceExhausted,
        "maximum allowed number of disk devices",
    );
    world.detach(&first, &server).await.unwrap();
    world.attach(&second, &server).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_volume_of_a_server_that_is_stopped_is_detached() {
    let world = slow().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    world.attach(&id, &server).await.unwrap();
    let path = format!("/compute/v2.1/servers/{server}/action");
    world.request("POST", &path, json!({"os-stop": null})).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    world.detach(&id, &server).await.unwrap();
    let other = world.server("node-2").await;
    world.attach(&id, &other).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_attachment_that_fails_is_told_and_tried_again() {
    let world = slow().await;
    let id = world.volume("pvc-1", 1).await.volume_id;
    let server = world.server("node-1").await;
    world.trouble("attach-fails").await;
    refused(
        world.attach(&id, &server).await,
        Code::Aborted,
        "could not attach",
    );
    world.attach(&id, &server).await.unwrap();
    world.trouble("detach-fails").await;
    let refusal = world.detach(&id, &server).await.unwrap_err();
    assert_eq!(refusal.code, Code::Aborted, "{}", refusal.message);
    world.detach(&id, &server).await.unwrap();
    assert_eq!(world.one("volumes", &id).await["status"], "available");
}

#[tokio::test(start_paused = true)]
async fn the_first_attachment_of_a_volume_is_told_as_such_and_no_later_one() {
    let world = World::open().await;
    let server = world.server("node-1").await;
    let mut request = new_volume("pvc-1", 1);
    request
        .parameters
        .extend(pairs(&[("format", "first-attach")]));
    let volume = world.create(request).await.unwrap();
    let context = pairs(&[("cinder.csi.openstack.org/format", "first-attach")]);
    assert_eq!(volume.volume_context, context);
    let attach = async || {
        let request = ControllerPublishVolumeRequest {
            volume_id: volume.volume_id.clone(),
            node_id: server.clone(),
            volume_capability: Some(capability(Mode::SingleNodeWriter, false)),
            volume_context: context.clone(),
            ..ControllerPublishVolumeRequest::default()
        };
        loop {
            let attached = world
                .driver
                .controller_publish_volume(minutes(3), request.clone());
            match attached.await {
                Ok(attached) => break attached.publish_context,
                Err(status) => assert_eq!(status.code, Code::Aborted, "{}", status.message),
            }
        }
    };
    let first = "cinder.csi.openstack.org/firstAttach";
    for _ in 0..2 {
        assert_eq!(attach().await.get(first).map(String::as_str), Some("true"));
    }
    world.detach(&volume.volume_id, &server).await.unwrap();
    for _ in 0..2 {
        assert_eq!(attach().await.get(first), None);
    }
}
