//! Subnets out of subnet pools, and a second family for a cluster that exists.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Secret;
use openstack::Service;
use openstack::network::{Port, SecurityGroupRule, Subnet};
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, each_fails_once, failures, killed_at};
use crate::world::{MINUTE, World, eventually};

async fn post(world: &World, path: &str, body: Value) -> Value {
    let answer = world.request(Service::Network, "POST", path, body).await;
    let (_, item) = answer.as_object().unwrap().iter().next().unwrap();
    item.clone()
}

/// A subnet pool of the project with this name and prefix.
async fn pool(world: &World, name: &str, prefix: &str, length: u8) -> String {
    let pool = json!({"name": name, "prefixes": [prefix], "default_prefixlen": length});
    let created = post(world, "/subnetpools", json!({"subnetpool": pool})).await;
    created["id"].as_str().unwrap().to_owned()
}

/// Pools of both families, which the test leaves behind.
async fn pools(world: &mut World) {
    pool(world, "four", "10.20.0.0/16", 24).await;
    pool(world, "six", "fd00:20::/56", 64).await;
    world.before = world.cloud.resources();
}

fn four() -> Value {
    json!({"subnetPool": {"filter": {"name": "four"}}, "dnsNameservers": ["8.8.8.8"]})
}

fn six() -> Value {
    json!({"subnetPool": {"filter": {"name": "six"}}, "ipVersion": 6})
}

/// The subnets of the cluster, the first one first.
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

/// The rules of the workers' group.
async fn rules(world: &World) -> Vec<SecurityGroupRule> {
    let session = world.session().await;
    let groups = session.network().security_groups(&[]).await.unwrap();
    let workers = groups
        .into_iter()
        .find(|group| group.name.ends_with("secgroup-worker"));
    workers.unwrap().rules
}

/// The ranges from which node ports are reached.
async fn ranges(world: &World) -> Vec<String> {
    let mut all: Vec<_> = rules(world)
        .await
        .into_iter()
        .filter(|rule| {
            rule.port_range_min == Some(30000) && rule.protocol.as_deref() == Some("tcp")
        })
        .filter_map(|rule| rule.remote_ip_prefix)
        .collect();
    all.sort();
    all
}

async fn ports(world: &World, name: &str) -> Vec<Port> {
    let all = world.session().await.network().ports(&[]).await.unwrap();
    let of = |port: &Port| port.name.starts_with(name);
    all.into_iter().filter(of).collect()
}

/// Whether the port of a machine has an address of IPv4, and one of IPv6.
async fn families(world: &World, name: &str) -> (bool, bool) {
    let found = ports(world, name).await;
    let ips = found.iter().flat_map(|port| &port.fixed_ips);
    let (six, four): (Vec<_>, Vec<_>) = ips.partition(|ip| ip.ip_address.contains(':'));
    (!four.is_empty(), !six.is_empty())
}

async fn change(world: &World, spec: Value) {
    let change = json!({"spec": spec});
    world.merge::<OpenStackCluster>("demo", change).await;
}

/// Waits until the status has subnets with these ranges.
async fn has(world: &World, cidrs: &[&str]) -> OpenStackCluster {
    eventually(&format!("subnets {cidrs:?}"), || async {
        let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let status = object.status.clone().unwrap_or_default();
        let is_ready = api::conditions::is_true(&status.conditions, "Ready");
        let known = status.network.map(|network| network.subnets);
        let known = known.unwrap_or_default().into_iter();
        let known: Vec<_> = known.map(|subnet| subnet.cidr).collect();
        match known == cidrs && is_ready {
            true => Ok(object),
            false => Err(format!("{known:?}")),
        }
    })
    .await
}

async fn nothing_is_left(world: &World) {
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), BTreeMap::default());
}

