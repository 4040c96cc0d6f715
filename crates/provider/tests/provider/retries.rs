//! Servers for which Nova has no room are replaced, as long as nothing was ever made of one.

use std::collections::BTreeMap;

use api::infra::v1beta2::OpenStackMachine;
use kube::ResourceExt;
use openstack::compute::Server;
use provider::machine::failed::{
    FAILED_SERVERS_ANNOTATION, RETRY_FLAVORS_ANNOTATION, RETRY_ZONES_ANNOTATION,
};
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;
use testbed::Fuse;

use crate::world::{MINUTE, World, eventually};

/// Words of Nova when Placement knows no host with the room, with the space at the end.
const NO_HOST: &str = "No valid host was found. ";

/// The next `count` servers fail with this message.
async fn without_room(world: &World, count: u64, message: &str) {
    let fault = json!({"name_prefix": "md-0", "message": message, "count": count});
    world.server_fault(fault).await;
}

async fn cluster() -> World {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world
}

/// Creates machine `md-0` with annotations.
async fn machine(world: &World, annotations: Value, spec: Value) {
    let paused = |paused: bool| json!({"spec": {"paused": paused}});
    world
        .merge::<api::core::v1beta2::Cluster>("demo", paused(true))
        .await;
    world.machine("md-0", false, spec).await;
    let patch = json!({"metadata": {"annotations": annotations}});
    world.merge::<OpenStackMachine>("md-0", patch).await;
    world
        .merge::<api::core::v1beta2::Cluster>("demo", paused(false))
        .await;
}

async fn servers(world: &World) -> Vec<Server> {
    let query = openstack::compute::ServerQuery::default();
    world
        .session()
        .await
        .compute()
        .servers(&query)
        .await
        .unwrap()
}

fn created(world: &World, what: &str) -> u64 {
    let writes = world.writes();
    writes
        .iter()
        .filter(|(write, _)| write.starts_with("POST") && write.ends_with(what))
        .map(|(_, n)| n)
        .sum()
}

#[tokio::test(start_paused = true)]
async fn a_server_without_a_host_is_replaced_after_a_pause_and_its_ports_and_volumes_stay_few() {
    let world = cluster().await;
    without_room(&world, 3, NO_HOST).await;
    machine(&world, json!({}), json!({"rootVolume": {"sizeGiB": 20}})).await;
    let condition = world
        .machine_says(
            "md-0",
            "InstanceReady",
            "another one follows after 30 s (1 failed",
        )
        .await;
    assert_eq!(condition.reason, "InstanceRetried");
    assert!(
        condition
            .message
            .contains("is in ERROR: No valid host was found. Nothing was made of it"),
        "{}",
        condition.message
    );
    world
        .machine_says("md-0", "InstanceReady", "after 120 s (3 failed so far)")
        .await;
    let machine = world.machine_ready("md-0").await;
    assert_eq!(created(&world, "/servers"), 4);
    assert_eq!((world.count("server"), world.count("volume")), (1, 1));
    let id = machine.status.unwrap().instance_id.unwrap();
    assert_eq!(machine.spec.provider_id, Some(format!("openstack:///{id}")));
    let notes = world.notes("md-0", "Warning").await;
    let failed = notes
        .iter()
        .filter(|note| note.starts_with("FailedCreateServer"));
    assert_eq!(failed.count(), 3, "{notes:?}");
    world.delete_machine("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn the_next_server_is_in_the_next_place_of_the_lists() {
    let world = cluster().await;
    let lists = json!({RETRY_ZONES_ANNOTATION: "nova, az2", RETRY_FLAVORS_ANNOTATION: "m1.medium"});
    // Anywhere and in the two zones; then comes anywhere with the other flavor.
    without_room(&world, 3, "Exceeded max scheduling attempts 3 for instance").await;
    machine(&world, lists, json!({})).await;
    world
        .machine_says(
            "md-0",
            "InstanceReady",
            "another one follows in zone nova after",
        )
        .await;
    world
        .machine_says(
            "md-0",
            "InstanceReady",
            "another one follows with flavor m1.medium after",
        )
        .await;
    world.machine_ready("md-0").await;
    let all = servers(&world).await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].flavor.original_name, "m1.medium");
    assert_eq!(all[0].availability_zone, "nova");
}

