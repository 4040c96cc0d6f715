//! Changes by others in the cloud are repaired, with an event that names the change.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::services::{NAME, octavia_where, world};
use crate::world::World;

const REPAIRED: &str = "LoadBalancerDriftRepaired";

/// Path of the first of Octavia's resources of a kind, below Octavia's path.
async fn path(world: &World, kind: &str) -> String {
    let all = world.octavia(kind).await;
    let id = all[0]["id"].as_str().unwrap();
    format!("/load-balancer/v2.0/lbaas/{kind}/{id}")
}

/// A change by another user once the load balancer can be changed, after which `words` are in an event.
async fn repaired(world: &World, method: &str, path: &str, body: Value, words: &str) {
    world.changeable().await;
    world.request(method, path, body).await;
    let note = world.event_with("web", REPAIRED, words).await;
    assert!(
        note.starts_with("Others changed the load balancer, which is repaired: "),
        "{note}"
    );
    world.changeable().await;
}

#[tokio::test(start_paused = true)]
async fn what_others_change_is_repaired_with_an_event_that_names_it() {
    let world = world(&["worker-1", "worker-2"]).await;
    let local = json!({"spec": {"externalTrafficPolicy": "Local"}});
    world.service("web", &[("TCP", 80)], local).await;
    world.published("web").await;
    let listener = path(&world, "listeners").await;
    let change = json!({"listener": {"connection_limit": 7, "name": "mine"}});
    let words = format!(
        "listener `mine`: connection_limit was 7, and is set to -1; name was `mine`, and is set to `listener_0_{NAME}`"
    );
    repaired(&world, "PUT", &listener, change, &words).await;

    let pool = path(&world, "pools").await;
    let change = json!({"pool": {"lb_algorithm": "SOURCE_IP"}});
    let words =
        format!("pool `pool_0_{NAME}`: lb_algorithm was `SOURCE_IP`, and is set to `ROUND_ROBIN`");
    repaired(&world, "PUT", &pool, change, &words).await;

    let monitor = path(&world, "healthmonitors").await;
    let change = json!({"healthmonitor": {"url_path": "/", "expected_codes": "500"}});
    let words = format!(
        "health monitor `monitor_0_{NAME}`: expected_codes was `500`, and is set to `200`; url_path was `/`, and is set \
         to `/healthz`"
    );
    repaired(&world, "PUT", &monitor, change, &words).await;
    let words = format!("health monitor `monitor_0_{NAME}` (HTTP) was not there, and is created");
    repaired(&world, "DELETE", &monitor, Value::Null, &words).await;

    let members = format!("{pool}/members");
    let known = world.all_members().await;
    let address = known[0]["address"].as_str().unwrap();
    let words = format!(
        "pool `pool_0_{NAME}`: member {address}:{} was missing, and is added",
        known[0]["protocol_port"]
    );
    let member = format!("{members}/{}", known[0]["id"].as_str().unwrap());
    repaired(&world, "DELETE", &member, Value::Null, &words).await;

    let words = format!("pool `pool_0_{NAME}` was not there, and is created");
    repaired(&world, "DELETE", &pool, Value::Null, &words).await;

    let words = format!("load balancer `{NAME}` was not there, and is created");
    let balancer = format!("{}?cascade=true", path(&world, "loadbalancers").await);
    repaired(&world, "DELETE", &balancer, Value::Null, &words).await;
    world.members_are(&["worker-1", "worker-2"]).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_service_changes_is_no_drift() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let limit = "loadbalancer.openstack.org/connection-limit";
    for (value, words) in [
        (json!("7"), "connection_limit was -1, and is set to 7"),
        (Value::Null, "connection_limit was 7, and is set to -1"),
    ] {
        let change = json!({"metadata": {"annotations": {limit: value}}});
        world.cluster.merge::<Service>("web", change).await;
        world.event_with("web", "UpdatedLoadBalancer", words).await;
    }
    world.worker("worker-2").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    let monitored = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/enable-health-monitor": "true"}}});
    world.cluster.merge::<Service>("web", monitored).await;
    octavia_where(&world, "healthmonitors", |list| list.len() == 1).await;
    assert_eq!(world.count_events("web", REPAIRED).await, 0);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_nobody_knows_who_changed_what_and_the_event_names_it_all_the_same() {
    let mut world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.changeable().await;
    world.kill().await;
    let listener = path(&world, "listeners").await;
    let change = json!({"listener": {"timeout_client_data": 9}});
    world.request("PUT", &listener, change).await;
    world.run();
    let words = "timeout_client_data was 9, and is set to 50000";
    world.event_with("web", "UpdatedLoadBalancer", words).await;
    assert_eq!(world.count_events("web", REPAIRED).await, 0);
}

#[tokio::test(start_paused = true)]
async fn names_of_other_clusters_and_of_other_ports_are_left_as_they_are() {
    let world = world(&["worker-1"]).await;
    world
        .service("web", &[("TCP", 80), ("TCP", 443)], json!({}))
        .await;
    world.published("web").await;
    let ports = crate::world::ports_of(&[("TCP", 443)]);
    world
        .cluster
        .merge::<Service>("web", json!({"spec": {"ports": ports}}))
        .await;
    octavia_where(&world, "listeners", |list| {
        list.len() == 1 && list[0]["name"] == format!("listener_1_{NAME}")
    })
    .await;
    world.changeable().await;
    let listener = path(&world, "listeners").await;
    let change = json!({"listener": {"name": "listener_1_kube_service_blue_default_web", "connection_limit": 7}});
    world.request("PUT", &listener, change).await;
    // The other change shows that a reconcile has run.
    octavia_where(&world, "listeners", |list| {
        list[0]["connection_limit"] == -1
    })
    .await;
    let name = world.octavia("listeners").await[0]["name"].clone();
    assert_eq!(name, "listener_1_kube_service_blue_default_web");
}
