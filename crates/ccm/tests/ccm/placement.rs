//! Where addresses come from: the subnet of the floating IP, the port of the virtual address, and what cannot change.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::services::world;
use crate::world::{World, ip};

fn annotated(list: &[(&str, &str)]) -> Value {
    let pair =
        |(name, value): &(&str, &str)| (format!("loadbalancer.openstack.org/{name}"), json!(value));
    json!({"metadata": {"annotations": list.iter().map(pair).collect::<serde_json::Map<_, _>>()}})
}

/// Creates a further subnet of the external network, with room in the pool for one address of each load balancer;
/// returns the id.
pub(crate) async fn external_subnet(
    world: &World,
    name: &str,
    prefix: &str,
    addresses: u8,
    tags: &[&str],
) -> String {
    let body = json!({"subnet": {"name": name, "network_id": world.external_network().await, "ip_version": 4,
        "cidr": format!("{prefix}.0/24"), "enable_dhcp": false,
        "allocation_pools": [{"start": format!("{prefix}.10"), "end": format!("{prefix}.{}", 9 + addresses)}]}});
    let subnet = world
        .administer("POST", "/network/v2.0/subnets", body)
        .await;
    world.share_external_network().await;
    let id = subnet["subnet"]["id"].as_str().unwrap().to_owned();
    let path = format!("/network/v2.0/subnets/{id}/tags");
    world.administer("PUT", &path, json!({"tags": tags})).await;
    id
}

/// Neutron rejects a floating IP of any other with 404.
#[tokio::test(start_paused = true)]
async fn of_several_external_networks_that_of_the_router_is_taken() {
    let world = World::start("").await;
    let mut networks = Vec::new();
    for number in 0..6 {
        let network =
            json!({"network": {"name": format!("other-{number}"), "router:external": true}});
        let network = world
            .administer("POST", "/network/v2.0/networks", network)
            .await;
        let id = network["network"]["id"].clone();
        let subnet = json!({"subnet": {"network_id": id, "ip_version": 4, "enable_dhcp": false,
            "cidr": format!("127.{}.0.0/24", 50 + number)}});
        world
            .administer("POST", "/network/v2.0/subnets", subnet)
            .await;
        networks.push(id);
    }
    world.route_out_to(&networks[3]).await;
    world.worker("worker-1").await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let service = world.published("web").await;
    assert!(ip(&service).starts_with("127.53.0."), "{}", ip(&service));
    assert_eq!(world.count_events("web", "SyncLoadBalancerFailed").await, 0);
}

