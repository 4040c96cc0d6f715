//! Lists of volumes, and what the driver says of itself.

use csi_spec::controller_service_capability::Type as Capability;
use csi_spec::controller_service_capability::rpc::Type;
use csi_spec::{
    Controller, ControllerGetCapabilitiesRequest, ControllerGetVolumeRequest, ListVolumesRequest,
};
use grpc::Code;

use crate::world::{World, minutes, refused};

#[tokio::test(start_paused = true)]
async fn volumes_are_listed_in_pages_with_the_servers_that_have_them() {
    let world = World::open().await;
    let server = world.server("node-1").await;
    let mut created = Vec::new();
    for index in 0..5 {
        created.push(world.volume(&format!("pvc-{index}"), 1).await.volume_id);
    }
    world.attach(&created[0], &server).await.unwrap();
    let (mut seen, mut token) = (Vec::new(), String::new());
    world.requests();
    loop {
        let request = ListVolumesRequest {
            max_entries: 2,
            starting_token: token,
        };
        let page = world
            .driver
            .list_volumes(minutes(1), request)
            .await
            .unwrap();
        seen.extend(page.entries);
        token = page.next_token;
        if token.is_empty() {
            break;
        }
    }
    assert!(
        world.requests().is_empty(),
        "what was just written is known"
    );
    let mut ids: Vec<_> = seen
        .iter()
        .map(|it| it.volume.as_ref().unwrap().volume_id.clone())
        .collect();
    ids.sort();
    let mut expected = created.clone();
    expected.sort();
    assert_eq!(ids, expected);
    let attached = seen
        .iter()
        .find(|it| it.volume.as_ref().unwrap().volume_id == created[0]);
    assert_eq!(
        attached
            .unwrap()
            .status
            .as_ref()
            .unwrap()
            .published_node_ids,
        std::slice::from_ref(&server)
    );
    let request = ControllerGetVolumeRequest {
        volume_id: created[0].clone(),
    };
    let volume = world
        .driver
        .controller_get_volume(minutes(1), request)
        .await
        .unwrap();
    assert_eq!(volume.status.unwrap().published_node_ids, [server]);
    let request = ControllerGetVolumeRequest {
        volume_id: "absent".to_owned(),
    };
    refused(
        world
            .driver
            .controller_get_volume(minutes(1), request)
            .await,
        Code::NotFound,
        "absent",
    );
    let request = ListVolumesRequest {
        starting_token: "created up".to_owned(),
        ..ListVolumesRequest::default()
    };
    refused(
        world.driver.list_volumes(minutes(1), request).await,
        Code::Aborted,
        "begin again",
    );
}

#[tokio::test(start_paused = true)]
async fn each_capability_is_a_method_that_answers() {
    let world = World::open().await;
    let request = ControllerGetCapabilitiesRequest {};
    let answer = world
        .driver
        .controller_get_capabilities(minutes(1), request)
        .await
        .unwrap();
    let types: Vec<Type> = answer
        .capabilities
        .iter()
        .map(|it| match it.r#type {
            Some(Capability::Rpc(rpc)) => rpc.r#type(),
            None => Type::Unknown,
        })
        .collect();
    assert!(types.contains(&Type::ListVolumesPublishedNodes));
    assert!(types.contains(&Type::ModifyVolume));
}
