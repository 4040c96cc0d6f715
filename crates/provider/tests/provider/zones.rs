//! Ports of machines on the subnets of their failure domains.

use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::k8s_openapi::api::core::v1::Secret;
use openstack::Service;
use openstack::network::Port;
use provider::machine::failed::RETRY_ZONES_ANNOTATION;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, killed_at};
use crate::world::{World, eventually};

const RANGES: [&str; 4] = ["10.7.0.0/24", "10.7.1.0/24", "10.7.2.0/24", "10.7.3.0/24"];

pub(crate) async fn post(world: &World, path: &str, body: Value) -> String {
    let answer = world.request(Service::Network, "POST", path, body).await;
    let (_, item) = answer.as_object().unwrap().iter().next().unwrap();
    item["id"].as_str().unwrap().to_owned()
}

/// A network of others with four subnets, named by their third number.
pub(crate) async fn network(world: &World) -> String {
    let network = post(world, "/networks", json!({"network": {"name": "theirs"}})).await;
    for (index, range) in RANGES.iter().enumerate() {
        let subnet = json!({"network_id": network, "ip_version": 4, "cidr": range, "name": format!("s{index}")});
        post(world, "/subnets", json!({"subnet": subnet})).await;
    }
    network
}

pub(crate) fn named(name: &str) -> Value {
    json!({"filter": {"name": name}})
}

/// A cluster with the subnet s0, and with s1 and s2 for two zones.
async fn cluster(world: &World, subnets: Value) {
    let spec = json!({"managedSubnets": [], "network": named("theirs"), "subnets": subnets,
        "apiServer": {"managedLoadBalancer": {"subnets": [named("s0")]}, "enableFloatingIP": false},
        "failureDomainSubnets": [
            {"failureDomain": "az1", "subnets": [named("s1")]},
            {"failureDomain": "az2", "subnets": [named("s2")]}]});
    world.cluster(spec).await;
}

/// Creates a machine in a failure domain.
pub(crate) async fn machine(
    world: &World,
    name: &str,
    control_plane: bool,
    domain: Option<&str>,
    notes: Value,
) {
    let paused = |paused: bool| json!({"spec": {"paused": paused}});
    world.merge::<Cluster>("demo", paused(true)).await;
    world
        .machine(name, control_plane, json!({"tags": ["t"], "trunk": true}))
        .await;
    let spec = json!({"spec": {"failureDomain": domain}});
    world.merge::<Machine>(name, spec).await;
    let notes = json!({"metadata": {"annotations": notes}});
    world.merge::<OpenStackMachine>(name, notes).await;
    world.merge::<Cluster>("demo", paused(false)).await;
}

async fn ports(world: &World, name: &str) -> Vec<Port> {
    let all = world.session().await.network().ports(&[]).await.unwrap();
    let of = |port: &Port| port.name.starts_with(name);
    all.into_iter().filter(of).collect()
}

/// The addresses of a machine.
async fn addresses(world: &World, name: &str) -> Vec<String> {
    let found = ports(world, name).await;
    let ips = found.iter().flat_map(|port| &port.fixed_ips);
    ips.map(|ip| ip.ip_address.clone()).collect()
}

async fn is_on(world: &World, name: &str, prefix: &str) {
    let found = addresses(world, name).await;
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with(prefix), "{found:?}");
}