#[tokio::test(start_paused = true)]
async fn the_subnet_of_the_floating_ip_follows_patterns_and_tags() {
    let world = world(&["worker-1"]).await;
    external_subnet(&world, "fast-1", "127.41.0", 9, &["fast", "east"]).await;
    external_subnet(&world, "fast-2", "127.42.0", 9, &["fast", "west"]).await;
    for (name, annotations, prefix) in [
        ("glob", vec![("floating-subnet", "fast-?")], "127.41.0."),
        ("regex", vec![("floating-subnet", "~2$")], "127.42.0."),
        ("not", vec![("floating-subnet", "!fast*")], "127.30."),
        (
            "any",
            vec![("floating-subnet-tags", "west,north")],
            "127.42.0.",
        ),
        (
            "all",
            vec![("floating-subnet-tags", "&fast,east")],
            "127.41.0.",
        ),
        ("none", vec![("floating-subnet-tags", "!fast")], "127.30."),
        (
            "both",
            vec![
                ("floating-subnet", "fast*"),
                ("floating-subnet-tags", "west"),
            ],
            "127.42.0.",
        ),
    ] {
        world
            .service(name, &[("TCP", 80)], annotated(&annotations))
            .await;
        let service = world.published(name).await;
        assert!(ip(&service).starts_with(prefix), "{name}: {}", ip(&service));
    }
    for (name, annotations, words) in [
        (
            "wrong",
            ("floating-subnet", "~("),
            "floating-subnet: `~(`: this is neither a name",
        ),
        (
            "empty",
            ("floating-subnet-tags", "!"),
            "floating-subnet-tags: `!`: the list has no tags",
        ),
        (
            "nowhere",
            ("floating-subnet", "slow*"),
            "floating-subnet `slow*`: no subnet of the external network",
        ),
    ] {
        world
            .service(name, &[("TCP", 80)], annotated(&[annotations]))
            .await;
        world
            .event_with(name, "SyncLoadBalancerFailed", words)
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn subnets_that_the_project_does_not_see_are_no_match_and_the_event_says_so() {
    let world = world(&["worker-1"]).await;
    let wanted = annotated(&[("floating-subnet", "public*")]);
    world.service("web", &[("TCP", 80)], wanted).await;
    let words = "is as requested (0 are seen)";
    world
        .event_with("web", "SyncLoadBalancerFailed", words)
        .await;
    assert!(world.octavia("loadbalancers").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_class_names_the_subnets_and_the_annotation_wins_as_a_whole() {
    let conf = "[LoadBalancer]\nfloating-subnet-tags = fast\n[LoadBalancerClass \"west\"]\nfloating-subnet = *-2\n";
    let mut world = World::open(conf).await;
    external_subnet(&world, "fast-1", "127.41.0", 9, &["fast"]).await;
    external_subnet(&world, "slow-2", "127.42.0", 9, &["slow"]).await;
    world.run();
    world.route_out().await;
    world.worker("worker-1").await;
    for (name, annotations, prefix) in [
        ("conf", vec![], "127.41.0."),
        ("class", vec![("class", "west")], "127.42.0."),
        (
            "own",
            vec![("class", "west"), ("floating-subnet", "public*")],
            "127.30.",
        ),
    ] {
        world
            .service(name, &[("TCP", 80)], annotated(&annotations))
            .await;
        let service = world.published(name).await;
        assert!(ip(&service).starts_with(prefix), "{name}: {}", ip(&service));
    }
}

#[tokio::test(start_paused = true)]
async fn a_subnet_without_free_addresses_is_followed_by_the_next_one() {
    let world = world(&["worker-1"]).await;
    external_subnet(&world, "fast-1", "127.41.0", 1, &[]).await;
    external_subnet(&world, "fast-2", "127.42.0", 1, &[]).await;
    let wanted = annotated(&[("floating-subnet", "fast-*")]);
    for (name, address) in [("one", "127.41.0.10"), ("two", "127.42.0.10")] {
        world.service(name, &[("TCP", 80)], wanted.clone()).await;
        assert_eq!(ip(&world.published(name).await), address);
    }
    world.service("three", &[("TCP", 80)], wanted).await;
    let words = "Unable to find any IP address";
    world
        .event_with("three", "SyncLoadBalancerFailed", words)
        .await;
    // The deleted Service leaves its address to the waiting one.
    world.delete_service("one").await;
    assert_eq!(ip(&world.published("three").await), "127.41.0.10");
}

/// A port of a user.
async fn port(world: &World) -> Value {
    let body = json!({"port": {"network_id": world.network, "name": "vip"}});
    let answer = world.request("POST", "/network/v2.0/ports", body).await;
    answer["port"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_given_port_has_the_virtual_address_and_stays_when_the_service_goes() {
    let world = world(&["worker-1"]).await;
    let port = port(&world).await;
    let id = port["id"].as_str().unwrap();
    let before = world.cloud.resources();
    world
        .service("web", &[("TCP", 80)], annotated(&[("port-id", id)]))
        .await;
    world.published("web").await;
    let balancer = world.octavia("loadbalancers").await[0].clone();
    assert_eq!(balancer["vip_port_id"], id);
    assert_eq!(balancer["vip_address"], port["fixed_ips"][0]["ip_address"]);
    assert_eq!(world.floating_ips().await[0]["port_id"], id);
    // The address is in use now.
    world
        .service("second", &[("TCP", 80)], annotated(&[("port-id", id)]))
        .await;
    let words = "the port is in use by Octavia";
    world
        .event_with("second", "SyncLoadBalancerFailed", words)
        .await;
    world.delete_service("second").await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_port_that_does_not_fit_is_rejected_with_the_reason() {
    let world = world(&["worker-1"]).await;
    let port = port(&world).await;
    let id = port["id"].as_str().unwrap();
    let foreign = json!({"port": {"network_id": world.external_network().await}});
    let foreign = world
        .administer("POST", "/network/v2.0/ports", foreign)
        .await;
    let foreign = foreign["port"]["id"].as_str().unwrap().to_owned();
    for (name, id) in [
        ("unknown", "8d1c1a94-0000-4000-8000-000000000000"),
        ("foreign", foreign.as_str()),
    ] {
        world
            .service(name, &[("TCP", 80)], annotated(&[("port-id", id)]))
            .await;
        let words = "the project has no port with this id";
        world
            .event_with(name, "SyncLoadBalancerFailed", words)
            .await;
    }
    let mut fields = annotated(&[("port-id", id)]);
    fields["metadata"]["annotations"]["service.beta.kubernetes.io/openstack-internal-load-balancer"] =
        json!("true");
    fields["spec"] = json!({"loadBalancerIP": "10.0.99.99"});
    world.service("address", &[("TCP", 80)], fields).await;
    let words = "the port has no IPv4 address that is 10.0.99.99";
    world
        .event_with("address", "SyncLoadBalancerFailed", words)
        .await;
    assert!(world.octavia("loadbalancers").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_octavia_does_not_change_is_an_event_that_names_annotation_and_value() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let address = ip(&world.published("web").await);
    world.cloud.reset_requests();
    for name in [
        "subnet-id",
        "network-id",
        "port-id",
        "flavor-id",
        "availability-zone",
    ] {
        let change = annotated(&[(name, "another")]);
        world.cluster.merge::<Service>("web", change).await;
        let words = format!("{name}: `another` has no effect: load balancer");
        world
            .event_with("web", "LoadBalancerImmutable", &words)
            .await;
    }
    let change = json!({"spec": {"loadBalancerIP": "127.30.0.99"}});
    world.cluster.merge::<Service>("web", change).await;
    let words =
        format!("spec.loadBalancerIP: `127.30.0.99` has no effect: the Service has {address}");
    world
        .event_with("web", "LoadBalancerImmutable", &words)
        .await;
    assert!(world.writes().is_empty(), "{:?}", world.writes());
    // Other changes are still made.
    let change = json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}});
    world.cluster.merge::<Service>("web", change).await;
    crate::services::octavia_where(&world, "listeners", |list| {
        list[0]["allowed_cidrs"] == json!(["10.0.0.0/8"])
    })
    .await;
}

/// Two clusters of one range in one project, with one worker that can be a member.
#[tokio::test(start_paused = true)]
async fn load_balancer_and_members_are_in_the_subnet_of_a_node_whose_address_others_have_too() {
    let world = world(&["worker-1", "worker-2"]).await;
    world.exclude("worker-2").await;
    let node = world.nodes().get("worker-1").await.unwrap();
    let address = crate::world::addresses(&node)[0].replace("InternalIP ", "");
    crate::groups::strangers(&world, &address).await;
    world.service("wrong", &[("TCP", 8091)], json!({})).await;
    world.published("wrong").await;
    world.members_are(&["worker-1"]).await;
    let balancers = world.octavia("loadbalancers").await;
    assert_eq!(balancers[0]["vip_subnet_id"], world.subnet.as_str());
    let members = world.all_members().await;
    assert_eq!(members[0]["subnet_id"], world.subnet.as_str());
}
