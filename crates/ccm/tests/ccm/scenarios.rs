//! The scenarios of the Go manager's test of load balancers, one by one (docs/guides/cloud-controller-manager.md has the table).

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::services::{NAME, octavia_where, world};
use crate::sharing::{by_hand, guest, ports};
use crate::world::{World, eventually, ip, ports_of};

const ID: &str = "loadbalancer.openstack.org/load-balancer-id";
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// The node ports of a Service.
fn node_ports(service: &Service) -> Vec<i64> {
    let ports = service.spec.clone().unwrap().ports.unwrap();
    let mut all: Vec<i64> = ports
        .iter()
        .map(|port| port.node_port.unwrap().into())
        .collect();
    all.sort_unstable();
    all
}

/// The ports of the members.
async fn member_ports(world: &World) -> Vec<i64> {
    let all = world.all_members().await;
    let port = |member: &Value| member["protocol_port"].as_i64().unwrap();
    let mut all: Vec<i64> = all.iter().map(port).collect();
    all.sort_unstable();
    all.dedup();
    all
}

#[tokio::test(start_paused = true)]
async fn scenario_basic_a_service_gets_the_floating_ip_that_it_asks_for() {
    let world = world(&["worker-1"]).await;
    let floating = json!({"floatingip": {"floating_network_id": world.external_network().await}});
    let path = "/network/v2.0/floatingips";
    let floating = world.request("POST", path, floating).await;
    let address = floating["floatingip"]["floating_ip_address"]
        .as_str()
        .unwrap();
    let asked = json!({"spec": {"loadBalancerIP": address}});
    world.service("web", &[("TCP", 80)], asked).await;
    assert_eq!(ip(&world.published("web").await), address);
    world.delete_service("web").await;
    assert!(world.octavia("loadbalancers").await.is_empty());
    // The floating IP existed before, and stays.
    assert_eq!(world.floating_ips().await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn scenario_forwarded_the_header_has_the_address_of_the_client() {
    let world = world(&["worker-1"]).await;
    let forwarded = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/x-forwarded-for": "true"}}});
    world.service("web", &[("TCP", 80)], forwarded).await;
    world.published("web").await;
    let listener = world.octavia("listeners").await[0].clone();
    assert_eq!(listener["protocol"], "HTTP");
    assert_eq!(
        listener["insert_headers"],
        json!({"X-Forwarded-For": "true"})
    );
    assert_eq!(world.octavia("pools").await[0]["protocol"], "HTTP");
    world.delete_service("web").await;
    assert!(world.octavia("loadbalancers").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn scenario_update_port_listeners_and_members_follow_ports_and_node_ports() {
    let world = world(&["worker-1"]).await;
    let internal = json!({"metadata": {"annotations": {INTERNAL: "true"}}});
    let two = [("TCP", 80), ("TCP", 8080)];
    world.service("web", &two, internal).await;
    let service = world.published("web").await;
    assert_eq!(world.octavia("loadbalancers").await[0]["name"], NAME);
    assert_eq!(world.octavia("listeners").await.len(), 2);
    let before = node_ports(&service);
    assert_eq!(member_ports(&world).await, before);
    let mut one = ports_of(&[("TCP", 80)]);
    one[0]["nodePort"] = json!(before.iter().max().unwrap() % 2000 + 30_500);
    let change = json!({"spec": {"ports": one}});
    let after = node_ports(&world.cluster.merge::<Service>("web", change).await);
    assert!(!before.contains(&after[0]), "{before:?} {after:?}");
    octavia_where(&world, "listeners", |list| list.len() == 1).await;
    eventually("the member at the new node port", || async {
        let found = member_ports(&world).await;
        (found == after)
            .then_some(())
            .ok_or_else(|| format!("{found:?}"))
    })
    .await;
    world.delete_service("web").await;
}

#[tokio::test(start_paused = true)]
async fn scenario_shared_services_share_a_load_balancer_in_nine_steps() {
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    // 1: the first Service has a load balancer.
    world.service("one", &[("TCP", 80)], json!({})).await;
    let id = world.published("one").await.annotations()[ID].clone();
    let tagged = async |name: &str| {
        let tags = world.octavia("loadbalancers").await[0]["tags"].clone();
        let tag = json!(format!("kube_service_kubernetes_default_{name}"));
        tags.as_array().unwrap().contains(&tag)
    };
    assert!(tagged("one").await);
    // 2: the second one uses it.
    guest(&world, "two", 8080, &id).await;
    world.published("two").await;
    octavia_where(&world, "listeners", |list| ports(list) == [80, 8080]).await;
    assert!(tagged("two").await);
    // 3: the second one changes.
    let change = json!({"spec": {"ports": ports_of(&[("TCP", 8081)])}});
    world.cluster.merge::<Service>("two", change).await;
    octavia_where(&world, "listeners", |list| ports(list) == [80, 8081]).await;
    // 4: the second one goes.
    world.delete_service("two").await;
    octavia_where(&world, "listeners", |list| ports(list) == [80]).await;
    assert!(tagged("one").await && !tagged("two").await);
    // 5: a third one uses it.
    guest(&world, "three", 8080, &id).await;
    world.published("three").await;
    // 6: a fourth one wants the port of the third.
    let conf = "[LoadBalancer]\nmax-shared-lb = 4\n";
    let settings = crate::world::settings(&world.cloud, conf);
    world.settings.send_replace(settings.into());
    guest(&world, "four", 8080, &id).await;
    let clash = "has TCP port 8080 already";
    world
        .event_with("four", "SyncLoadBalancerFailed", clash)
        .await;
    // 7: the fourth one goes.
    world.delete_service("four").await;
    octavia_where(&world, "listeners", |list| ports(list) == [80, 8080]).await;
    // 8: the first one goes, and the load balancer stays.
    world.delete_service("one").await;
    octavia_where(&world, "listeners", |list| ports(list) == [8080]).await;
    assert!(tagged("three").await && !tagged("one").await);
    // 9: the last one goes.
    world.delete_service("three").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn scenario_user_load_balancer_a_service_uses_it_and_it_stays() {
    let world = world(&["worker-1"]).await;
    let id = by_hand(&world).await;
    let before = world.cloud.resources();
    guest(&world, "web", 80, &id).await;
    assert_eq!(world.published("web").await.annotations()[ID], id);
    octavia_where(&world, "listeners", |list| ports(list) == [80]).await;
    guest(&world, "api", 8080, &id).await;
    world.published("api").await;
    octavia_where(&world, "listeners", |list| ports(list) == [80, 8080]).await;
    for name in ["web", "api"] {
        world.delete_service(name).await;
    }
    assert_eq!(world.cloud.resources(), before);
    assert_eq!(world.octavia("loadbalancers").await[0]["id"], id.as_str());
}