async fn has_members(world: &World, prefixes: &[&str]) {
    eventually("members", || async {
        let session = world.session().await;
        let balancers = session.load_balancer();
        let project = session.project_id().await.unwrap();
        let pools = balancers.pools(&project).await.unwrap();
        let members = balancers.members(&pools[0].id).await.unwrap();
        let subnets = session.network().subnets(&[]).await.unwrap();
        let mut found: Vec<_> = members
            .iter()
            .map(|member| member.address.clone())
            .collect();
        found.sort();
        for member in &members {
            let subnet = subnets
                .iter()
                .find(|it| member.subnet_id.as_deref() == Some(it.id.as_str()));
            let prefix = subnet.unwrap().cidr.trim_end_matches("0/24");
            assert!(member.address.starts_with(prefix), "{member:?}");
        }
        let fits = found.len() == prefixes.len()
            && found
                .iter()
                .zip(prefixes)
                .all(|(address, prefix)| address.starts_with(prefix));
        fits.then_some(()).ok_or(format!("{found:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn machines_have_their_ports_on_the_subnets_of_their_failure_domains() {
    let world = World::start().await;
    network(&world).await;
    cluster(&world, json!([named("s0")])).await;
    world.cluster_ready().await;
    machine(&world, "cp-0", true, Some("az1"), json!({})).await;
    machine(&world, "cp-1", true, Some("az2"), json!({})).await;
    machine(&world, "cp-2", true, Some("nova"), json!({})).await;
    machine(&world, "md-0", false, Some("az2"), json!({})).await;
    for (name, prefix) in [
        ("cp-0", "10.7.1."),
        ("cp-1", "10.7.2."),
        ("cp-2", "10.7.0."),
        ("md-0", "10.7.2."),
    ] {
        world.machine_ready(name).await;
        is_on(&world, name, prefix).await;
    }
    // Each member is on the subnet of its address.
    has_members(&world, &["10.7.0.", "10.7.1.", "10.7.2."]).await;
    let session = world.session().await;
    let groups = session.network().security_groups(&[]).await.unwrap();
    let workers = groups
        .iter()
        .find(|group| group.name.ends_with("secgroup-worker"));
    let rules = workers.unwrap().rules.iter();
    let mut ranges: Vec<_> = rules
        .filter(|rule| {
            rule.port_range_min == Some(30000) && rule.protocol.as_deref() == Some("udp")
        })
        .filter_map(|rule| rule.remote_ip_prefix.as_deref())
        .collect();
    ranges.sort_unstable();
    assert_eq!(ranges, &RANGES[..3]);

    // What changes is for new machines.
    let moved = json!([{"failureDomain": "az1", "subnets": [named("s3")]},
        {"failureDomain": "az2", "subnets": [named("s2")]}]);
    let before = ports(&world, "cp-0").await;
    let change = json!({"spec": {"failureDomainSubnets": moved}});
    world.merge::<OpenStackCluster>("demo", change).await;
    machine(&world, "md-1", false, Some("az1"), json!({})).await;
    world.machine_ready("md-1").await;
    is_on(&world, "md-1", "10.7.3.").await;
    assert_eq!(ports(&world, "cp-0").await, before);
    for name in ["cp-0", "cp-1", "cp-2", "md-0", "md-1"] {
        world.delete_machine(name).await;
    }
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!((world.count("subnet"), world.count("loadbalancer")), (4, 0));
}

#[tokio::test(start_paused = true)]
async fn allowed_cidrs_contain_the_subnets_of_failure_domains() {
    let world = World::start().await;
    network(&world).await;
    cluster(&world, json!([named("s0")])).await;
    let cidrs = json!({"allowedCIDRs": ["192.0.2.0/24"]});
    let change = json!({"spec": {"apiServer": {"managedLoadBalancer": cidrs}}});
    world.merge::<OpenStackCluster>("demo", change).await;
    eventually("the allowed CIDRs", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        let mut found: Vec<_> = listeners.iter().flat_map(|it| &it.allowed_cidrs).collect();
        found.sort();
        let expected = [&RANGES[..3], &["192.0.2.0/24"]].concat();
        (found == expected)
            .then_some(())
            .ok_or(format!("{found:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failure_domain_without_subnets_is_refused_unless_the_cluster_has_some_for_it() {
    let world = World::start().await;
    network(&world).await;
    cluster(&world, json!([])).await;
    world.cluster_ready().await;
    machine(&world, "md-0", false, Some("nova"), json!({})).await;
    let words = "has no subnets in failureDomainSubnets of the OpenStackCluster";
    let condition = world.machine_says("md-0", "InstanceReady", words).await;
    assert_eq!(condition.reason, "InvalidMachineSpec");
    assert_eq!(ports(&world, "md-0").await, []);
    let wrong = json!({"spec": {"failureDomainSubnets": [
        {"failureDomain": "nova", "subnets": [named("none")]}]}});
    world.merge::<OpenStackCluster>("demo", wrong).await;
    let words = "failureDomainSubnets[0]: subnets[0]: subnet with name `none` does not exist";
    world.cluster_says("NetworkReady", words).await;
    let right = json!({"spec": {"failureDomainSubnets": [
        {"failureDomain": "nova", "subnets": [named("s3")]}, {"failureDomain": "az9", "subnets": [named("s1")]}]}});
    world.merge::<OpenStackCluster>("demo", right).await;
    world.machine_ready("md-0").await;
    is_on(&world, "md-0", "10.7.3.").await;
    let words = "az9 is no availability zone of Nova";
    world.cluster_says("Ready", words).await;
}

#[tokio::test(start_paused = true)]
async fn a_server_that_follows_in_another_zone_has_its_port_there() {
    let world = World::start().await;
    network(&world).await;
    cluster(&world, json!([named("s0")])).await;
    world.cluster_ready().await;
    let message = "No valid host was found. There are not enough hosts available.";
    let fault = json!({"name_prefix": "md-0", "message": message, "count": 1});
    world.server_fault(fault).await;
    let lists = json!({RETRY_ZONES_ANNOTATION: "az2"});
    machine(&world, "md-0", false, Some("az1"), lists).await;
    world
        .machine_says("md-0", "InstanceReady", "in zone az2")
        .await;
    is_on(&world, "md-0", "10.7.1.").await;
    world.machine_ready("md-0").await;
    is_on(&world, "md-0", "10.7.2.").await;
    let found = ports(&world, "md-0").await;
    assert!(
        found[0].tags.contains(&"t".to_owned()),
        "{:?}",
        found[0].tags
    );
    world.delete_machine("md-0").await;
    assert_eq!(ports(&world, "md-0").await, []);
}

/// A machine whose first server fails, and whose second one is in another zone.
struct Moving;

impl Life for Moving {
    const STAGES: &'static [&'static str] = &["created", "deleted"];

    async fn begin(world: &World, stage: &str) {
        match stage {
            "created" => {
                let message = "No valid host was found. There are not enough hosts available.";
                let fault = json!({"name_prefix": "md-0", "message": message, "count": 1});
                world.server_fault(fault).await;
                let lists = json!({RETRY_ZONES_ANNOTATION: "az2"});
                machine(world, "md-0", false, Some("az1"), lists).await;
            }
            _ => world.delete::<OpenStackMachine>("md-0").await,
        }
    }

    async fn end(world: &World, stage: &str) {
        match stage {
            "created" => {
                world.machine_ready("md-0").await;
                is_on(world, "md-0", "10.7.2.").await;
            }
            _ => world.gone::<OpenStackMachine>("md-0").await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_a_machine_that_moves_to_another_zone_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    network(&world).await;
    world.run();
    cluster(&world, json!([named("s0")])).await;
    world.cluster_ready().await;
    world.before = world.cloud.resources();
    let mut expected = BTreeMap::new();
    for nth in 1.. {
        let look = |world: &World, stage| {
            let there = world.cloud.resources();
            let known = expected.entry(stage).or_insert_with(|| there.clone());
            assert_eq!(there, *known, "{stage}, killed at write {nth}");
        };
        let was_cut = killed_at::<Moving>(&mut world, nth, look).await;
        assert_eq!(
            world.left_over(),
            BTreeMap::default(),
            "killed at write {nth}"
        );
        world.delete::<Machine>("md-0").await;
        world.delete::<Secret>("md-0").await;
        if !was_cut {
            assert!(nth > 6, "only {nth} writes");
            break;
        }
        world.run();
    }
}
