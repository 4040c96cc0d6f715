//! Load balancers in ERROR that have served.

use serde_json::{Value, json};

use crate::services::{octavia_where, world};
use crate::world::{World, ip, restrict};

pub(crate) async fn fail(world: &World) -> Value {
    let id = world.octavia("loadbalancers").await[0]["id"].clone();
    assert!(
        world
            .cloud
            .fail_load_balancer(id.as_str().unwrap())
            .unwrap()
    );
    id
}

#[tokio::test(start_paused = true)]
async fn a_failover_is_requested_and_one_that_is_denied_is_left_to_the_administrator() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let id = fail(&world).await;
    let note = world.event("web", "LoadBalancerFailover").await;
    assert!(note.contains("may not request its failover"), "{note}");
    assert_eq!(
        world.octavia("loadbalancers").await[0]["provisioning_status"],
        "ERROR"
    );
    let path = format!(
        "/load-balancer/v2.0/lbaas/loadbalancers/{}/failover",
        id.as_str().unwrap()
    );
    world.administer("PUT", &path, Value::Null).await;
    octavia_where(&world, "loadbalancers", |list| {
        list[0]["id"] == id && list[0]["provisioning_status"] == "ACTIVE"
    })
    .await;
}

/// Gives the user of the manager the role that may request failovers.
pub(crate) async fn administrator(world: &World) {
    let mut ids = Vec::new();
    for (kind, name) in [("projects", "demo"), ("users", "demo"), ("roles", "admin")] {
        let path = format!("/identity/v3/{kind}");
        let all = world.administer("GET", &path, Value::Null).await;
        let list = all[kind].as_array().unwrap();
        let found = list.iter().find(|item| item["name"] == name).unwrap();
        ids.push(found["id"].as_str().unwrap().to_owned());
    }
    let path = format!(
        "/identity/v3/projects/{}/users/{}/roles/{}",
        ids[0], ids[1], ids[2]
    );
    world.administer("PUT", &path, Value::Null).await;
    restrict(&world.cloud).await;
}

#[tokio::test(start_paused = true)]
async fn with_the_right_to_request_a_failover_the_load_balancer_is_repaired() {
    let mut world = world(&["worker-1"]).await;
    world.kill().await;
    administrator(&world).await;
    world.run();
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let id = fail(&world).await;
    octavia_where(&world, "loadbalancers", |list| {
        list[0]["id"] == id && list[0]["provisioning_status"] == "ACTIVE"
    })
    .await;
    let note = world.event("web", "LoadBalancerFailover").await;
    assert!(note.contains("requested its failover"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_stays_in_error_is_created_again_with_its_address_if_cloud_conf_says_so()
 {
    let conf = "[LoadBalancer]\nerror-recovery = recreate\n";
    let world = World::serving(conf, &["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let address = ip(&world.published("web").await);
    let id = fail(&world).await;
    octavia_where(&world, "loadbalancers", |list| {
        list.len() == 1 && list[0]["id"] != id && list[0]["provisioning_status"] == "ACTIVE"
    })
    .await;
    world.event("web", "LoadBalancerRecreated").await;
    crate::world::eventually("the floating IP", || async {
        let ips = world.floating_ips().await;
        let balancer = world.octavia("loadbalancers").await[0].clone();
        let is = ips.len() == 1
            && ips[0]["floating_ip_address"] == address.as_str()
            && ips[0]["port_id"] == balancer["vip_port_id"];
        is.then_some(()).ok_or_else(|| format!("{ips:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn with_error_recovery_none_it_is_only_reported() {
    let world = World::start("[LoadBalancer]\nerror-recovery = none\n").await;
    world.route_out().await;
    world.worker("worker-1").await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.cloud.reset_requests();
    let id = fail(&world).await;
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains(id.as_str().unwrap()) && note.contains("is in ERROR"),
        "{note}"
    );
    assert!(world.writes().is_empty(), "{:?}", world.writes());
}