#[tokio::test(start_paused = true)]
async fn a_flavor_for_which_there_is_no_quota_is_followed_by_the_next() {
    let world = cluster().await;
    let refusal = json!({"service": "compute", "method": "POST", "route": "/v2.1/servers", "count": 1,
        "status": 403, "message": "Quota exceeded for cores: Requested 1, but already used 20 of 20 cores"});
    world.fault(refusal).await;
    let lists = json!({RETRY_FLAVORS_ANNOTATION: "m1.tiny"});
    machine(&world, lists, json!({})).await;
    world.machine_ready("md-0").await;
    assert_eq!(servers(&world).await[0].flavor.original_name, "m1.tiny");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_for_another_reason_or_that_ran_is_not_replaced() {
    let world = cluster().await;
    without_room(&world, 1, "Build of instance aborted: the image is damaged").await;
    machine(&world, json!({}), json!({})).await;
    let condition = world
        .machine_says("md-0", "InstanceReady", "the image is damaged")
        .await;
    assert_eq!(condition.reason, "InstanceStateError");
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(created(&world, "/servers"), 1);
    world.delete_machine("md-0").await;
    world.machine("md-1", false, json!({})).await;
    let ran = world.machine_ready("md-1").await;
    world
        .cloud
        .fail_server(&ran.status.unwrap().instance_id.unwrap(), NO_HOST)
        .unwrap();
    let condition = world
        .machine_says("md-1", "InstanceReady", "No valid host")
        .await;
    assert_eq!(condition.reason, "InstanceStateError");
    tokio::time::sleep(5 * MINUTE).await;
    assert_eq!(created(&world, "/servers"), 2);
}

#[tokio::test(start_paused = true)]
async fn a_replacement_that_is_cut_at_any_write_to_the_cloud_ends_with_one_server() {
    for nth in 1.. {
        let mut world = World::open(CloudOptions::default()).await;
        world.run();
        world.cluster(json!({})).await;
        world.cluster_ready().await;
        without_room(&world, 2, NO_HOST).await;
        let writes = world.cut_at(nth);
        world.machine("md-0", false, json!({})).await;
        let was_cut = tokio::select! {
            _ = world.machine_ready("md-0") => writes.reached(),
            () = async { while !writes.reached() { tokio::time::sleep(MINUTE / 600).await } } => true,
        };
        world.kill().await;
        world.cloud.on_write(|_| {});
        world.run();
        let machine = world.machine_ready("md-0").await;
        let failed: Value =
            serde_json::from_str(&machine.annotations()[FAILED_SERVERS_ANNOTATION]).unwrap();
        assert_eq!(failed["failed"], 2, "cut at {nth}");
        eventually("one server with one port", || async {
            match (servers(&world).await.len(), created(&world, "/ports")) {
                (1, 1 | 2) => Ok(()),
                seen => Err(format!("{seen:?}")),
            }
        })
        .await;
        world.delete_machine("md-0").await;
        world
            .delete::<api::infra::v1beta2::OpenStackCluster>("demo")
            .await;
        world
            .gone::<api::infra::v1beta2::OpenStackCluster>("demo")
            .await;
        assert_eq!(world.left_over(), BTreeMap::default(), "cut at {nth}");
        if !was_cut {
            assert!(nth > 5, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_api_server_a_failed_server_is_counted_once() {
    for nth in 1.. {
        let mut world = World::open(CloudOptions::default()).await;
        world.run();
        world.cluster(json!({})).await;
        world.cluster_ready().await;
        world.kill().await;
        without_room(&world, 2, NO_HOST).await;
        let fuse = Fuse::at(nth);
        world.run_behind(&fuse);
        world.machine("md-0", false, json!({})).await;
        let was_cut = tokio::select! {
            _ = world.machine_ready("md-0") => false,
            () = fuse.blown() => true,
        };
        world.kill().await;
        world.run();
        let machine = world.machine_ready("md-0").await;
        let failed: Value =
            serde_json::from_str(&machine.annotations()[FAILED_SERVERS_ANNOTATION]).unwrap();
        assert_eq!(failed["failed"], 2, "killed at {nth}");
        assert_eq!(servers(&world).await.len(), 1, "killed at {nth}");
        assert_eq!(created(&world, "/servers"), 3, "killed at {nth}");
        world.kill().await;
        if !was_cut {
            assert!(nth > 8, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_place_that_does_not_exist_is_told_by_the_annotation_that_names_it() {
    let world = cluster().await;
    let lists = json!({RETRY_ZONES_ANNOTATION: "az7", RETRY_FLAVORS_ANNOTATION: "m9.huge"});
    without_room(&world, 1, NO_HOST).await;
    machine(&world, lists, json!({})).await;
    let text = format!("{RETRY_ZONES_ANNOTATION} `az7` is not a zone");
    world.machine_says("md-0", "InstanceReady", &text).await;
    without_room(&world, 1, NO_HOST).await;
    let annotations = json!({"metadata": {"annotations": {RETRY_ZONES_ANNOTATION: null}}});
    world.merge::<OpenStackMachine>("md-0", annotations).await;
    let text = format!("{RETRY_FLAVORS_ANNOTATION}: flavor `m9.huge` does not exist");
    world.machine_says("md-0", "InstanceReady", &text).await;
    let annotations = json!({"metadata": {"annotations": {RETRY_FLAVORS_ANNOTATION: null}}});
    world.merge::<OpenStackMachine>("md-0", annotations).await;
    world.machine_ready("md-0").await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_failed_costs_four_requests_besides_lists() {
    let world = cluster().await;
    without_room(&world, 1, NO_HOST).await;
    world.cloud.reset_requests();
    machine(&world, json!({}), json!({})).await;
    world.machine_ready("md-0").await;
    let writes = world.writes();
    // Port and server, the deletion of the one that failed, and another server.
    assert_eq!(writes.values().sum::<u64>(), 5, "{writes:#?}");
    let asked = |route: &str| -> u64 {
        let all = world.cloud.requests().into_iter();
        all.filter(|it| it.method == "GET" && it.route.ends_with(route))
            .map(|it| it.count)
            .sum()
    };
    // What was done with it, and its fault, which lists do not have.
    let details = (asked("os-instance-actions"), asked("/servers/{server_id}"));
    assert_eq!(details, (1, 1));
}
