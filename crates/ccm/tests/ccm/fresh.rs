//! Resources created or freed just before the Service that names them: no older list leads to an event.

use openstack::inventory::Intervals;
use serde_json::{Value, json};

use crate::nodes::{is_initialised, provider_id};
use crate::world::{World, ip};

const NOWHERE: &str = "8d1c1a94-0000-4000-8000-000000000000";

/// Manager with lists read only when a Service needs them, so that none is newer by chance.
async fn calm(workers: &[&str]) -> World {
    let mut world = World::open("").await;
    world.options(|options| options.clouds.intervals = Intervals::default());
    world.run();
    world.route_out().await;
    for name in workers {
        world.worker(name).await;
    }
    world
}

fn on_port(id: &str) -> Value {
    json!({"metadata": {"annotations": {"loadbalancer.openstack.org/port-id": id}}})
}

/// Lets the manager read all lists.
async fn read(world: &World) {
    world
        .service("rejected", &[("TCP", 80)], on_port(NOWHERE))
        .await;
    world.event("rejected", "SyncLoadBalancerFailed").await;
}

async fn floating_ip(world: &World) -> Value {
    let body = json!({"floatingip": {"floating_network_id": world.external_network().await}});
    let path = "/network/v2.0/floatingips";
    world.request("POST", path, body).await["floatingip"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_port_that_was_made_just_before_its_service_is_found() {
    let world = calm(&["worker-1"]).await;
    read(&world).await;
    let body = json!({"port": {"network_id": world.network, "name": "vip"}});
    let port = world.request("POST", "/network/v2.0/ports", body).await;
    let id = port["port"]["id"].as_str().unwrap();
    world.service("web", &[("TCP", 80)], on_port(id)).await;
    world.published("web").await;
    assert_eq!(world.octavia("loadbalancers").await[0]["vip_port_id"], id);
    assert_eq!(world.count_events("web", "SyncLoadBalancerFailed").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_made_just_before_its_service_is_used() {
    let world = calm(&["worker-1"]).await;
    read(&world).await;
    let allocated = floating_ip(&world).await;
    let asked = json!({"spec": {"loadBalancerIP": allocated["floating_ip_address"]}});
    world.service("web", &[("TCP", 80)], asked).await;
    let service = world.published("web").await;
    assert_eq!(
        ip(&service),
        allocated["floating_ip_address"].as_str().unwrap()
    );
    assert_eq!(world.count_events("web", "SyncLoadBalancerFailed").await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_and_made_again_at_once_has_its_kept_floating_ip() {
    let world = calm(&["worker-1"]).await;
    let known = floating_ip(&world).await;
    let address = known["floating_ip_address"].as_str().unwrap();
    let fields = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/keep-floatingip": "true"}},
        "spec": {"loadBalancerIP": address}});
    for _ in 0..3 {
        world.service("gw", &[("TCP", 8081)], fields.clone()).await;
        assert_eq!(ip(&world.published("gw").await), address);
        world.delete_service("gw").await;
    }
    assert_eq!(world.count_events("gw", "SyncLoadBalancerFailed").await, 0);
    assert_eq!(world.floating_ips().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_freed_just_before_a_service_asks_for_it_is_used() {
    let world = calm(&["worker-1"]).await;
    let known = floating_ip(&world).await;
    let id = known["id"].as_str().unwrap();
    let path = format!("/network/v2.0/floatingips/{id}");
    let body = json!({"port": {"network_id": world.network}});
    let port = world.request("POST", "/network/v2.0/ports", body).await;
    let attach = json!({"floatingip": {"port_id": port["port"]["id"]}});
    world.request("PUT", &path, attach).await;
    read(&world).await;
    let free = json!({"floatingip": {"port_id": null}});
    world.request("PUT", &path, free).await;
    let asked = json!({"spec": {"loadBalancerIP": known["floating_ip_address"]}});
    world.service("web", &[("TCP", 80)], asked).await;
    world.published("web").await;
    assert_eq!(world.count_events("web", "SyncLoadBalancerFailed").await, 0);
}

/// The list at rest has the other server alone, whose name fits as long as there is no better one.
#[tokio::test(start_paused = true)]
async fn a_server_with_the_exact_name_that_was_made_just_before_its_node_is_that_of_the_node() {
    let world = calm(&[]).await;
    let other = world.server("K8S-Node-4").await;
    world.worker("worker-1").await;
    let id = world.server("k8s-node-4").await;
    world.node("k8s-node-4").await;
    let found = world.node_where("k8s-node-4", is_initialised).await;
    assert_eq!(provider_id(&found), format!("openstack:///{id}"));
    assert_ne!(id, other);
}
