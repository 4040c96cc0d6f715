//! Rest of the quotas.

use csi::ZoneMap;
use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::{Controller, GetCapacityRequest, GetCapacityResponse, Topology, context};
use grpc::{Code, Status};
use serde_json::{Value, json};

use super::world::{GIB, World, capability, minutes, options, pairs, refused};

type Answer = Result<GetCapacityResponse, Status>;

async fn ask(world: &World, request: GetCapacityRequest) -> Answer {
    world.driver.get_capacity(minutes(3), request).await
}

/// Of a StorageClass with these parameters.
async fn of_class(world: &World, parameters: &[(&str, &str)]) -> Answer {
    let request = GetCapacityRequest {
        parameters: pairs(parameters),
        ..GetCapacityRequest::default()
    };
    ask(world, request).await
}

async fn set_quotas(world: &World, quotas: Value) {
    let path = format!("/os-quota-sets/{}", world.project());
    world
        .administrate("PUT", &path, json!({"quota_set": quotas}))
        .await;
}

#[tokio::test(start_paused = true)]
async fn the_capacity_of_a_class_is_what_the_quota_of_its_type_leaves() {
    let mut world = World::open().await;
    let ceph = world.volume_type("ceph", json!({})).await;
    set_quotas(
        &world,
        json!({"gigabytes": 100, "gigabytes_ceph": 10, "volumes_shared": 0, "gigabytes___DEFAULT__": 50, "per_volume_gigabytes": 30}),
    )
    .await;
    let mut volume = super::world::new_volume("pvc-1", 4);
    volume.parameters = pairs(&[("type", "ceph")]);
    world.create(volume).await.unwrap();
    world.restart();
    for (kind, left, most) in [
        ("", 50, 30),
        ("__DEFAULT__", 50, 30),
        ("fast", 96, 30),
        ("ceph", 6, 6),
        (&*ceph, 6, 6),
        // No further volume.
        ("shared", 0, 0),
    ] {
        let answer = of_class(&world, &[("type", kind)]).await.unwrap();
        let found = (answer.available_capacity, answer.maximum_volume_size);
        assert_eq!(found, (left * GIB, Some(most * GIB)), "{kind}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_limits_the_capacity_is_the_largest_number() {
    let world = World::open().await;
    let answer = of_class(&world, &[("type", "fast")]).await.unwrap();
    assert_eq!(answer.available_capacity, i64::MAX);
    assert_eq!(answer.maximum_volume_size, None);
    assert_eq!(answer.minimum_volume_size, Some(GIB));
}

#[tokio::test(start_paused = true)]
async fn there_is_no_room_for_what_a_creation_would_refuse() {
    let mut options = options();
    options.zones = ZoneMap([("edge".to_owned(), "az2".to_owned())].into());
    let world = World::open_on(Default::default(), options).await;
    let in_zone = |zone: &str| {
        Some(Topology {
            segments: pairs(&[(context::ZONE, zone)]),
        })
    };
    let shared = vec![capability(Mode::MultiNodeMultiWriter, true)];
    let mounted = vec![capability(Mode::MultiNodeMultiWriter, false)];
    for (parameters, volume_capabilities, accessible_topology, is_room) in [
        (vec![("type", "fast")], shared.clone(), None, false),
        (vec![], shared.clone(), None, false),
        (vec![("type", "shared")], shared, None, true),
        (vec![("type", "shared")], mounted, None, false),
        (vec![], vec![], in_zone("az1"), true),
        (vec![], vec![], in_zone("edge"), true),
        (vec![], vec![], in_zone("none-such"), false),
        // The parameter counts, as in a creation.
        (
            vec![("availability", "az1")],
            vec![],
            in_zone("none-such"),
            true,
        ),
        (
            vec![("availability", "none-such")],
            vec![],
            in_zone("az1"),
            false,
        ),
    ] {
        let request = GetCapacityRequest {
            parameters: pairs(&parameters),
            volume_capabilities,
            accessible_topology,
        };
        let answer = ask(&world, request.clone()).await.unwrap();
        assert_eq!(answer.available_capacity > 0, is_room, "{request:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_parameters_have_no_capacity() {
    let mut world = World::open().await;
    for (parameters, code, words) in [
        (
            [("type", "none-such")],
            Code::NotFound,
            "there is no volume type none-such",
        ),
        (
            [("iops", "1")],
            Code::InvalidArgument,
            "`iops` of the StorageClass is unknown",
        ),
        (
            [("format", "always")],
            Code::InvalidArgument,
            "is one of blank",
        ),
    ] {
        refused(of_class(&world, &parameters).await, code, words);
    }
    let request = GetCapacityRequest {
        volume_capabilities: vec![capability(Mode::Unknown, false)],
        ..GetCapacityRequest::default()
    };
    refused(
        ask(&world, request).await,
        Code::InvalidArgument,
        "access_mode",
    );
    let rule = json!({"service": "volume", "method": "GET", "route": "/v3/{project}/os-quota-sets/{target}", "status": 503});
    world.fault(rule).await;
    world.restart();
    refused(of_class(&world, &[]).await, Code::Unavailable, "");
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_cannot_be_read_is_not_taken_for_none() {
    let world = World::open().await;
    let rule = json!({"service": "volume", "method": "GET", "route": "/v3/{project}/os-quota-sets/{target}", "garbage": true});
    world.fault(rule).await;
    let refusal = ask(&world, GetCapacityRequest::default()).await;
    refused(refusal, Code::Unavailable, "");
}

#[tokio::test(start_paused = true)]
async fn the_capacity_is_asked_of_cinder_alone() {
    let world = World::open().await;
    for service in ["compute", "network", "load-balancer"] {
        world
            .fault(json!({"service": service, "status": 503}))
            .await;
    }
    world.requests();
    let answer = ask(&world, GetCapacityRequest::default()).await;
    assert!(answer.unwrap().available_capacity > 0);
    let requests = world.requests();
    assert!(
        requests.keys().all(|it| it.contains("/v3/{project}/")),
        "{requests:?}"
    );
}
