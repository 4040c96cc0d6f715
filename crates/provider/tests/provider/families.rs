//! Clusters with addresses of IPv6, alone and beside those of IPv4.

use std::collections::BTreeMap;

use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use openstack::Service;
use openstack::network::{Port, SecurityGroup, Subnet};
use serde_json::{Value, json};

use crate::world::{World, eventually};

async fn subnets(world: &World) -> Vec<Subnet> {
    let all = world.session().await.network().subnets(&[]).await.unwrap();
    let ours = |subnet: &Subnet| {
        subnet
            .name
            .starts_with("k8s-clusterapi-cluster-default-demo")
    };
    let mut all: Vec<_> = all.into_iter().filter(ours).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

async fn ports(world: &World, name: &str) -> Vec<Port> {
    let all = world.session().await.network().ports(&[]).await.unwrap();
    all.into_iter()
        .filter(|port| port.name.starts_with(name))
        .collect()
}

/// Where the port of a server has addresses, by family.
async fn families(world: &World, name: &str) -> Vec<u8> {
    let found = ports(world, name).await;
    let ips = found.iter().flat_map(|port| &port.fixed_ips);
    let mut families: Vec<_> = ips
        .map(|ip| if ip.ip_address.contains(':') { 6 } else { 4 })
        .collect();
    families.sort_unstable();
    families
}

/// The addresses of the members of the API server's load balancer.
async fn member(world: &World) -> String {
    eventually("a member", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        let members = listeners.first().map(|listener| listener.members.clone());
        let first = members.and_then(|members| members.into_iter().next());
        first
            .map(|member| format!("{member:?}"))
            .ok_or_else(|| format!("{listeners:?}"))
    })
    .await
}

async fn raw_subnet(world: &World, id: &str) -> Value {
    let path = format!("/subnets/{id}");
    world
        .request(Service::Network, "GET", &path, json!({}))
        .await["subnet"]
        .clone()
}

