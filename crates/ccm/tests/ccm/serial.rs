//! Drivers without bulk requests.

use serde_json::{Value, json};
use testbed::eventually;

use crate::killing::{Phase, ends_the_same};
use crate::services::octavia_where;
use crate::world::World;

const CONF: &str =
    "[LoadBalancer]\nprovider-requires-serial-api-calls = true\ncreate-monitor = true\n";

async fn world(workers: &[&str]) -> World {
    let world = World::serving(CONF, workers).await;
    world.cloud.reset_requests();
    world
}

/// Waits until the pools have this many members.
async fn members_are(world: &World, count: usize) {
    eventually(&format!("{count} members"), || async {
        let members = world.members().await;
        (members.len() == count)
            .then_some(())
            .ok_or_else(|| format!("{members:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_bulk_requests_gets_every_part_in_a_request_of_its_own() {
    let world = world(&["worker-1", "worker-2"]).await;
    let before = world.cloud.resources();
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], json!({}))
        .await;
    world.published("web").await;
    octavia_where(&world, "healthmonitors", |list| list.len() == 2).await;
    members_are(&world, 4).await;
    let of = |kind: &str| format!("POST load-balancer /v2.0/lbaas/{kind}");
    let writes = [
        (of("loadbalancers"), 1),
        (of("listeners"), 2),
        (of("pools"), 2),
        (of("pools/{pool_id}/members"), 4),
        (of("healthmonitors"), 2),
        ("POST network /v2.0/floatingips".to_owned(), 1),
    ];
    assert_eq!(world.writes(), writes.into());
    let names = world.members().await;
    let is_alone = |name: &String| name.starts_with("member_worker-1_10.0.");
    assert!(names.iter().any(is_alone), "{names:?}");
    world.cloud.reset_requests();
    world.exclude("worker-1").await;
    members_are(&world, 2).await;
    let of = "DELETE load-balancer /v2.0/lbaas/pools/{pool_id}/members/{id}";
    assert_eq!(world.writes(), [(of.to_owned(), 2)].into());
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn the_address_is_published_once_a_member_is_there() {
    let world = world(&["worker-1"]).await;
    let rule = json!({"service": "load-balancer", "method": "POST", "route": "/v2.0/lbaas/pools", "status": 500,
        "count": 3});
    world.request("POST", "/_simulator/faults", rule).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.event("web", "SyncLoadBalancerFailed").await;
    let service = world
        .cluster
        .api::<api::k8s_openapi::api::core::v1::Service>();
    let unserved = service.get("web").await.unwrap();
    assert_eq!(crate::world::ip(&unserved), "");
    world.published("web").await;
    assert_eq!(world.members().await.len(), 1);
    octavia_where(&world, "healthmonitors", |list: &[Value]| list.len() == 1).await;
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_without_bulk_requests_it_ends_the_same() {
    let conf = "[LoadBalancer]\nprovider-requires-serial-api-calls = true\n";
    let world = World::serving(conf, &["worker-1"]).await;
    ends_the_same(world, &[Phase::Created, Phase::Changed, Phase::Deleted], 8).await;
}
