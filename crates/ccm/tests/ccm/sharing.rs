//! Load balancers that serve several Services.

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::services::{NAME, octavia_where, world};
use crate::world::{World, ip, ports_of};

const ID: &str = "loadbalancer.openstack.org/load-balancer-id";

/// A Service that names a load balancer.
pub(crate) async fn guest(world: &World, name: &str, port: u16, id: &str) {
    let fields = json!({"metadata": {"annotations": {ID: id}}});
    world.service(name, &[("TCP", port)], fields).await;
}

pub(crate) fn ports(list: &[Value]) -> Vec<i64> {
    let mut ports: Vec<_> = list
        .iter()
        .map(|l| l["protocol_port"].as_i64().unwrap())
        .collect();
    ports.sort_unstable();
    ports
}

/// The tags of the load balancer.
async fn tags(world: &World) -> Vec<String> {
    let tags = world.octavia("loadbalancers").await[0]["tags"].clone();
    let mut tags: Vec<String> = serde_json::from_value(tags).unwrap();
    tags.sort();
    tags
}

/// A load balancer of a user, with a floating IP.
pub(crate) async fn by_hand(world: &World) -> String {
    let created = json!({"loadbalancer": {"name": "by-hand", "vip_subnet_id": world.subnet, "tags": ["mine"]}});
    let created = world
        .request("POST", "/load-balancer/v2.0/lbaas/loadbalancers", created)
        .await;
    let floating = json!({"floatingip": {"floating_network_id": world.external_network().await,
        "port_id": created["loadbalancer"]["vip_port_id"]}});
    world
        .request("POST", "/network/v2.0/floatingips", floating)
        .await;
    created["loadbalancer"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn two_services_share_a_load_balancer_that_the_last_one_takes_along() {
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], json!({})).await;
    let owner = world.published("web").await;
    let id = owner.annotations()[ID].clone();
    guest(&world, "api", 8080, &id).await;
    let shared = world.published("api").await;
    assert_eq!(ip(&shared), ip(&owner));
    octavia_where(&world, "listeners", |list| ports(list) == [80, 8080]).await;
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
    // Each follows its Service, and leaves the other's listeners alone.
    let change = json!({"spec": {"ports": ports_of(&[("TCP", 81)])}});
    world.cluster.merge::<Service>("web", change).await;
    octavia_where(&world, "listeners", |list| ports(list) == [81, 8080]).await;
    // The owner goes first.
    world.delete_service("web").await;
    octavia_where(&world, "listeners", |list| ports(list) == [8080]).await;
    let tags = world.octavia("loadbalancers").await[0]["tags"].clone();
    assert!(!tags.to_string().contains(NAME), "{tags}");
    assert_eq!(world.floating_ips().await.len(), 1);
    world.delete_service("api").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_goes_leaves_the_owner_as_it_was() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let id = world.published("web").await.annotations()[ID].clone();
    let before = world.cloud.resources();
    let tags_before = tags(&world).await;
    guest(&world, "api", 8080, &id).await;
    world.published("api").await;
    world.delete_service("api").await;
    assert_eq!(world.cloud.resources(), before);
    assert_eq!(tags(&world).await, tags_before);
    octavia_where(&world, "listeners", |list| ports(list) == [80]).await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_of_a_user_is_used_and_never_deleted() {
    let world = world(&["worker-1"]).await;
    let id = by_hand(&world).await;
    let before = world.cloud.resources();
    guest(&world, "web", 80, &id).await;
    world.published("web").await;
    octavia_where(&world, "listeners", |list| ports(list) == [80]).await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
    let balancers = world.octavia("loadbalancers").await;
    assert_eq!(balancers[0]["tags"], json!(["mine"]));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_shared_is_rejected_with_the_reason() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let id = world.published("web").await.annotations()[ID].clone();
    guest(&world, "same-port", 80, &id).await;
    let note = world.event("same-port", "SyncLoadBalancerFailed").await;
    assert!(note.contains("has TCP port 80 already"), "{note}");
    let internal = json!({"metadata": {"annotations": {ID: id,
        "service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}}});
    world.service("internal", &[("TCP", 81)], internal).await;
    let note = world.event("internal", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains("an internal Service cannot share one"),
        "{note}"
    );
    guest(&world, "second", 82, &id).await;
    world.published("second").await;
    guest(&world, "third", 83, &id).await;
    let note = world.event("third", "SyncLoadBalancerFailed").await;
    assert!(note.contains("max-shared-lb"), "{note}");
    // An HTTP listener takes the port of a TCP one.
    let http = json!({"metadata": {"annotations": {ID: by_hand(&world).await,
        "loadbalancer.openstack.org/x-forwarded-for": "true"}}});
    world.service("http", &[("TCP", 80)], http).await;
    world.published("http").await;
    let user = world
        .cluster
        .api::<Service>()
        .get("http")
        .await
        .unwrap()
        .annotations()[ID]
        .clone();
    guest(&world, "tcp", 80, &user).await;
    let note = world.event("tcp", "SyncLoadBalancerFailed").await;
    assert!(note.contains("has HTTP port 80 already"), "{note}");
    // The owner needs its floating IP while others share the load balancer.
    let key = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    let change = json!({"metadata": {"annotations": {key: "true"}}});
    world.cluster.merge::<Service>("web", change).await;
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains("the other Services need its floating IP"),
        "{note}"
    );
    assert_eq!(world.floating_ips().await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_has_a_load_balancer_keeps_it_when_another_is_named() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let id = world.published("web").await.annotations()[ID].clone();
    let other = by_hand(&world).await;
    let change = json!({"metadata": {"annotations": {ID: other}}});
    world.cluster.merge::<Service>("web", change).await;
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains(&format!("has load balancer {id} already")),
        "{note}"
    );
    world.delete_service("web").await;
    octavia_where(&world, "loadbalancers", |list| {
        list.len() == 1 && list[0]["id"] == other.as_str()
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_loses_its_annotation_stays_where_it_is_and_nothing_is_left_of_both() {
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], json!({})).await;
    let id = world.published("web").await.annotations()[ID].clone();
    guest(&world, "api", 8080, &id).await;
    let address = ip(&world.published("api").await);
    let change = json!({"metadata": {"annotations": {ID: Value::Null}}});
    world.cluster.merge::<Service>("api", change).await;
    crate::world::eventually("the id of the load balancer", || async {
        let service = world.published("api").await;
        let recorded = service.annotations().get(ID).cloned();
        (recorded.as_ref() == Some(&id))
            .then_some(())
            .ok_or(format!("{recorded:?}"))
    })
    .await;
    assert_eq!(ip(&world.published("api").await), address);
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
    world.delete_service("api").await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_guest_with_another_id_says_so_and_leaves_nothing_when_it_goes() {
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    for name in ["web", "other"] {
        world.service(name, &[("TCP", 80)], json!({})).await;
    }
    let id = world.published("web").await.annotations()[ID].clone();
    let other = world.published("other").await.annotations()[ID].clone();
    guest(&world, "api", 8080, &id).await;
    world.published("api").await;
    let change = json!({"metadata": {"annotations": {ID: other}}});
    world.cluster.merge::<Service>("api", change).await;
    let note = world.event("api", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains(&format!("has load balancer {id} already")),
        "{note}"
    );
    for name in ["api", "web", "other"] {
        world.delete_service(name).await;
    }
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn two_guests_that_swap_their_ports_are_served_at_them() {
    let conf = "[LoadBalancer]\nmax-shared-lb = 3\n";
    let world = World::serving(conf, &["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let id = world.published("web").await.annotations()[ID].clone();
    for (name, port) in [("a", 8080), ("b", 9090)] {
        guest(&world, name, port, &id).await;
        world.published(name).await;
    }
    for (name, port) in [("a", 9090), ("b", 8080)] {
        let change = json!({"spec": {"ports": ports_of(&[("TCP", port)])}});
        world.cluster.merge::<Service>(name, change).await;
    }
    let at = |list: &[Value], service: &str, port: u16| {
        let named = format!("_{service}");
        list.iter().any(|listener| {
            listener["name"].as_str().unwrap().ends_with(&named)
                && listener["protocol_port"] == port
        })
    };
    octavia_where(&world, "listeners", |list| {
        list.len() == 3 && at(list, "a", 9090) && at(list, "b", 8080)
    })
    .await;
}
