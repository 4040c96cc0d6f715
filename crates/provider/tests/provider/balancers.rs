//! Load balancers of availability zones, with a DNS name as the endpoint.

use std::collections::{BTreeMap, BTreeSet};

use api::infra::v1beta2::{LoadBalancerStatus, OpenStackCluster};
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, each_fails_once, failures, killed_at};
use crate::world::{World, eventually, listed};
use crate::zones::{machine, named, network, post};

/// Octavia's zones, made by an administrator.
pub(crate) async fn octavia(world: &World, zones: &[&str]) {
    let make = async |path: &str, body: Value| {
        world
            .request_of("admin", Service::LoadBalancer, "POST", path, body)
            .await
    };
    let profile = json!({"availability_zone_profile": {"name": "p", "provider_name": "octavia",
        "availability_zone_data": json!({"compute_zone": "nova"}).to_string()}});
    let profile = make("/lbaas/availabilityzoneprofiles", profile).await;
    let id = profile["availability_zone_profile"]["id"].clone();
    for zone in zones {
        let zone = json!({"availability_zone": {"name": zone, "availability_zone_profile_id": id}});
        make("/lbaas/availabilityzones", zone).await;
    }
}

/// A network of others with a router to the outside.
async fn routed(world: &World) {
    network(world).await;
    let outside = world
        .request(
            Service::Network,
            "GET",
            "/networks?router:external=true",
            Value::Null,
        )
        .await;
    let outside = &outside["networks"][0]["id"];
    let router = json!({"router": {"name": "r", "external_gateway_info": {"network_id": outside}}});
    let router = post(world, "/routers", router).await;
    let subnets = world
        .request(Service::Network, "GET", "/subnets", Value::Null)
        .await;
    for name in ["s0", "s1", "s2"] {
        let all = subnets["subnets"].as_array().unwrap();
        let subnet = all.iter().find(|subnet| subnet["name"] == name).unwrap();
        let interface = json!({"subnet_id": subnet["id"]});
        let path = format!("/routers/{router}/add_router_interface");
        world
            .request(Service::Network, "PUT", &path, interface)
            .await;
    }
}

fn balancer(zones: &[(&str, &str)]) -> Value {
    let zones: Vec<_> = zones
        .iter()
        .map(|(zone, subnet)| json!({"availabilityZone": zone, "subnet": named(subnet)}))
        .collect();
    json!({"managedLoadBalancer": {"provider": "octavia", "availabilityZoneSubnets": zones}})
}

const BOTH: [(&str, &str); 2] = [("az1", "s1"), ("az2", "s2")];

async fn cluster(world: &World, zones: &[(&str, &str)]) {
    let spec = json!({"managedSubnets": [], "network": named("theirs"), "subnets": [named("s0")],
        "controlPlaneEndpoint": {"host": "api.example.com", "port": 6443},
        "apiServer": balancer(zones),
        "failureDomainSubnets": [
            {"failureDomain": "az1", "subnets": [named("s1")]},
            {"failureDomain": "az2", "subnets": [named("s2")]}]});
    world.cluster(spec).await;
}

/// Waits until the cluster is ready with load balancers in these zones.
async fn ready(world: &World, zones: &[&str]) -> Vec<LoadBalancerStatus> {
    eventually("the load balancers", || async {
        let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let status = object.status.clone().unwrap_or_default();
        let found = status.api_server_load_balancers;
        let names: Vec<_> = found
            .iter()
            .filter_map(|it| it.availability_zone.as_deref())
            .collect();
        let is_whole = found.iter().all(|it| it.ip.is_some());
        let is_ready = api::conditions::is_true(&status.conditions, "Ready");
        let generation = object.metadata.generation;
        let condition = api::conditions::find(&status.conditions, "Ready");
        let is_new = condition.is_some_and(|it| it.observed_generation == generation);
        if names == zones && is_whole && is_ready && is_new {
            return Ok(found);
        }
        Err(format!("{names:?} {}", listed(&status.conditions)))
    })
    .await
}

