//! Effects of single annotations.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::placement::external_subnet;
use crate::services::{octavia_where, world};
use crate::world::{World, eventually, ip};

fn annotated(list: &[(&str, Option<&str>)]) -> Value {
    let pair = |(name, value): &(&str, Option<&str>)| {
        (format!("loadbalancer.openstack.org/{name}"), json!(value))
    };
    json!({"metadata": {"annotations": list.iter().map(pair).collect::<serde_json::Map<_, _>>()}})
}

#[tokio::test(start_paused = true)]
async fn the_floating_ip_comes_from_the_subnet_that_is_named_by_id() {
    let world = world(&["worker-1"]).await;
    external_subnet(&world, "fast", "127.41.0", 9, &[]).await;
    let fast = external_subnet(&world, "slow", "127.42.0", 9, &[]).await;
    let named = annotated(&[("floating-subnet-id", Some(&fast))]);
    world.service("web", &[("TCP", 80)], named).await;
    let service = world.published("web").await;
    assert!(ip(&service).starts_with("127.42.0."), "{}", ip(&service));
}

#[tokio::test(start_paused = true)]
async fn the_floating_ip_comes_from_the_network_that_is_named_by_id() {
    let world = world(&["worker-1"]).await;
    let network = json!({"network": {"name": "other", "router:external": true}});
    let network = world
        .administer("POST", "/network/v2.0/networks", network)
        .await;
    let other = network["network"]["id"].as_str().unwrap().to_owned();
    let subnet = json!({"subnet": {"network_id": other, "ip_version": 4, "enable_dhcp": false, "cidr": "127.51.0.0/24"}});
    world
        .administer("POST", "/network/v2.0/subnets", subnet)
        .await;
    // A second router is on a port of its own, since the address of the gateway is taken.
    let router =
        json!({"router": {"name": "second", "external_gateway_info": {"network_id": other}}});
    let router = world.request("POST", "/network/v2.0/routers", router).await;
    let port = json!({"port": {"network_id": world.network, "name": "second"}});
    let port = world.request("POST", "/network/v2.0/ports", port).await;
    let path = format!(
        "/network/v2.0/routers/{}/add_router_interface",
        router["router"]["id"].as_str().unwrap()
    );
    world
        .request("PUT", &path, json!({"port_id": port["port"]["id"]}))
        .await;
    let first = world.external_network_named("public").await;
    for (name, id, prefix) in [
        ("first", &first, "127.30."),
        ("second", &other, "127.51.0."),
    ] {
        let named = annotated(&[("floating-network-id", Some(id))]);
        world.service(name, &[("TCP", 80)], named).await;
        let service = world.published(name).await;
        assert!(ip(&service).starts_with(prefix), "{name}: {}", ip(&service));
    }
}

