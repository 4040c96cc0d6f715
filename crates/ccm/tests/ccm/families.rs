//! Services of two address families.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::services::octavia_where;
use crate::world::{World, ip};

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// Workers with an address of each family.
async fn world(conf: &str, workers: &[&str]) -> World {
    furnished(World::start(conf).await, workers).await
}

/// Gives the network a second family, and the world workers.
pub(crate) async fn furnished(world: World, workers: &[&str]) -> World {
    world.route_out().await;
    let subnet =
        json!({"subnet": {"network_id": world.network, "cidr": "fd00:10::/64", "ip_version": 6}});
    world.request("POST", "/network/v2.0/subnets", subnet).await;
    for name in workers {
        world.worker(name).await;
    }
    world.cloud.reset_requests();
    world
}

pub(crate) fn families(list: &[&str], policy: &str) -> Value {
    json!({"spec": {"ipFamilies": list, "ipFamilyPolicy": policy}})
}

fn published(service: &Service) -> Vec<String> {
    let status = service.status.clone().unwrap().load_balancer.unwrap();
    let ingress = status.ingress.unwrap_or_default();
    ingress.into_iter().filter_map(|one| one.ip).collect()
}

#[tokio::test(start_paused = true)]
async fn both_addresses_are_on_one_load_balancer_and_published_in_the_order_of_the_families() {
    let world = world("", &["worker-1"]).await;
    let before = world.cloud.resources();
    let both = families(&["IPv4", "IPv6"], "RequireDualStack");
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], both)
        .await;
    let service = world.published("web").await;
    let balancers = world.octavia("loadbalancers").await;
    let further = balancers[0]["additional_vips"].as_array().unwrap();
    assert_eq!((balancers.len(), further.len()), (1, 1));
    let floating = world.floating_ips().await[0]["floating_ip_address"].clone();
    let second = further[0]["ip_address"].as_str().unwrap();
    assert_eq!(published(&service), [floating.as_str().unwrap(), second]);
    assert!(second.starts_with("fd00:10::"), "{second}");
    // Connections are translated, datagrams are not: the member is in both families there.
    assert_eq!(world.members().await, ["worker-1"; 3]);
    octavia_where(&world, "listeners", |list| {
        list.iter()
            .all(|l| l["allowed_cidrs"] == json!(["0.0.0.0/0", "::/0"]))
    })
    .await;
    assert_eq!(world.writes().len(), 2, "{:?}", world.writes());
    let change = json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"]}});
    world.cluster.merge::<Service>("web", change).await;
    octavia_where(&world, "listeners", |list| {
        list.iter()
            .all(|l| l["allowed_cidrs"] == json!(["10.0.0.0/8", "fd00::/8"]))
    })
    .await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn ipv6_can_be_first_and_an_internal_service_has_its_virtual_addresses() {
    let world = world("", &["worker-1"]).await;
    let both = families(&["IPv6", "IPv4"], "PreferDualStack");
    world.service("web", &[("TCP", 80)], both.clone()).await;
    let service = world.published("web").await;
    let all = published(&service);
    assert!(
        all[0].starts_with("fd00:10::") && all[1].starts_with("127.30."),
        "{all:?}"
    );
    let mut internal = both;
    internal["metadata"] = json!({"annotations": {INTERNAL: "true"}});
    world.service("internal", &[("TCP", 80)], internal).await;
    let all = published(&world.published("internal").await);
    assert!(
        all[0].starts_with("fd00:10::") && all[1].starts_with("10.0."),
        "{all:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_network_of_one_family_serves_that_or_is_reported_if_both_are_required() {
    let world = crate::services::world(&["worker-1"]).await;
    let preferred = families(&["IPv4", "IPv6"], "PreferDualStack");
    world.service("preferred", &[("TCP", 80)], preferred).await;
    let service = world.published("preferred").await;
    assert!(ip(&service).starts_with("127.30."));
    assert_eq!(published(&service).len(), 1);
    let words = "has no subnet of IPv6, and both addresses are on one port";
    world
        .event_with("preferred", "LoadBalancerDualStackIgnored", words)
        .await;
    let required = families(&["IPv4", "IPv6"], "RequireDualStack");
    world.service("required", &[("TCP", 80)], required).await;
    world
        .event_with("required", "SyncLoadBalancerFailed", words)
        .await;
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
}
