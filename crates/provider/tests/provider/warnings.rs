//! Warnings about what a reconcile decided come once, and not with each reconcile.

use api::infra::v1beta2::OpenStackCluster;
use api::k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use serde_json::json;

use crate::world::{World, eventually};

/// The number of times that an event with `reason` was reported: those in a row are one object with a count.
async fn reported(world: &World, reason: &str) -> i32 {
    let events = world.api::<Event>().list(&ListParams::default()).await;
    let events = events.unwrap().items.into_iter();
    events
        .filter(|event| event.reason.as_deref() == Some(reason))
        .map(|event| event.series.map_or(1, |series| series.count))
        .sum()
}

#[tokio::test(start_paused = true)]
async fn a_provider_or_flavor_that_octavia_lacks_is_warned_of_once() {
    let world = World::start().await;
    world
        .cluster(json!({"apiServer": {"managedLoadBalancer": {
            "provider": "missing", "flavor": "missing"}}}))
        .await;
    world.cluster_ready().await;
    // Each change is a reconcile, and what an earlier one reported is stored before the next one begins.
    for cidr in ["192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24"] {
        let change =
            json!({"spec": {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": [cidr]}}}});
        world.merge::<OpenStackCluster>("demo", change).await;
        eventually("the CIDR on the listener", || async {
            let listeners = world.cloud.world().borrow().listeners.clone();
            let cidrs: Vec<String> = listeners
                .iter()
                .flat_map(|listener| &listener.allowed_cidrs)
                .cloned()
                .collect();
            match cidrs.iter().any(|known| known == cidr) {
                true => Ok(()),
                false => Err(format!("{cidrs:?}")),
            }
        })
        .await;
    }
    for reason in ["OctaviaProviderNotFound", "OctaviaFlavorNotFound"] {
        assert_eq!(reported(&world, reason).await, 1, "{reason}");
    }
}

#[tokio::test(start_paused = true)]
async fn allowed_cidrs_are_not_sent_to_an_octavia_without_them_whose_version_is_told_and_asked_once()
 {
    let world = World::start().await;
    world.settings(json!({"octavia_minor_version": 11})).await;
    let cidrs = json!({"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}});
    world.cluster(cidrs).await;
    let words = "has version 2.11 of its API, and allowed CIDRs need 2.12";
    let condition = world.cluster_says("APIEndpointReady", words).await;
    assert_eq!(condition.reason, "InvalidClusterSpec");
    let field = "apiServer.managedLoadBalancer.allowedCIDRs";
    assert!(condition.message.starts_with(field), "{condition:?}");
    // Machines are created nevertheless.
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    for _ in 0..3 {
        world.poke::<OpenStackCluster>("demo").await;
        tokio::time::sleep(crate::world::MINUTE).await;
    }
    let asked = world.cloud.requests().into_iter();
    let asked = asked.filter(|it| it.service == "load-balancer" && it.route == "/");
    assert_eq!(asked.map(|it| it.count).sum::<u64>(), 1);
    let none = json!({"spec": {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": null}}}});
    world.merge::<OpenStackCluster>("demo", none).await;
    world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn octavia_is_not_asked_for_its_version_where_no_cidrs_are_allowed() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let asked = world.cloud.requests().into_iter();
    let asked = asked.filter(|it| it.service == "load-balancer" && it.route == "/");
    assert_eq!(asked.count(), 0);
}