#[tokio::test(start_paused = true)]
async fn subnets_get_their_ranges_out_of_pools_and_rules_are_for_these() {
    let mut world = World::open(CloudOptions::default()).await;
    pools(&mut world).await;
    world.run();
    world
        .cluster(json!({"managedSubnets": [four(), six()]}))
        .await;
    let cluster = has(&world, &["10.20.0.0/24", "fd00:20::/64"]).await;
    let found = subnets(&world).await;
    assert!(found.iter().all(|subnet| subnet.subnetpool_id.is_some()));
    assert_eq!(found[0].dns_nameservers, ["8.8.8.8"]);
    assert_eq!(ranges(&world).await, ["10.20.0.0/24", "fd00:20::/64"]);
    let balancer = cluster.status.unwrap().api_server_managed_load_balancer;
    let address = balancer.unwrap().internal_ip.unwrap();
    assert!(address.starts_with("10.20.0."), "{address}");
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    assert_eq!(families(&world, "cp-0").await, (true, true));

    // A pool that is out of sight afterwards is not missed, and nothing is written any more.
    let before = world.writes();
    for _ in 0..3 {
        world.poke::<OpenStackCluster>("demo").await;
        tokio::time::sleep(MINUTE).await;
    }
    assert_eq!(world.writes(), before);
    world.delete_machine("cp-0").await;
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_certain_range_and_a_certain_length_are_taken_out_of_a_pool() {
    let mut world = World::open(CloudOptions::default()).await;
    pools(&mut world).await;
    world.run();
    let mut certain = four();
    certain["cidr"] = json!("10.20.7.0/25");
    certain["allocationPools"] = json!([{"start": "10.20.7.10", "end": "10.20.7.99"}]);
    let mut small = six();
    small["prefixLength"] = json!(96);
    world
        .cluster(json!({"managedSubnets": [certain, small]}))
        .await;
    has(&world, &["10.20.7.0/25", "fd00:20::/96"]).await;
    assert_eq!(ranges(&world).await, ["10.20.7.0/25", "fd00:20::/96"]);
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_cannot_be_used_is_named_and_nothing_is_created_until_it_can() {
    let world = World::start().await;
    pool(&world, "six", "fd00:20::/56", 64).await;
    world.cluster(json!({"managedSubnets": [four()]})).await;
    let words = "managedSubnets[0].subnetPool: subnet pool with name `four` does not exist";
    let condition = world.cluster_says("NetworkReady", words).await;
    assert_eq!(condition.reason, "SubnetCreateFailed");
    assert!(
        condition.message.contains("there are: six"),
        "{}",
        condition.message
    );
    assert_eq!(world.count("network"), 0);
    // A pool of the name, and of the other family.
    let wrong = pool(&world, "four", "fd00:30::/56", 64).await;
    let words = "is one of IPv6, and the subnet one of IPv4";
    world.cluster_says("NetworkReady", words).await;
    assert_eq!(world.count("network"), 0);
    let path = format!("/subnetpools/{wrong}");
    world
        .request(Service::Network, "DELETE", &path, json!({}))
        .await;
    pool(&world, "four", "10.20.0.0/16", 24).await;
    has(&world, &["10.20.0.0/24"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_of_another_project_is_used_only_if_it_is_shared() {
    let world = World::start().await;
    let theirs = |shared: bool| {
        json!({"subnetpool": {"name": "four", "prefixes": ["10.40.0.0/16"], "shared": shared,
            "default_prefixlen": 24}})
    };
    world
        .request_of(
            "admin",
            Service::Network,
            "POST",
            "/subnetpools",
            theirs(false),
        )
        .await;
    world.cluster(json!({"managedSubnets": [four()]})).await;
    let words = "does not exist, or the project cannot see it; there are: none";
    world.cluster_says("NetworkReady", words).await;
    world
        .request_of(
            "admin",
            Service::Network,
            "POST",
            "/subnetpools",
            theirs(true),
        )
        .await;
    has(&world, &["10.40.0.0/24"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_without_room_is_told_with_what_to_do_and_tried_again() {
    let world = World::start().await;
    let id = pool(&world, "four", "10.20.0.0/24", 24).await;
    let other = post(&world, "/networks", json!({"network": {"name": "other"}})).await;
    let taken = json!({"subnet": {"network_id": other["id"], "ip_version": 4, "subnetpool_id": id,
        "prefixlen": 28}});
    post(&world, "/subnets", taken).await;
    world.cluster(json!({"managedSubnets": [four()]})).await;
    let words = "managedSubnets[0].subnetPool: the subnet pool has no room left for the subnet";
    let condition = world.cluster_says("NetworkReady", words).await;
    assert_eq!(condition.reason, "SubnetCreateFailed");
    let more = json!({"subnetpool": {"prefixes": ["10.20.0.0/24", "10.21.0.0/24"]}});
    let path = format!("/subnetpools/{id}");
    world.request(Service::Network, "PUT", &path, more).await;
    has(&world, &["10.21.0.0/24"]).await;
    assert_eq!(ranges(&world).await, ["10.21.0.0/24"]);
}

#[tokio::test(start_paused = true)]
async fn a_subnet_that_was_deleted_by_hand_comes_back_out_of_its_pool_with_new_rules() {
    let mut world = World::open(CloudOptions::default()).await;
    pools(&mut world).await;
    world.run();
    let without = json!({"managedSubnets": [four()], "apiServer": {}});
    world.cluster(without).await;
    let cluster = has(&world, &["10.20.0.0/24"]).await;
    let status = cluster.status.unwrap();
    let subnet = status.network.unwrap().subnets[0].id.clone();
    let other = post(&world, "/networks", json!({"network": {"name": "other"}})).await;
    let router = status.router.unwrap().id;
    let path = format!("/routers/{router}/remove_router_interface");
    world.kill().await;
    world
        .request(Service::Network, "PUT", &path, json!({"subnet_id": subnet}))
        .await;
    let path = format!("/subnets/{subnet}");
    world
        .request(Service::Network, "DELETE", &path, json!({}))
        .await;
    // Somebody else has got the range meanwhile.
    let taken = json!({"subnet": {"network_id": other["id"], "ip_version": 4, "cidr": "10.20.0.0/24",
        "subnetpool_id": pool_of(&world).await}});
    post(&world, "/subnets", taken).await;
    world.run();
    has(&world, &["10.20.1.0/24"]).await;
    eventually("rules for the new range", || async {
        let known = ranges(&world).await;
        match known == ["10.20.1.0/24"] {
            true => Ok(()),
            false => Err(format!("{known:?}")),
        }
    })
    .await;
}

async fn pool_of(world: &World) -> String {
    let session = world.session().await;
    let all = session.network().subnet_pools(&[("name", "four")]).await;
    all.unwrap()[0].id.clone()
}

#[tokio::test(start_paused = true)]
async fn a_cluster_that_exists_gets_a_second_family_and_its_machines_keep_their_ports() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    let before = ports(&world, "cp-0").await;
    let host = |cluster: OpenStackCluster| cluster.spec.control_plane_endpoint.unwrap().host;
    let endpoint = host(world.cluster_ready().await);
    let both =
        json!([{"cidr": "10.6.0.0/24", "dnsNameservers": ["8.8.8.8"]}, {"cidr": "fd00:6::/64"}]);
    change(&world, json!({"managedSubnets": both})).await;
    let cluster = has(&world, &["10.6.0.0/24", "fd00:6::/64"]).await;
    assert_eq!(host(cluster), endpoint);
    let known = rules(&world).await;
    let of = |family: &str| {
        let rules = known.iter();
        rules
            .filter(|rule| rule.ethertype == family && rule.direction == "ingress")
            .count()
    };
    // Besides the rules of the spec, which are for IPv4.
    assert_eq!(of("IPv4"), of("IPv6") + 4);
    assert_eq!(ports(&world, "cp-0").await, before);

    world.machine("md-0", false, json!({})).await;
    world.machine_ready("md-0").await;
    assert_eq!(families(&world, "md-0").await, (true, true));
    assert_eq!(families(&world, "cp-0").await, (true, false));
    for name in ["cp-0", "md-0"] {
        world.delete_machine(name).await;
    }
    nothing_is_left(&world).await;
}

#[tokio::test(start_paused = true)]
async fn subnets_that_exist_get_a_second_one_and_new_machines_have_addresses_in_both() {
    let world = World::start().await;
    let network = post(&world, "/networks", json!({"network": {"name": "theirs"}})).await;
    let subnet = async |version: u8, cidr: &str| {
        let subnet = json!({"network_id": network["id"], "ip_version": version, "cidr": cidr});
        post(&world, "/subnets", json!({"subnet": subnet})).await["id"].clone()
    };
    let (first, second) = (
        subnet(4, "10.7.0.0/24").await,
        subnet(6, "fd00:7::/64").await,
    );
    let spec = json!({"managedSubnets": [], "network": {"id": network["id"]}, "subnets": [{"id": first}],
        "apiServer": {"managedLoadBalancer": {}, "enableFloatingIP": false}});
    world.cluster(spec).await;
    has(&world, &["10.7.0.0/24"]).await;
    world.machine("md-0", false, json!({})).await;
    world.machine_ready("md-0").await;
    change(&world, json!({"subnets": [{"id": first}, {"id": second}]})).await;
    has(&world, &["10.7.0.0/24", "fd00:7::/64"]).await;
    assert_eq!(ranges(&world).await, ["10.7.0.0/24", "fd00:7::/64"]);
    world.machine("md-1", false, json!({})).await;
    world.machine_ready("md-1").await;
    assert_eq!(families(&world, "md-0").await, (true, false));
    assert_eq!(families(&world, "md-1").await, (true, true));
}

/// A cluster out of a pool that gets a second family, and then a machine.
struct Growing;

impl Life for Growing {
    const STAGES: &'static [&'static str] = &["created", "grown", "joined", "deleted"];

    async fn begin(world: &World, stage: &str) {
        match stage {
            "created" => {
                world
                    .cluster(json!({"managedSubnets": [four()], "tags": ["t"]}))
                    .await
            }
            "grown" => change(world, json!({"managedSubnets": [four(), six()]})).await,
            "joined" => world.machine("cp-0", true, json!({})).await,
            _ => {
                world.delete::<OpenStackMachine>("cp-0").await;
                world.delete::<OpenStackCluster>("demo").await;
            }
        }
    }

    async fn end(world: &World, stage: &str) {
        match stage {
            "created" => drop(world.cluster_ready().await),
            "grown" => {
                eventually("both families", || async {
                    let object = world.cluster_ready().await;
                    let network = object.status.and_then(|status| status.network);
                    let count = network.map_or(0, |network| network.subnets.len());
                    let both = rules(world)
                        .await
                        .iter()
                        .any(|rule| rule.ethertype == "IPv6" && rule.remote_ip_prefix.is_some());
                    (count == 2 && both).then_some(()).ok_or(count.to_string())
                })
                .await;
            }
            "joined" => drop(world.machine_ready("cp-0").await),
            _ => world.gone::<OpenStackCluster>("demo").await,
        }
    }
}

async fn clear(world: &World) {
    world.delete::<Machine>("cp-0").await;
    world.delete::<Secret>("cp-0").await;
    world.delete::<Cluster>("demo").await;
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_a_cluster_out_of_pools_that_grows_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    pools(&mut world).await;
    let mut expected = BTreeMap::new();
    for nth in 1.. {
        world.run();
        let look = |world: &World, stage| {
            let there = world.cloud.resources();
            let known = expected.entry(stage).or_insert_with(|| there.clone());
            assert_eq!(there, *known, "{stage}, killed at write {nth}");
        };
        let was_cut = killed_at::<Growing>(&mut world, nth, look).await;
        assert_eq!(
            world.left_over(),
            BTreeMap::default(),
            "killed at write {nth}"
        );
        clear(&world).await;
        if !was_cut {
            assert!(nth > 25, "only {nth} writes");
            break;
        }
    }
}

/// The writes about subnets and what depends on them.
const WRITES: [(&str, &str, &str); 5] = [
    ("network", "POST", "/v2.0/networks"),
    ("network", "POST", "/v2.0/subnets"),
    ("network", "POST", "/v2.0/security-group-rules"),
    ("network", "PUT", "/v2.0/*"),
    ("network", "POST", "/v2.0/ports"),
];

#[tokio::test(start_paused = true)]
async fn whatever_write_fails_a_cluster_out_of_pools_that_grows_ends_the_same() {
    let mut expected = BTreeMap::new();
    for failure in failures() {
        let mut world = World::open(CloudOptions::default()).await;
        pools(&mut world).await;
        world.run();
        for stage in Growing::STAGES {
            each_fails_once(&world, &WRITES, &failure).await;
            Growing::begin(&world, stage).await;
            Growing::end(&world, stage).await;
            world.mend().await;
            let there = world.cloud.resources();
            let known = expected.entry(*stage).or_insert_with(|| there.clone());
            assert_eq!(there, *known, "{stage}, with {failure}");
        }
        assert_eq!(world.left_over(), BTreeMap::default(), "{failure}");
    }
}
