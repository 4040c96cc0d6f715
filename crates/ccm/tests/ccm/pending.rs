//! Silent blocks: load balancers that stay PENDING, and quota.

use std::time::Duration;

use api::k8s_openapi::api::core::v1::Service;
use api::k8s_openapi::api::events::v1::Event;
use kube::Api;
use serde_json::{Value, json};
use simulator::cloud::{Latency, Options as CloudOptions, Timings};

use crate::world::{World, eventually, ports_of};

const FOREVER: Duration = Duration::from_secs(86_400);

/// A world with a worker, on a cloud with these durations.
async fn slow(timings: Timings) -> World {
    let options = CloudOptions {
        latency: Latency::Custom(Box::new(timings)),
        ..CloudOptions::default()
    };
    let mut world = World::open_on(options, "").await;
    world.options(|options| options.pending_limit = Duration::from_millis(300));
    world.run();
    world.route_out().await;
    world.worker("worker-1").await;
    world
}

/// The number of reconciles of Services.
fn reconciles(world: &World) -> u64 {
    let text = world.metrics();
    let counts = text.lines().filter(|line| {
        line.starts_with("cloudprovider_openstack_reconcile_total{operation=\"loadbalancer_")
    });
    let counts = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
    counts.sum()
}

/// Waits for further reconciles.
async fn reconciled(world: &World, more: u64) {
    let before = reconciles(world);
    eventually("further reconciles", || async {
        let now = reconciles(world);
        (now >= before + more)
            .then_some(())
            .ok_or_else(|| format!("{now} after {before}"))
    })
    .await;
}

/// How often events with a reason were published, repetitions included.
async fn occurrences(world: &World, about: &str, reason: &str) -> i32 {
    let events: Api<Event> = Api::all(world.cluster.client.clone());
    let list = events.list(&Default::default()).await.unwrap().items;
    let is = |event: &&Event| {
        event.reason.as_deref() == Some(reason)
            && event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(about)
    };
    let count = |event: &Event| event.series.as_ref().map_or(1, |series| series.count);
    list.iter().filter(is).map(count).sum()
}

async fn reported(world: &World, reason: &str, status: &str, effect: &str) {
    let note = world.event("st", reason).await;
    let id = world.octavia("loadbalancers").await[0]["id"].clone();
    for words in [
        &format!("Load balancer {} (kube_service_", id.as_str().unwrap()),
        &format!("is in {status}, since 20"),
        effect,
        "Ask the cloud's operator",
    ] {
        assert!(note.contains(words), "{note}");
    }
    reconciled(world, 4).await;
    assert_eq!(occurrences(world, "st", reason).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_stays_in_pending_update_is_one_event_on_the_service() {
    let world = slow(Timings {
        load_balancer_update: FOREVER,
        ..Timings::default()
    })
    .await;
    world.service("st", &[("TCP", 9501)], json!({})).await;
    world.published("st").await;
    let locks = json!({"spec": {"sessionAffinity": "ClientIP"}});
    world.cluster.merge::<Service>("st", locks).await;
    let ports = json!({"spec": {"ports": ports_of(&[("TCP", 9777)])}});
    world.cluster.merge::<Service>("st", ports).await;
    world.worker("worker-2").await;
    let effect = "new ports, members and settings of the Service are not served";
    reported(&world, "SyncLoadBalancerFailed", "PENDING_UPDATE", effect).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_stays_in_pending_create_is_one_event_on_the_service() {
    let world = slow(Timings {
        load_balancer_create: FOREVER,
        ..Timings::default()
    })
    .await;
    world.service("st", &[("TCP", 80)], json!({})).await;
    let effect = "the Service has no address";
    reported(&world, "SyncLoadBalancerFailed", "PENDING_CREATE", effect).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_stays_in_pending_delete_is_one_event_on_the_service() {
    let world = slow(Timings {
        load_balancer_delete: FOREVER,
        ..Timings::default()
    })
    .await;
    world.service("st", &[("TCP", 80)], json!({})).await;
    world.published("st").await;
    world.cluster.delete::<Service>("st").await;
    let effect = "nor is the Service released";
    reported(&world, "DeleteLoadBalancerFailed", "PENDING_DELETE", effect).await;
}

/// The quota is set as python-openstackclient does it without `--force`.
#[tokio::test(start_paused = true)]
async fn a_quota_of_floating_ips_that_is_used_up_is_one_event_and_members_follow_the_nodes() {
    let world = World::serving("", &["worker-1"]).await;
    let projects = world
        .administer("GET", "/identity/v3/projects?name=demo", Value::Null)
        .await;
    let project = projects["projects"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/network/v2.0/quotas/{project}");
    let quota = json!({"quota": {"floatingip": 1, "check_limit": true}});
    world.administer("PUT", &path, quota).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.service("api", &[("TCP", 80)], json!({})).await;
    let note = world.event("api", "SyncLoadBalancerFailed").await;
    for words in [
        "Creating the floating IP of Service default/api",
        "Quota exceeded for resources: ['floatingip']",
        "Free some of it or ask for more quota",
    ] {
        assert!(note.contains(words), "{note}");
    }
    world.worker("worker-2").await;
    let both = ["worker-1", "worker-1", "worker-2", "worker-2"];
    world.members_are(&both).await;
    assert_eq!(world.count_events("api", "SyncLoadBalancerFailed").await, 1);
    world.delete_service("web").await;
    world.published("api").await;
}