async fn all_gone(world: &World, machines: &[&str]) {
    for name in machines {
        world.delete_machine(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), BTreeMap::default());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_a_subnet_of_each_family_has_both_on_router_ports_and_rules() {
    let world = World::start().await;
    let both = json!([
        {"cidr": "10.6.0.0/24", "dnsNameservers": ["8.8.8.8"]},
        {"cidr": "fd00:6::/64", "dnsNameservers": ["2001:4860:4860::8888"]},
    ]);
    world.cluster(json!({"managedSubnets": both})).await;
    let cluster = world.cluster_ready().await;
    let found = subnets(&world).await;
    let names: Vec<_> = found.iter().map(|subnet| subnet.name.as_str()).collect();
    let name = "k8s-clusterapi-cluster-default-demo";
    assert_eq!(names, [name.to_owned(), format!("{name}-ipv6")]);
    assert_eq!((found[0].ip_version, found[1].ip_version), (4, 6));
    let six = raw_subnet(&world, &found[1].id).await;
    assert_eq!(six["ipv6_ra_mode"], "dhcpv6-stateful");
    assert_eq!(six["ipv6_address_mode"], "dhcpv6-stateful");
    assert_eq!(six["dns_nameservers"], json!(["2001:4860:4860::8888"]));
    let status = cluster.status.unwrap();
    let network = status.network.unwrap();
    let cidrs: Vec<_> = network.subnets.iter().map(|it| it.cidr.as_str()).collect();
    assert_eq!(cidrs, ["10.6.0.0/24", "fd00:6::/64"]);

    // The API is where the first subnet is.
    let balancer = status.api_server_managed_load_balancer.unwrap();
    assert!(balancer.internal_ip.unwrap().starts_with("10.6.0."));
    let host = cluster.spec.control_plane_endpoint.unwrap().host.unwrap();
    assert!(!host.contains(':'), "{host}");
    world.machine("cp-0", true, json!({})).await;
    let machine = world.machine_ready("cp-0").await;
    assert_eq!(families(&world, "cp-0").await, [4, 6]);
    let addresses = machine.status.unwrap().addresses;
    assert_eq!(addresses.len(), 3, "{addresses:?}");
    assert!(member(&world).await.contains("10.6.0."));

    let network = world.session().await;
    let groups: Vec<SecurityGroup> = network.network().security_groups(&[]).await.unwrap();
    let worker = groups
        .iter()
        .find(|group| group.name.ends_with("secgroup-worker"));
    let of = |family: &str| {
        let rules = worker.unwrap().rules.iter();
        rules
            .filter(|rule| rule.ethertype == family && rule.direction == "ingress")
            .count()
    };
    // Besides the rules of the spec, which are for IPv4.
    assert_eq!(of("IPv4"), of("IPv6") + 4);
    all_gone(&world, &["cp-0"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_ipv6_alone_has_its_endpoint_at_the_load_balancer() {
    let world = World::start().await;
    let six = json!([{"cidr": "fd00:6::/64", "ipv6RAMode": "slaac", "ipv6AddressMode": "slaac"}]);
    world.cluster(json!({"managedSubnets": six})).await;
    let cluster = world.cluster_ready().await;
    let found = subnets(&world).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].name, "k8s-clusterapi-cluster-default-demo");
    assert_eq!(
        raw_subnet(&world, &found[0].id).await["ipv6_ra_mode"],
        "slaac"
    );
    let host = cluster.spec.control_plane_endpoint.unwrap().host.unwrap();
    assert!(host.starts_with("fd00:6::"), "{host}");
    assert_eq!(world.count("floatingip"), 0);
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    assert_eq!(families(&world, "cp-0").await, [6]);
    assert!(member(&world).await.contains("fd00:6:"));
    all_gone(&world, &["cp-0"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_is_asked_for_before_an_address_of_ipv6_is_refused_by_its_field() {
    let world = World::start().await;
    let six = json!([{"cidr": "fd00:6::/64"}]);
    let api_server = json!({"managedLoadBalancer": {}, "enableFloatingIP": true});
    world
        .cluster(json!({"managedSubnets": six, "apiServer": api_server}))
        .await;
    let condition = world
        .cluster_says(
            "APIEndpointReady",
            "apiServer.enableFloatingIP: the API server has an address of IPv6",
        )
        .await;
    assert_eq!(condition.reason, "InvalidClusterSpec");
    assert_eq!(world.count("loadbalancer"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cluster_of_ipv6_without_load_balancer_and_address_says_that_nothing_leads_to_it() {
    let world = World::start().await;
    let spec = json!({"managedSubnets": [{"cidr": "fd00:6::/64"}], "apiServer": {}});
    world.cluster(spec).await;
    world
        .cluster_says("APIEndpointReady", "Nothing leads to the API server")
        .await;
}

/// A network of others with a subnet of each family, and a router to the external network.
async fn existing(world: &World) -> (String, [String; 2]) {
    let post = async |path: &str, body: Value| {
        let answer = world.request(Service::Network, "POST", path, body).await;
        let (_, item) = answer.as_object().unwrap().iter().next().unwrap();
        item["id"].as_str().unwrap().to_owned()
    };
    let network = post("/networks", json!({"network": {"name": "theirs"}})).await;
    let four = json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.7.0.0/24"}});
    let six = json!({"subnet": {"network_id": network, "ip_version": 6, "cidr": "fd00:7::/64",
        "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}});
    let four = post("/subnets", four).await;
    let six = post("/subnets", six).await;
    (network, [four, six])
}

#[tokio::test(start_paused = true)]
async fn in_an_existing_network_the_primary_subnet_chooses_the_family_of_the_api() {
    for (primary, prefix) in [(0, "10.7.0."), (1, "fd00:7:")] {
        let world = World::start().await;
        let (network, ids) = existing(&world).await;
        let subnets: Vec<_> = ids.iter().map(|id| json!({"id": id})).collect();
        let api_server = json!({"managedLoadBalancer": {}, "enableFloatingIP": false});
        let spec = json!({"managedSubnets": [], "network": {"id": network}, "subnets": subnets,
            "primarySubnet": {"id": ids[primary]}, "apiServer": api_server});
        world.cluster(spec).await;
        let cluster = world.cluster_ready().await;
        let host = cluster.spec.control_plane_endpoint.unwrap().host.unwrap();
        assert!(host.starts_with(prefix), "{host}");
        world.machine("cp-0", true, json!({})).await;
        let machine: OpenStackMachine = world.machine_ready("cp-0").await;
        assert!(machine.spec.provider_id.is_some());
        assert!(member(&world).await.contains(prefix));
        world.delete_machine("cp-0").await;
        world.delete::<OpenStackCluster>("demo").await;
        world.gone::<OpenStackCluster>("demo").await;
        assert_eq!(world.count("subnet"), 2);
    }
}
