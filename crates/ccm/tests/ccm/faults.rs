//! Every request to the cloud fails once in every way, and the end is the same.

use serde_json::{Value, json};
use testbed::eventually;

use crate::killing::{Phase, prepare};
use crate::services::world;
use crate::world::World;

/// The ways in which a request fails.
pub(crate) fn classes() -> Vec<Value> {
    vec![
        json!({"status": 500}),
        json!({"status": 503, "retry_after": 0}),
        json!({"status": 429, "retry_after": 0}),
        json!({"status": 409}),
        json!({"status": 403}),
        json!({"status": 401}),
        json!({"drop": true}),
        json!({"garbage": true}),
        // The request is executed, and its answer is lost.
        json!({"status": 504, "after_change": true}),
        json!({"drop": true, "after_change": true}),
        json!({"garbage": true, "after_change": true}),
    ]
}

/// The writes of a Service's life, as the cloud names them.
const WRITES: &[(&str, &str, &str)] = &[
    ("load-balancer", "POST", "/v2.0/lbaas/loadbalancers"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/loadbalancers/{id}"),
    ("load-balancer", "POST", "/v2.0/lbaas/listeners"),
    ("load-balancer", "PUT", "/v2.0/lbaas/listeners/{id}"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/listeners/{id}"),
    ("load-balancer", "POST", "/v2.0/lbaas/pools"),
    ("load-balancer", "PUT", "/v2.0/lbaas/pools/{id}"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/pools/{id}"),
    (
        "load-balancer",
        "PUT",
        "/v2.0/lbaas/pools/{pool_id}/members",
    ),
    ("load-balancer", "POST", "/v2.0/lbaas/healthmonitors"),
    ("load-balancer", "PUT", "/v2.0/lbaas/healthmonitors/{id}"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/healthmonitors/{id}"),
    ("network", "POST", "/v2.0/floatingips"),
    ("network", "DELETE", "/v2.0/floatingips/{id}"),
];

pub(crate) async fn inject(world: &World, service: &str, method: &str, route: &str, class: &Value) {
    let mut rule = class.clone();
    rule["service"] = json!(service);
    rule["method"] = json!(method);
    rule["route"] = json!(route);
    rule["count"] = json!(1);
    world.request("POST", "/_simulator/faults", rule).await;
}

/// The rules that have not applied yet.
pub(crate) async fn left(world: &World) -> Vec<Value> {
    let all = world
        .request("GET", "/_simulator/faults", Value::Null)
        .await;
    all["faults"].as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_write_fails_once_in_every_way_and_the_end_is_the_same() {
    let world = world(&["worker-1"]).await;
    all_fail(world, WRITES, &Phase::ALL).await;
}

async fn all_fail(world: World, writes: &[(&str, &str, &str)], phases: &[Phase]) {
    prepare(&world).await;
    let before = world.cloud.resources();
    for class in classes() {
        for (service, method, route) in writes {
            inject(&world, service, method, route, &class).await;
        }
        for phase in phases {
            phase.begin(&world).await;
            phase.complete(&world).await;
        }
        assert_eq!(
            left(&world).await,
            Vec::<Value>::new(),
            "{class}: writes that did not happen"
        );
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_list_fails_once_in_every_way_and_the_end_is_the_same() {
    let mut world = world(&["worker-1"]).await;
    prepare(&world).await;
    let before = world.cloud.resources();
    let kinds = ["loadbalancers", "listeners", "pools", "healthmonitors"];
    let mut routes: Vec<_> = kinds
        .map(|kind| ("load-balancer", format!("/v2.0/lbaas/{kind}")))
        .into();
    let kinds = [
        "floatingips",
        "networks",
        "subnets",
        "ports",
        "security-groups",
    ];
    routes.extend(kinds.map(|kind| ("network", format!("/v2.0/{kind}"))));
    for class in classes() {
        for phase in Phase::ALL {
            world.kill().await;
            for (service, route) in &routes {
                inject(&world, service, "GET", route, &class).await;
            }
            if phase == Phase::Secured {
                inject(&world, "key-manager", "GET", "/v1/containers/{id}", &class).await;
            }
            world.run();
            phase.begin(&world).await;
            // Requests of the test would take part.
            eventually("the faults", || async {
                let left = left(&world).await;
                left.is_empty()
                    .then_some(())
                    .ok_or_else(|| format!("{left:?}"))
            })
            .await;
            phase.complete(&world).await;
        }
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}