#[tokio::test(start_paused = true)]
async fn members_are_in_the_subnet_that_is_named_and_those_that_are_there_stay_where_they_are() {
    let world = world(&["worker-1"]).await;
    let subnet =
        json!({"subnet": {"network_id": world.network, "cidr": "10.9.0.0/16", "ip_version": 4}});
    let subnet = world.request("POST", "/network/v2.0/subnets", subnet).await;
    let other = subnet["subnet"]["id"].as_str().unwrap();
    let named = annotated(&[("member-subnet-id", Some(other))]);
    world.service("web", &[("TCP", 80)], named).await;
    world.published("web").await;
    let subnets = async || {
        let all = world.all_members().await;
        let mut subnets: Vec<_> = all
            .iter()
            .map(|it| it["subnet_id"].as_str().unwrap_or_default().to_owned())
            .collect();
        subnets.sort();
        subnets
    };
    assert_eq!(subnets().await, [other]);
    world.changeable().await;
    world.cloud.reset_requests();
    let changed = annotated(&[("member-subnet-id", Some(&world.subnet))]);
    world.cluster.merge::<Service>("web", changed).await;
    let words = format!(
        "Annotation loadbalancer.openstack.org/member-subnet-id: `{}` has effect on new members alone",
        world.subnet
    );
    let note = world
        .event_with("web", "LoadBalancerImmutable", &words)
        .await;
    assert!(
        note.contains(&format!("has members in subnet `{other}`")),
        "{note}"
    );
    assert!(world.writes().is_empty(), "{:?}", world.writes());
    // A new one is in the new subnet, and so is one that is deleted by hand.
    world.worker("worker-2").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    let mut both = vec![other.to_owned(), world.subnet.clone()];
    both.sort();
    assert_eq!(subnets().await, both);
    world.changeable().await;
    let pool = world.octavia("pools").await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let members = world.all_members().await;
    let old = members.iter().find(|it| it["subnet_id"] == other).unwrap();
    let path = format!(
        "/load-balancer/v2.0/lbaas/pools/{pool}/members/{}",
        old["id"].as_str().unwrap()
    );
    world.request("DELETE", &path, Value::Null).await;
    eventually("both members in the new subnet", || async {
        let found = subnets().await;
        let are = found == [world.subnet.clone(), world.subnet.clone()];
        are.then_some(()).ok_or_else(|| format!("{found:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_setting_of_monitors_follows_its_annotation_and_returns_to_its_default() {
    let world = world(&["worker-1"]).await;
    let set = annotated(&[
        ("enable-health-monitor", Some("true")),
        ("health-monitor-timeout", Some("4")),
        ("health-monitor-max-retries", Some("2")),
    ]);
    world.service("web", &[("TCP", 80)], set).await;
    world.published("web").await;
    let settings = |list: &[Value]| {
        let numbers = ["delay", "timeout", "max_retries", "max_retries_down"]
            .map(|name| list[0][name].as_i64());
        numbers.map(|number| number.unwrap_or(-1))
    };
    assert_eq!(
        settings(&world.octavia("healthmonitors").await),
        [5, 4, 2, 3]
    );
    let changed = annotated(&[
        ("health-monitor-delay", Some("9")),
        ("health-monitor-timeout", Some("7")),
        ("health-monitor-max-retries", None),
        ("health-monitor-max-retries-down", Some("6")),
    ]);
    world.cluster.merge::<Service>("web", changed).await;
    octavia_where(&world, "healthmonitors", |list| {
        settings(list) == [9, 7, 1, 6]
    })
    .await;
    let none = annotated(&[
        ("health-monitor-delay", None),
        ("health-monitor-timeout", None),
        ("health-monitor-max-retries-down", None),
    ]);
    world.cluster.merge::<Service>("web", none).await;
    octavia_where(&world, "healthmonitors", |list| {
        settings(list) == [5, 3, 1, 3]
    })
    .await;
}

async fn ingress(world: &World, hostname: Option<&str>, address: Option<&str>) {
    eventually("what is published", || async {
        let service = world.cluster.api::<Service>().get("web").await.unwrap();
        let status = service.status.unwrap().load_balancer.unwrap();
        let ingress = status.ingress.unwrap_or_default();
        let is = ingress.len() == 1
            && ingress[0].hostname.as_deref() == hostname
            && ingress[0].ip.as_deref() == address;
        is.then_some(()).ok_or_else(|| format!("{ingress:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_host_name_is_published_in_place_of_the_address_and_the_address_without_it() {
    let world = world(&["worker-1"]).await;
    let named = annotated(&[("hostname", Some("web.example.net"))]);
    world.service("web", &[("TCP", 80)], named).await;
    world.published("web").await;
    ingress(&world, Some("web.example.net"), None).await;
    let address = world.floating_ips().await[0]["floating_ip_address"]
        .as_str()
        .unwrap()
        .to_owned();
    world
        .cluster
        .merge::<Service>("web", annotated(&[("hostname", None)]))
        .await;
    ingress(&world, None, Some(&address)).await;
    let other = annotated(&[("hostname", Some("other.example.net"))]);
    world.cluster.merge::<Service>("web", other).await;
    ingress(&world, Some("other.example.net"), None).await;
}

#[tokio::test(start_paused = true)]
async fn members_follow_the_labels_of_nodes_that_the_selector_asks_for() {
    let world = world(&["worker-1", "worker-2", "worker-3"]).await;
    world.label("worker-1", "pool", json!("fast")).await;
    world.label("worker-2", "pool", json!("slow")).await;
    let selected = annotated(&[("node-selector", Some("pool=fast"))]);
    world.service("web", &[("TCP", 80)], selected).await;
    world.published("web").await;
    world.members_are(&["worker-1"]).await;
    world.label("worker-2", "pool", json!("fast")).await;
    world.members_are(&["worker-1", "worker-2"]).await;
    world.label("worker-1", "pool", Value::Null).await;
    world.members_are(&["worker-2"]).await;
    let any = annotated(&[("node-selector", Some("pool"))]);
    world.cluster.merge::<Service>("web", any).await;
    world.label("worker-3", "pool", json!("")).await;
    world.members_are(&["worker-2", "worker-3"]).await;
    let none = annotated(&[("node-selector", None)]);
    world.cluster.merge::<Service>("web", none).await;
    world
        .members_are(&["worker-1", "worker-2", "worker-3"])
        .await;
}