/// The beginnings of the addresses of the members of each load balancer.
async fn members(world: &World) -> BTreeMap<String, BTreeSet<String>> {
    let session = world.session().await;
    let octavia = session.load_balancer();
    let project = session.project_id().await.unwrap();
    let pools = octavia.pools(&project).await.unwrap();
    let mut found = BTreeMap::new();
    for balancer in octavia.load_balancers(&project).await.unwrap() {
        let of = |id: &str| id == balancer.id;
        let pool = pools
            .iter()
            .find(|pool| pool.loadbalancers.iter().any(|it| of(&it.id)));
        let members = match pool {
            Some(pool) => octavia.members(&pool.id).await.unwrap(),
            None => Vec::new(),
        };
        let prefix = |address: &str| address.rsplit_once('.').unwrap().0.to_owned();
        let zone = balancer.availability_zone.clone().unwrap_or_default();
        found.insert(zone, members.iter().map(|it| prefix(&it.address)).collect());
    }
    found
}

async fn lead_to(world: &World, expected: &[(&str, &[&str])]) {
    let expected: BTreeMap<_, BTreeSet<_>> = expected
        .iter()
        .map(|(zone, all)| {
            (
                (*zone).to_owned(),
                all.iter().map(|it| (*it).to_owned()).collect(),
            )
        })
        .collect();
    eventually("members", || async {
        let found = members(world).await;
        (found == expected)
            .then_some(())
            .ok_or(format!("{found:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn each_zone_has_a_load_balancer_that_leads_to_its_machines() {
    let world = World::start().await;
    octavia(&world, &["az1", "az2"]).await;
    routed(&world).await;
    let before = world.cloud.resources();
    let written = |world: &World| world.writes().values().sum::<u64>();
    let others = written(&world);
    cluster(&world, &BOTH).await;
    let found = ready(&world, &["az1", "az2"]).await;
    assert_eq!(
        found[0].name,
        "k8s-clusterapi-cluster-default-demo-az1-kubeapi"
    );
    let subnet = |it: &LoadBalancerStatus| {
        it.load_balancer_network.clone().unwrap().subnets[0]
            .name
            .clone()
    };
    assert_eq!([subnet(&found[0]), subnet(&found[1])], ["s1", "s2"]);
    assert_ne!(found[0].ip, found[1].ip);
    let object = world.cluster_ready().await;
    let endpoint = object.spec.control_plane_endpoint.unwrap();
    assert_eq!(endpoint.host.as_deref(), Some("api.example.com"));
    let writes = world.writes();
    let number = |write: &str| writes.get(write).copied().unwrap_or_default();
    assert_eq!(number("POST /v2.0/lbaas/loadbalancers"), 2, "{writes:?}");
    assert_eq!(number("POST /v2.0/floatingips"), 2, "{writes:?}");
    // Six for the groups, and three for each zone: listener, pool and monitor come with the load balancer, and the floating IP
    // gets its tags.
    assert_eq!(written(&world) - others, 6 + 2 * 3, "{writes:?}");
    // What one takes to nobody leads to all.
    machine(&world, "cp-0", true, Some("az1"), json!({})).await;
    world.machine_ready("cp-0").await;
    lead_to(&world, &[("az1", &["10.7.1"]), ("az2", &["10.7.1"])]).await;
    machine(&world, "cp-1", true, Some("az2"), json!({})).await;
    world.machine_ready("cp-1").await;
    lead_to(&world, &[("az1", &["10.7.1"]), ("az2", &["10.7.2"])]).await;
    let crossing = json!({"spec": {"apiServer": {"managedLoadBalancer": {"allowCrossAZLoadBalancerMembers": true}}}});
    world.merge::<OpenStackCluster>("demo", crossing).await;
    lead_to(
        &world,
        &[
            ("az1", &["10.7.1", "10.7.2"]),
            ("az2", &["10.7.1", "10.7.2"]),
        ],
    )
    .await;
    world.delete_machine("cp-1").await;
    lead_to(&world, &[("az1", &["10.7.1"]), ("az2", &["10.7.1"])]).await;
    world.delete_machine("cp-0").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn zones_that_octavia_lacks_are_refused_before_anything_is_created() {
    let world = World::start().await;
    routed(&world).await;
    let before = world.cloud.resources();
    cluster(&world, &BOTH).await;
    let words = "availabilityZoneSubnets[0].availabilityZone: Octavia has no availability zone az1";
    world.cluster_says("APIEndpointReady", words).await;
    assert_eq!(world.cloud.resources(), before);
    octavia(&world, &["az1", "az2"]).await;
    ready(&world, &["az1", "az2"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_with_one_load_balancer_gets_one_for_each_zone_beside_it() {
    let world = World::start().await;
    octavia(&world, &["az1", "az2"]).await;
    routed(&world).await;
    cluster(&world, &[]).await;
    let object = world.cluster_ready().await;
    let former = object
        .status
        .unwrap()
        .api_server_managed_load_balancer
        .unwrap();
    let zones = json!({"spec": {"apiServer": balancer(&BOTH)}});
    world.merge::<OpenStackCluster>("demo", zones).await;
    ready(&world, &["az1", "az2"]).await;
    let status = world.cluster_ready().await.status.unwrap();
    assert_eq!(
        status.api_server_managed_load_balancer.map(|it| it.ip),
        Some(former.ip)
    );
    machine(&world, "cp-0", true, Some("az1"), json!({})).await;
    let all: &[&str] = &["10.7.1"];
    lead_to(&world, &[("", all), ("az1", all), ("az2", all)]).await;
    // Nobody's name leads there any more.
    let path = format!("/lbaas/loadbalancers/{}?cascade=true", former.id);
    world
        .request(Service::LoadBalancer, "DELETE", &path, Value::Null)
        .await;
    eventually("the floating IP to go", || async {
        let left = (world.count("loadbalancer"), world.count("floatingip"));
        (left == (2, 2)).then_some(()).ok_or(format!("{left:?}"))
    })
    .await;
    let status = world.cluster_ready().await.status.unwrap();
    assert!(status.api_server_managed_load_balancer.is_none());
}

/// Two zones, of which one is removed.
struct Zones;

impl Life for Zones {
    const STAGES: &'static [&'static str] = &["created", "narrowed", "deleted"];

    async fn begin(world: &World, stage: &str) {
        match stage {
            "created" => cluster(world, &BOTH).await,
            "narrowed" => {
                let zones = json!({"spec": {"apiServer": balancer(&BOTH[..1])}});
                world.merge::<OpenStackCluster>("demo", zones).await;
            }
            _ => world.delete::<OpenStackCluster>("demo").await,
        }
    }

    async fn end(world: &World, stage: &str) {
        match stage {
            "created" => drop(ready(world, &["az1", "az2"]).await),
            "narrowed" => drop(ready(world, &["az1"]).await),
            _ => world.gone::<OpenStackCluster>("demo").await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_load_balancers_of_zones_end_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    octavia(&world, &["az1", "az2"]).await;
    routed(&world).await;
    world.run();
    world.before = world.cloud.resources();
    let mut expected = BTreeMap::new();
    for nth in 1.. {
        let look = |world: &World, stage| {
            let there = world.cloud.resources();
            let known = expected.entry(stage).or_insert_with(|| there.clone());
            assert_eq!(there, *known, "{stage}, killed at write {nth}");
        };
        let was_cut = killed_at::<Zones>(&mut world, nth, look).await;
        assert_eq!(
            world.left_over(),
            BTreeMap::default(),
            "killed at write {nth}"
        );
        world.delete::<api::core::v1beta2::Cluster>("demo").await;
        if !was_cut {
            assert!(nth > 8, "only {nth} writes");
            break;
        }
        world.run();
    }
}

#[tokio::test(start_paused = true)]
async fn each_failing_write_load_balancers_of_zones_end_the_same() {
    for failure in failures() {
        let mut world = World::open(CloudOptions::default()).await;
        octavia(&world, &["az1", "az2"]).await;
        routed(&world).await;
        world.before = world.cloud.resources();
        let writes = [
            ("load-balancer", "POST", "/v2.0/lbaas/loadbalancers"),
            ("load-balancer", "POST", "/v2.0/lbaas/listeners"),
            ("load-balancer", "DELETE", "/v2.0/lbaas/loadbalancers/{id}"),
            ("network", "POST", "/v2.0/floatingips"),
            ("network", "PUT", "/v2.0/floatingips/{id}"),
            ("network", "DELETE", "/v2.0/floatingips/{id}"),
        ];
        each_fails_once(&world, &writes, &failure).await;
        world.run();
        for stage in Zones::STAGES {
            Zones::begin(&world, stage).await;
            Zones::end(&world, stage).await;
            if *stage == "created" {
                let there = (world.count("loadbalancer"), world.count("floatingip"));
                assert_eq!(there, (2, 2), "{failure}");
            }
        }
        assert_eq!(world.left_over(), BTreeMap::default(), "{failure}");
    }
}
