//! The bastion of a cluster: created, changed, disabled and removed.

use std::collections::BTreeMap;

use api::core::v1beta2::Cluster;
use api::infra::v1beta2::OpenStackCluster;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, each_fails_once, failures, killed_at};
use crate::world::{MINUTE, World, eventually, listed};

/// The spec of the server of a bastion with this flavor.
fn server(flavor: &str) -> Value {
    json!({"flavor": {"filter": {"name": flavor}}, "image": {"filter": {"name": "ubuntu-24.04"}},
        "sshKeyName": ""})
}

fn bastion(flavor: &str) -> Value {
    json!({"enabled": true, "spec": server(flavor)})
}

/// Waits until the bastion of cluster `demo` is ready in the generation of its spec.
async fn ready(world: &World) -> OpenStackCluster {
    eventually("the bastion", || async {
        let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let status = object.status.clone().unwrap_or_default();
        let found = api::conditions::find(&status.conditions, "BastionReady");
        let generation = object.metadata.generation;
        let settled =
            found.is_some_and(|it| it.status == "True" && it.observed_generation == generation);
        match settled {
            true => Ok(object),
            false => Err(listed(&status.conditions)),
        }
    })
    .await
}

/// The flavors of the servers called `demo-bastion`.
async fn flavors(world: &World) -> Vec<String> {
    let path = "/servers/detail?name=^demo-bastion$";
    let found = world
        .request(Service::Compute, "GET", path, Value::Null)
        .await;
    let servers = found["servers"].as_array().unwrap().iter();
    servers
        .map(|server| {
            server["flavor"]["original_name"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect()
}

async fn change(world: &World, spec: Value) {
    world
        .merge::<OpenStackCluster>("demo", json!({"spec": spec}))
        .await;
}

/// Waits until nothing of a bastion is left, in the cloud and in the object.
async fn without(world: &World) -> OpenStackCluster {
    eventually("no bastion", || async {
        let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
        let status = object.status.clone().unwrap_or_default();
        let found = api::conditions::find(&status.conditions, "BastionReady");
        let gone = found.is_none()
            && status.bastion.is_none()
            && status.bastion_security_group.is_none()
            && world.count("server") == 0;
        match gone {
            true => Ok(object),
            false => Err(format!(
                "{:?} {}",
                status.bastion,
                listed(&status.conditions)
            )),
        }
    })
    .await
}

async fn group_rules(world: &World, name: &str) -> Vec<Value> {
    let path = format!("/security-groups?name=k8s-cluster-default-demo-secgroup-{name}");
    let found = world
        .request(Service::Network, "GET", &path, Value::Null)
        .await;
    let groups = found["security_groups"].as_array().unwrap();
    assert_eq!(groups.len(), 1, "{name}: {groups:?}");
    groups[0]["security_group_rules"]
        .as_array()
        .unwrap()
        .clone()
}

/// Whether the rules let SSH in, from anywhere or from a group.
fn lets_ssh_in(rules: &[Value], from: &Value) -> bool {
    rules.iter().any(|rule| {
        rule["direction"] == "ingress"
            && rule["protocol"] == "tcp"
            && rule["port_range_min"] == 22
            && rule["port_range_max"] == 22
            && rule["remote_group_id"] == *from
            && rule["remote_ip_prefix"].is_null()
    })
}

#[tokio::test(start_paused = true)]
async fn a_bastion_comes_up_with_its_group_and_address_and_goes_with_its_cluster() {
    let world = World::start().await;
    world.cluster(json!({"bastion": bastion("m1.small")})).await;
    let cluster = ready(&world).await;
    let status = cluster.status.unwrap();
    let known = status.bastion.unwrap();
    assert_eq!(known.name.as_deref(), Some("demo-bastion"));
    assert_eq!(known.state.as_deref(), Some("ACTIVE"));
    assert!(known.ip.unwrap().starts_with("10.6.0."));
    assert!(known.floating_ip.unwrap().starts_with("127."));
    let group = status.bastion_security_group.unwrap();
    assert_eq!(group.name, "k8s-cluster-default-demo-secgroup-bastion");
    assert!(lets_ssh_in(
        &group_rules(&world, "bastion").await,
        &Value::Null
    ));
    for name in ["controlplane", "worker"] {
        let rules = group_rules(&world, name).await;
        assert!(lets_ssh_in(&rules, &json!(group.id)), "{name}: {rules:#?}");
    }
    world.cluster_ready().await;
    // Further reconciles write nothing.
    let writes = world.writes();
    world.poke::<OpenStackCluster>("demo").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.writes(), writes);
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn a_cluster_without_a_bastion_reads_nothing_that_only_a_bastion_needs() {
    let world = World::start().await;
    let disabled = json!({"enabled": false, "spec": server("m1.small")});
    world.cluster(json!({"bastion": disabled})).await;
    world.cluster_ready().await;
    tokio::time::sleep(MINUTE).await;
    let reads = world.cloud.requests().into_iter();
    let reads: Vec<_> = reads
        .filter(|count| count.method == "GET")
        .map(|count| format!("{} {}", count.service, count.route))
        .collect();
    for word in ["image", "flavors", "trunks", "volume", "server-groups"] {
        assert!(
            !reads.iter().any(|read| read.contains(word)),
            "{word}: {reads:#?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_bastion_costs_few_writes() {
    let world = World::start().await;
    world.cluster(json!({"bastion": bastion("m1.small")})).await;
    ready(&world).await;
    world.cluster_ready().await;
    let with: u64 = world.writes().values().sum();
    let plain = World::start().await;
    plain.cluster(json!({})).await;
    plain.cluster_ready().await;
    let without: u64 = plain.writes().values().sum();
    // Group, its tags and its rules; port and its tags; server; floating IP and its tags.
    assert!(
        with <= without + 8,
        "{with} and {without}: {:#?}",
        world.writes()
    );
}

#[tokio::test(start_paused = true)]
async fn a_bastion_is_written_and_read_in_v1beta1() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let version = ApiResource::from_gvk(&GroupVersionKind::gvk(
        "infrastructure.cluster.x-k8s.io",
        "v1beta1",
        "OpenStackCluster",
    ));
    let clusters = Api::<DynamicObject>::namespaced_with(world.client.clone(), "default", &version);
    let image = json!({"filter": {"name": "ubuntu-24.04"}});
    let spec = json!({"flavor": "m1.small", "image": image});
    let patch = json!({"spec": {"bastion": {"enabled": true, "spec": spec}}});
    let patch = Patch::Merge(&patch);
    clusters
        .patch("demo", &PatchParams::default(), &patch)
        .await
        .unwrap();
    let newer = ready(&world).await.status.unwrap();
    let older = clusters.get("demo").await.unwrap().data;
    assert_eq!(older["spec"]["bastion"]["spec"]["flavor"], "m1.small");
    let known = newer.bastion.unwrap();
    assert_eq!(older["status"]["bastion"]["id"], json!(known.id));
    assert_eq!(
        older["status"]["bastion"]["floatingIP"],
        json!(known.floating_ip)
    );
    let group = newer.bastion_security_group.unwrap();
    assert_eq!(older["status"]["bastionSecurityGroup"]["id"], group.id);
}

#[tokio::test(start_paused = true)]
async fn a_bastion_is_recreated_only_if_something_that_matters_changed() {
    let world = World::start().await;
    world.cluster(json!({"bastion": bastion("m1.small")})).await;
    let first = ready(&world).await.status.unwrap().bastion.unwrap();
    let mut same = server("m1.small");
    same["configDrive"] = json!(false);
    same["trunk"] = json!(false);
    same["sshKeyName"] = Value::Null;
    change(&world, json!({"bastion": {"spec": same}})).await;
    let kept = ready(&world).await.status.unwrap().bastion.unwrap();
    assert_eq!(kept, first);
    // Another flavor is another server, with the same floating IP.
    change(&world, json!({"bastion": {"spec": server("m1.medium")}})).await;
    let other = ready(&world).await.status.unwrap().bastion.unwrap();
    assert_ne!(other.id, first.id);
    assert_eq!(flavors(&world).await, ["m1.medium"]);
    assert_eq!(other.floating_ip, first.floating_ip);
    assert_eq!(world.count("server"), 1);
    assert_eq!(world.count("floatingip"), 2, "with that of the API server");
}

#[tokio::test(start_paused = true)]
async fn a_bastion_that_is_disabled_leaves_nothing_and_may_come_back() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    world.cluster_ready().await;
    let before = world.cloud.resources();
    for round in 0..2 {
        change(&world, json!({"bastion": bastion("m1.small")})).await;
        ready(&world).await;
        change(&world, json!({"bastion": {"enabled": false}})).await;
        without(&world).await;
        assert_eq!(world.cloud.resources(), before, "round {round}");
        let rules = group_rules(&world, "worker").await;
        assert!(rules.iter().all(|rule| rule["port_range_min"] != 22));
        change(&world, json!({"bastion": null})).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_bastion_that_somebody_deleted_comes_back() {
    let world = World::start().await;
    world.cluster(json!({"bastion": bastion("m1.small")})).await;
    let first = ready(&world).await.status.unwrap().bastion.unwrap();
    let path = format!("/servers/{}", first.id.as_ref().unwrap());
    world
        .request(Service::Compute, "DELETE", &path, Value::Null)
        .await;
    eventually("another server", || async {
        let other = ready(&world).await.status.unwrap().bastion.unwrap();
        match other.id != first.id && other.floating_ip == first.floating_ip {
            true => Ok(()),
            false => Err(format!("{other:?}")),
        }
    })
    .await;
    assert_eq!(world.count("server"), 1);
}

#[tokio::test(start_paused = true)]
async fn the_floating_ip_of_a_user_is_used_and_given_back() {
    let world = World::start().await;
    let create = json!({"floatingip": {"floating_network_id": external(&world).await}});
    let created = world
        .request(Service::Network, "POST", "/floatingips", create)
        .await;
    let (id, address) = (
        &created["floatingip"]["id"],
        &created["floatingip"]["floating_ip_address"],
    );
    let mut spec = bastion("m1.small");
    spec["floatingIP"] = address.clone();
    world.cluster(json!({"bastion": spec})).await;
    let known = ready(&world).await.status.unwrap().bastion.unwrap();
    assert_eq!(known.floating_ip.as_deref(), address.as_str());
    // Without it in the spec, one is allocated, and that of the user is free again.
    change(&world, json!({"bastion": {"floatingIP": null}})).await;
    eventually("another address", || async {
        let known = ready(&world).await.status.unwrap().bastion.unwrap();
        match known.floating_ip.as_deref() {
            Some(other) if Some(other) != address.as_str() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await;
    change(&world, json!({"bastion": {"floatingIP": address}})).await;
    eventually("the address of the user", || async {
        let known = ready(&world).await.status.unwrap().bastion.unwrap();
        match known.floating_ip.as_deref() == address.as_str() && world.count("floatingip") == 2 {
            true => Ok(()),
            false => Err(format!("{known:?}")),
        }
    })
    .await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    let path = format!("/floatingips/{}", id.as_str().unwrap());
    let left = world
        .request(Service::Network, "GET", &path, Value::Null)
        .await;
    assert_eq!(left["floatingip"]["port_id"], Value::Null);
    assert_eq!(left["floatingip"]["tags"], json!([]));
    assert_eq!(left["floatingip"]["description"], json!(""));
}

async fn external(world: &World) -> Value {
    let path = "/networks?router:external=true";
    let found = world
        .request(Service::Network, "GET", path, Value::Null)
        .await;
    found["networks"][0]["id"].clone()
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_of_something_else_stays_there() {
    let world = World::start().await;
    world.cluster(json!({})).await;
    let host = world
        .cluster_ready()
        .await
        .spec
        .control_plane_endpoint
        .unwrap()
        .host;
    let mut spec = bastion("m1.small");
    spec["floatingIP"] = json!(host);
    change(&world, json!({"bastion": spec})).await;
    let words = "is that of the API server or of a machine";
    let condition = world.cluster_says("BastionReady", words).await;
    assert_eq!(condition.reason, "FloatingIPError");
    world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_bastion_refers_to_in_vain_is_a_condition_and_an_event() {
    let world = World::start().await;
    world.cluster(json!({"bastion": bastion("m1.huge")})).await;
    let condition = world
        .cluster_says("BastionReady", "bastion.spec.flavor: ")
        .await;
    assert_eq!(condition.reason, "DependencyFailed");
    world.cluster_ready().await;
    let mut zoned = bastion("m1.small");
    zoned["availabilityZone"] = json!("nowhere");
    change(&world, json!({"bastion": zoned})).await;
    world
        .cluster_says(
            "BastionReady",
            "bastion.availabilityZone `nowhere` is not a zone",
        )
        .await;
    let warnings = world.notes("demo", "Warning").await;
    let of_flavor = |note: &String| note.contains("bastion.spec.flavor");
    assert_eq!(
        warnings.iter().filter(|note| of_flavor(note)).count(),
        1,
        "{warnings:?}"
    );
    change(&world, json!({"bastion": {"availabilityZone": null}})).await;
    ready(&world).await;
}

#[tokio::test(start_paused = true)]
async fn rules_may_name_the_group_of_the_bastion_and_its_addresses_may_reach_the_api() {
    let world = World::start().await;
    let rule = json!([{"name": "metrics", "direction": "ingress", "protocol": "tcp",
        "portRangeMin": 9100, "portRangeMax": 9100, "remoteManagedGroups": ["bastion"]}]);
    let groups = json!({"workerNodesSecurityGroupRules": rule});
    let balancer = json!({"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}});
    world
        .cluster(json!({"bastion": bastion("m1.small"), "managedSecurityGroups": groups, "apiServer": balancer}))
        .await;
    let status = ready(&world).await.status.unwrap();
    let group = json!(status.bastion_security_group.unwrap().id);
    let rules = group_rules(&world, "worker").await;
    let metrics = |rule: &&Value| rule["port_range_min"] == 9100;
    let found: Vec<_> = rules.iter().filter(metrics).collect();
    assert!(
        found.len() == 1 && found[0]["remote_group_id"] == group,
        "{found:?}"
    );
    let known = status.bastion.unwrap();
    let addresses = [known.ip.unwrap(), known.floating_ip.unwrap()].map(|ip| format!("{ip}/32"));
    eventually("both addresses among the CIDRs", || async {
        let cluster = world.cluster_ready().await.status.unwrap();
        let cidrs = cluster
            .api_server_managed_load_balancer
            .unwrap()
            .allowed_cidrs;
        match addresses.iter().all(|address| cidrs.contains(address)) {
            true => Ok(()),
            false => Err(format!("{cidrs:?}")),
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_bastion_with_volumes_and_a_trunk_is_replaced_and_goes_without_a_trace() {
    let world = World::start().await;
    let mut spec = bastion("m1.small");
    spec["spec"]["rootVolume"] = json!({"sizeGiB": 20});
    spec["spec"]["trunk"] = json!(true);
    world.cluster(json!({"bastion": spec})).await;
    ready(&world).await;
    assert_eq!((world.count("volume"), world.count("trunk")), (1, 1));
    change(
        &world,
        json!({"bastion": {"spec": {"rootVolume": null, "trunk": null}}}),
    )
    .await;
    eventually("neither volume nor trunk", || async {
        ready(&world).await;
        match (world.count("volume"), world.count("trunk")) {
            (0, 0) => Ok(()),
            left => Err(format!("{left:?}")),
        }
    })
    .await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

/// The life of a bastion.
struct OfBastion;

impl Life for OfBastion {
    const STAGES: &'static [&'static str] = &["created", "changed", "disabled", "deleted"];

    async fn begin(world: &World, stage: &str) {
        let with_volume = |flavor: &str| {
            let mut spec = bastion(flavor);
            spec["spec"]["rootVolume"] = json!({"sizeGiB": 20});
            spec["spec"]["trunk"] = json!(true);
            spec
        };
        match stage {
            "created" => change(world, json!({"bastion": with_volume("m1.small")})).await,
            "changed" => change(world, json!({"bastion": with_volume("m1.medium")})).await,
            "disabled" => change(world, json!({"bastion": {"enabled": false}})).await,
            _ => world.delete::<OpenStackCluster>("demo").await,
        }
    }

    async fn end(world: &World, stage: &str) {
        match stage {
            "created" => drop(ready(world).await),
            "changed" => drop(ready(world).await),
            "disabled" => drop(without(world).await),
            _ => world.gone::<OpenStackCluster>("demo").await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_of_its_life_a_bastion_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    let mut expected = BTreeMap::new();
    for nth in 1.. {
        world.run();
        world.cluster(json!({"apiServer": {}, "tags": ["t"]})).await;
        world.cluster_ready().await;
        let look = |world: &World, stage| {
            let there = world.cloud.resources();
            let known = expected.entry(stage).or_insert_with(|| there.clone());
            assert_eq!(there, *known, "{stage}, killed at write {nth}");
        };
        let was_cut = killed_at::<OfBastion>(&mut world, nth, look).await;
        assert_eq!(
            world.left_over(),
            BTreeMap::default(),
            "killed at write {nth}"
        );
        world.delete::<Cluster>("demo").await;
        if !was_cut {
            assert!(nth > 30, "only {nth} writes");
            break;
        }
    }
}

/// The writes of the life of a bastion.
const WRITES: [(&str, &str, &str); 13] = [
    ("compute", "POST", "/v2.1/servers"),
    ("compute", "DELETE", "/v2.1/servers/*"),
    ("network", "POST", "/v2.0/ports"),
    ("network", "PUT", "/v2.0/*"),
    ("network", "DELETE", "/v2.0/ports/*"),
    ("network", "POST", "/v2.0/trunks"),
    ("network", "DELETE", "/v2.0/trunks/*"),
    ("network", "POST", "/v2.0/floatingips"),
    ("network", "PUT", "/v2.0/floatingips/*"),
    ("network", "DELETE", "/v2.0/floatingips/*"),
    ("network", "POST", "/v2.0/security-groups"),
    ("network", "POST", "/v2.0/security-group-rules"),
    ("network", "DELETE", "/v2.0/security-groups/*"),
];

#[tokio::test(start_paused = true)]
async fn a_bastion_whose_every_kind_of_write_fails_once_ends_the_same() {
    for action in failures() {
        let world = World::start().await;
        world.cluster(json!({"apiServer": {}, "tags": ["t"]})).await;
        world.cluster_ready().await;
        let before = world.cloud.resources();
        each_fails_once(&world, &WRITES, &action).await;
        for stage in ["created", "changed"] {
            OfBastion::begin(&world, stage).await;
            OfBastion::end(&world, stage).await;
            let count = |kind| world.count(kind);
            let there = (
                count("server"),
                count("floatingip"),
                count("trunk"),
                count("volume"),
            );
            assert_eq!(there, (1, 2, 1, 1), "{stage}: {action}");
        }
        OfBastion::begin(&world, "disabled").await;
        OfBastion::end(&world, "disabled").await;
        assert_eq!(world.cloud.resources(), before, "{action}");
        let writes = world.writes();
        for (_, method, route) in WRITES {
            let write = format!("{method} {}", route.trim_end_matches('*'));
            assert!(
                writes.keys().any(|known| known.starts_with(&write)),
                "{write}: {writes:#?}"
            );
        }
    }
}
