//! Pools of floating IPs: claims are answered, machines and bastions get their addresses, and nothing of others is used.

use std::collections::{BTreeMap, BTreeSet};

use api::core::v1beta2::{Cluster, Machine};
use api::infra::v1alpha1::{OpenStackFloatingIPPool, OpenStackFloatingIPPoolStatus};
use api::infra::v1beta2::{OpenStackCluster, OpenStackMachine};
use api::ipam::v1beta2::{IPAddress, IPAddressClaim};
use api::k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::lives::{Life, each_fails_once, failures, killed_at};
use crate::world::{MINUTE, World, eventually, listed};

const V1ALPHA1: &str = "infrastructure.cluster.x-k8s.io/v1alpha1";

async fn pool(world: &World, spec: Value) {
    let mut object = json!({"apiVersion": V1ALPHA1, "kind": "OpenStackFloatingIPPool",
        "metadata": {"name": "public"},
        "spec": {"identityRef": {"name": "demo-cloud-config", "cloudName": "simulated"},
            "reclaimPolicy": "Delete"}});
    for (name, value) in spec.as_object().unwrap() {
        object["spec"][name] = value.clone();
    }
    world.create(object).await;
}

fn reference() -> Value {
    json!({"floatingIPPoolRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "OpenStackFloatingIPPool", "name": "public"}})
}

/// Waits until the status of the pool is as `is_so` says.
async fn pool_is(
    world: &World,
    what: &str,
    is_so: impl Fn(&OpenStackFloatingIPPoolStatus) -> bool,
) -> OpenStackFloatingIPPoolStatus {
    eventually(what, || async {
        let pools = world.api::<OpenStackFloatingIPPool>();
        let status = pools
            .get("public")
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        match is_so(&status) {
            true => Ok(status),
            false => Err(format!("{status:?}{}", listed(&status.conditions))),
        }
    })
    .await
}

/// An IPAddressClaim of somebody who is no machine.
async fn claim(world: &World, name: &str) {
    world
        .create(
            json!({"apiVersion": "ipam.cluster.x-k8s.io/v1beta2", "kind": "IPAddressClaim",
            "metadata": {"name": name}, "spec": {"poolRef": reference()["floatingIPPoolRef"]}}),
        )
        .await;
}

/// Waits until the claim has an address.
async fn answer(world: &World, name: &str) -> String {
    eventually(&format!("an address for {name}"), || async {
        let claim = world.api::<IPAddressClaim>().get(name).await.unwrap();
        let status = claim.status.clone().unwrap_or_default();
        let Some(answer) = status.address_ref else {
            return Err(listed(&status.conditions));
        };
        assert!(api::conditions::is_true(&status.conditions, "Ready"));
        let address = world.api::<IPAddress>().get(&answer.name).await.unwrap();
        assert_eq!(address.spec.claim_ref.name, name);
        assert_eq!(address.owner_references()[0].uid, claim.uid().unwrap());
        Ok(address.spec.address)
    })
    .await
}

async fn network(world: &World, method: &str, path: &str, body: Value) -> Value {
    world.request(Service::Network, method, path, body).await
}

/// A floating IP of the user: its id and its address.
async fn allocate(world: &World) -> (String, String) {
    let external = network(world, "GET", "/networks?router:external=true", Value::Null).await;
    let create = json!({"floatingip": {"floating_network_id": external["networks"][0]["id"]}});
    let created = network(world, "POST", "/floatingips", create).await;
    let text = |name: &str| created["floatingip"][name].as_str().unwrap().to_owned();
    (text("id"), text("floating_ip_address"))
}

async fn floating_ip(world: &World, address: &str) -> Option<Value> {
    let path = format!("/floatingips?floating_ip_address={address}");
    let found = network(world, "GET", &path, Value::Null).await;
    found["floatingips"].as_array().unwrap().first().cloned()
}

/// The address of a machine outside of its cluster.
fn external(machine: &OpenStackMachine) -> String {
    let status = machine.status.as_ref().unwrap();
    let mut all = status.addresses.iter();
    let found = all.find(|address| address.type_ == "ExternalIP");
    found.expect("an external address").address.clone()
}

/// A cluster without a load balancer, which is ready.
async fn cluster(world: &World) {
    world
        .cluster(json!({"apiServer": {"enableFloatingIP": false, "fixedIP": "10.6.0.9"}}))
        .await;
    world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn machines_have_floating_ips_of_a_pool_that_go_with_them() {
    let world = World::start().await;
    pool(&world, json!({})).await;
    cluster(&world).await;
    let before = world.cloud.resources();
    let mut known = BTreeSet::new();
    for name in ["md-0", "md-1"] {
        world.machine(name, false, reference()).await;
        let machine = world.machine_ready(name).await;
        let conditions = machine.status.as_ref().unwrap().conditions.clone();
        assert!(api::conditions::is_true(
            &conditions,
            "FloatingAddressFromPoolReady"
        ));
        let address = external(&machine);
        let ip = floating_ip(&world, &address).await.unwrap();
        let port = format!("/ports?name={name}-0");
        let port = network(&world, "GET", &port, Value::Null).await;
        assert_eq!(ip["port_id"], port["ports"][0]["id"]);
        let tag = json!("cluster-api-provider-openstack-fip-pool-public");
        assert!(ip["tags"].as_array().unwrap().contains(&tag), "{ip}");
        let claim = format!("{name}-floating-ip-address");
        let claim = world.api::<IPAddressClaim>().get(&claim).await.unwrap();
        assert_eq!(claim.spec.cluster_name.as_deref(), Some("demo"));
        known.insert(address);
    }
    let known: Vec<_> = known.into_iter().collect();
    let status = pool_is(&world, "two claimed", |status| status.claimed_ips == known).await;
    assert!(status.available_ips.is_empty() && status.failed_ips.is_empty());
    assert!(status.floating_ip_network.is_some());
    // Further reconciles write nothing.
    let writes = world.writes();
    world.poke::<OpenStackFloatingIPPool>("public").await;
    world.poke::<OpenStackMachine>("md-0").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.writes(), writes);
    for name in ["md-0", "md-1"] {
        world.delete_machine(name).await;
    }
    pool_is(&world, "none claimed", |status| {
        status.claimed_ips.is_empty()
    })
    .await;
    eventually("nothing of the machines", || async {
        let there = world.cloud.resources();
        (there == before).then_some(()).ok_or(format!("{there:?}"))
    })
    .await;
    assert!(world.list::<IPAddressClaim>().await.is_empty());
    assert!(world.list::<IPAddress>().await.is_empty());
    world.delete::<OpenStackFloatingIPPool>("public").await;
    world.gone::<OpenStackFloatingIPPool>("public").await;
}

#[tokio::test(start_paused = true)]
async fn addresses_that_were_there_are_given_out_first_and_stay() {
    let world = World::start().await;
    let (id, given) = allocate(&world).await;
    let spec = json!({"preAllocatedFloatingIPs": ["127.99.99.99", given]});
    pool(&world, spec).await;
    let status = pool_is(&world, "both looked at", |status| {
        !status.failed_ips.is_empty()
    })
    .await;
    assert_eq!(status.failed_ips, ["127.99.99.99"]);
    assert_eq!(status.available_ips, std::slice::from_ref(&given));
    claim(&world, "a").await;
    assert_eq!(answer(&world, "a").await, given);
    claim(&world, "b").await;
    let other = answer(&world, "b").await;
    assert_ne!(other, given);
    for name in ["a", "b"] {
        world.delete::<IPAddressClaim>(name).await;
    }
    pool_is(&world, "both back", |status| {
        status.claimed_ips.is_empty() && status.available_ips == [given.clone()]
    })
    .await;
    assert_eq!(floating_ip(&world, &other).await, None);
    world.delete::<OpenStackFloatingIPPool>("public").await;
    world.gone::<OpenStackFloatingIPPool>("public").await;
    let left = floating_ip(&world, &given).await.unwrap();
    assert_eq!(
        (left["id"].as_str(), &left["tags"]),
        (Some(id.as_str()), &json!([]))
    );
    assert_eq!(left["description"], "");
}

#[tokio::test(start_paused = true)]
async fn an_address_that_was_allocated_since_the_last_look_is_given_out_before_a_new_one() {
    let world = World::start().await;
    pool(&world, json!({})).await;
    claim(&world, "a").await;
    answer(&world, "a").await;
    let (_, given) = allocate(&world).await;
    let more = json!({"spec": {"preAllocatedFloatingIPs": [given]}});
    world.merge::<OpenStackFloatingIPPool>("public", more).await;
    claim(&world, "b").await;
    assert_eq!(answer(&world, "b").await, given);
}

#[tokio::test(start_paused = true)]
async fn an_address_that_is_retained_answers_the_next_claim_and_goes_with_the_pool() {
    let world = World::start().await;
    pool(&world, json!({"reclaimPolicy": "Retain"})).await;
    claim(&world, "a").await;
    let first = answer(&world, "a").await;
    world.delete::<IPAddressClaim>("a").await;
    pool_is(&world, "one that waits", |status| {
        status.available_ips == [first.clone()]
    })
    .await;
    claim(&world, "b").await;
    assert_eq!(answer(&world, "b").await, first);
    // A pool stays while somebody has an address of it.
    world.delete::<OpenStackFloatingIPPool>("public").await;
    pool_is(&world, "the claim in a condition", |status| {
        let found = api::conditions::find(&status.conditions, "Deleting");
        found.is_some_and(|it| it.message == "Waiting for 1 IPAddressClaims to be deleted: b")
    })
    .await;
    assert!(floating_ip(&world, &first).await.is_some());
    world.delete::<IPAddressClaim>("b").await;
    world.gone::<OpenStackFloatingIPPool>("public").await;
    assert_eq!(world.left_over(), BTreeMap::default());
}

#[tokio::test(start_paused = true)]
async fn an_address_that_a_machine_gave_back_answers_the_next_claim_at_once() {
    let world = World::start().await;
    pool(&world, json!({"reclaimPolicy": "Retain"})).await;
    cluster(&world).await;
    world.machine("md-0", false, reference()).await;
    let machine = world.machine_ready("md-0").await;
    let first = external(&machine);
    world.delete_machine("md-0").await;
    claim(&world, "b").await;
    assert_eq!(answer(&world, "b").await, first);
}

#[tokio::test(start_paused = true)]
async fn no_more_addresses_than_allowed_are_given_out_and_who_waits_says_why() {
    let world = World::start().await;
    pool(&world, json!({"maxIPs": 1})).await;
    cluster(&world).await;
    world.machine("md-0", false, reference()).await;
    world.machine_ready("md-0").await;
    world.machine("md-1", false, reference()).await;
    let words = "an address of OpenStackFloatingIPPool public: The pool has given out as many addresses \
                 as maxIPs says";
    for type_ in ["FloatingAddressFromPoolReady", "InstanceReady"] {
        let condition = world.machine_says("md-1", type_, words).await;
        assert_eq!(condition.reason, "WaitingForIPAMProvider");
    }
    assert_eq!((world.count("server"), world.count("floatingip")), (1, 1));
    pool_is(&world, "the reason", |status| {
        let found =
            api::conditions::find(&status.conditions, "OpenstackFloatingIPPoolReadyCondition");
        found.is_some_and(|it| it.status == "False" && it.reason == "MaxIPsReached")
    })
    .await;
    world.delete_machine("md-0").await;
    world.machine_ready("md-1").await;
}

#[tokio::test(start_paused = true)]
async fn an_address_that_somebody_uses_is_neither_given_out_nor_taken() {
    let world = World::start().await;
    cluster(&world).await;
    let subnets = network(&world, "GET", "/subnets?cidr=10.6.0.0/24", Value::Null).await;
    let port = json!({"port": {"network_id": subnets["subnets"][0]["network_id"]}});
    let port = network(&world, "POST", "/ports", port).await["port"]["id"].clone();
    let (id, given) = allocate(&world).await;
    let change = json!({"floatingip": {"port_id": port}});
    network(&world, "PUT", &format!("/floatingips/{id}"), change.clone()).await;
    pool(
        &world,
        json!({"preAllocatedFloatingIPs": [given], "maxIPs": 1}),
    )
    .await;
    claim(&world, "a").await;
    let other = answer(&world, "a").await;
    assert_ne!(other, given);
    world.delete::<IPAddressClaim>("a").await;
    world.gone::<IPAddress>("a").await;
    // Somebody takes the address between the answer and its use.
    let free = json!({"floatingip": {"port_id": null}});
    network(&world, "PUT", &format!("/floatingips/{id}"), free.clone()).await;
    pool_is(&world, "a free one", |status| {
        status.available_ips == [given.clone()]
    })
    .await;
    world
        .merge::<Cluster>("demo", json!({"spec": {"paused": true}}))
        .await;
    claim(&world, "md-0-floating-ip-address").await;
    assert_eq!(answer(&world, "md-0-floating-ip-address").await, given);
    network(&world, "PUT", &format!("/floatingips/{id}"), change).await;
    world.machine("md-0", false, reference()).await;
    let uid = world
        .api::<OpenStackMachine>()
        .get("md-0")
        .await
        .unwrap()
        .uid();
    let owner = json!({"metadata": {"ownerReferences": [{"kind": "OpenStackMachine", "name": "md-0", "uid": uid,
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta2"}]}});
    world
        .merge::<IPAddressClaim>("md-0-floating-ip-address", owner)
        .await;
    world
        .merge::<Cluster>("demo", json!({"spec": {"paused": false}}))
        .await;
    let words = format!("floating IP {given} is on port {}", port.as_str().unwrap());
    let condition = world
        .machine_says("md-0", "FloatingAddressFromPoolReady", &words)
        .await;
    assert_eq!(condition.reason, "FloatingIPError");
    assert_eq!(world.count("server"), 0);
    network(&world, "PUT", &format!("/floatingips/{id}"), free).await;
    assert_eq!(external(&world.machine_ready("md-0").await), given);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_is_a_pools_by_its_mark_and_not_by_its_tag_or_address() {
    let world = World::start().await;
    let (id, address) = allocate(&world).await;
    let tags = json!({"tags": ["cluster-api-provider-openstack-fip-pool-public"]});
    network(&world, "PUT", &format!("/floatingips/{id}/tags"), tags).await;
    pool(&world, json!({})).await;
    claim(&world, "a").await;
    assert_ne!(answer(&world, "a").await, address);
    world.delete::<IPAddressClaim>("a").await;
    world.delete::<OpenStackFloatingIPPool>("public").await;
    world.gone::<OpenStackFloatingIPPool>("public").await;
    assert!(floating_ip(&world, &address).await.is_some());
    assert_eq!(world.count("floatingip"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_somebody_elses_is_not_used() {
    let world = World::start().await;
    pool(&world, json!({})).await;
    cluster(&world).await;
    claim(&world, "md-0-floating-ip-address").await;
    world.machine("md-0", false, reference()).await;
    let words = "IPAddressClaim md-0-floating-ip-address is not the one of this OpenStackMachine";
    world
        .machine_says("md-0", "FloatingAddressFromPoolReady", words)
        .await;
    world.delete_machine("md-0").await;
    let claims = world.list::<IPAddressClaim>().await;
    assert_eq!(claims.len(), 1, "it stays");
}

#[tokio::test(start_paused = true)]
async fn an_address_stays_as_long_as_its_claim() {
    let world = World::start().await;
    pool(&world, json!({})).await;
    claim(&world, "a").await;
    let address = answer(&world, "a").await;
    world.delete::<IPAddress>("a").await;
    world.poke::<OpenStackFloatingIPPool>("public").await;
    tokio::time::sleep(MINUTE).await;
    assert!(floating_ip(&world, &address).await.is_some());
    assert_eq!(answer(&world, "a").await, address);
    world.delete::<IPAddressClaim>("a").await;
    world.gone::<IPAddress>("a").await;
    pool_is(&world, "none", |status| status.claimed_ips.is_empty()).await;
    assert_eq!(world.count("floatingip"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_floating_ip_that_was_taken_off_a_machine_by_hand_comes_back() {
    let world = World::start().await;
    pool(&world, json!({})).await;
    cluster(&world).await;
    world.machine("md-0", false, reference()).await;
    let address = external(&world.machine_ready("md-0").await);
    let ip = floating_ip(&world, &address).await.unwrap();
    let path = format!("/floatingips/{}", ip["id"].as_str().unwrap());
    network(
        &world,
        "PUT",
        &path,
        json!({"floatingip": {"port_id": null}}),
    )
    .await;
    eventually("the port as before", || async {
        let now = floating_ip(&world, &address).await.unwrap();
        let is_back = now["port_id"] == ip["port_id"];
        is_back.then_some(()).ok_or(now.to_string())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn of_two_pools_with_one_identity_neither_acts() {
    let world = World::start().await;
    pool(&world, json!({"reclaimPolicy": "Retain"})).await;
    claim(&world, "a").await;
    let address = answer(&world, "a").await;
    let original = world
        .api::<OpenStackFloatingIPPool>()
        .get("public")
        .await
        .unwrap();
    let mut copy = serde_json::to_value(&original).unwrap();
    copy["metadata"] = json!({"name": "copy", "annotations": original.annotations()});
    copy["status"] = Value::Null;
    world.create(copy).await;
    pool_is(&world, "the other one", |status| {
        let found = api::conditions::find(&status.conditions, "Ready");
        found.is_some_and(|it| it.reason == "IdentityShared" && it.message.contains("copy"))
    })
    .await;
    world.delete::<OpenStackFloatingIPPool>("copy").await;
    world.gone::<OpenStackFloatingIPPool>("copy").await;
    assert!(floating_ip(&world, &address).await.is_some());
    pool_is(&world, "ready again", |status| {
        api::conditions::is_true(&status.conditions, "Ready")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_pool_that_lost_its_annotation_finds_its_identity_on_its_floating_ips() {
    let mut world = World::start().await;
    pool(&world, json!({"reclaimPolicy": "Retain"})).await;
    claim(&world, "a").await;
    let address = answer(&world, "a").await;
    pool_is(&world, "the address", |status| {
        status.claimed_ips == [address.clone()]
    })
    .await;
    let id = |object: &OpenStackFloatingIPPool| {
        object.annotations()["infrastructure.cluster.x-k8s.io/ferrostack-pool-id"].clone()
    };
    let before = world
        .api::<OpenStackFloatingIPPool>()
        .get("public")
        .await
        .unwrap();
    world.kill().await;
    world.replace::<OpenStackFloatingIPPool>("public").await;
    world.run();
    eventually("the annotation", || async {
        let object = world
            .api::<OpenStackFloatingIPPool>()
            .get("public")
            .await
            .unwrap();
        let has = object.annotations().len() == 1 && id(&object) == id(&before);
        has.then_some(()).ok_or(format!("{:?}", object.metadata))
    })
    .await;
    claim(&world, "b").await;
    assert_ne!(answer(&world, "b").await, address);
    assert_eq!(world.count("floatingip"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_exhausted_quota_and_a_missing_network_are_conditions() {
    let world = World::start().await;
    let network = json!({"filter": {"name": "nowhere"}});
    pool(&world, json!({"floatingIPNetwork": network})).await;
    pool_is(&world, "the network", |status| {
        let found = api::conditions::find(&status.conditions, "Ready");
        found.is_some_and(|it| it.reason == "UnableToFindNetwork" && it.message.contains("nowhere"))
    })
    .await;
    world
        .merge::<OpenStackFloatingIPPool>("public", json!({"spec": {"floatingIPNetwork": null}}))
        .await;
    world
        .fault(
            json!({"service": "network", "method": "POST", "route": "/v2.0/floatingips",
            "status": 409, "message": "Quota exceeded for resources: ['floatingip']."}),
        )
        .await;
    claim(&world, "a").await;
    let says = eventually("the quota", || async {
        let claim = world.api::<IPAddressClaim>().get("a").await.unwrap();
        let status = claim.status.unwrap_or_default();
        let found = api::conditions::find(&status.conditions, "Ready").cloned();
        found.ok_or(listed(&status.conditions))
    })
    .await;
    assert!(says.message.contains("create a floating IP"), "{says:?}");
    world.mend().await;
    answer(&world, "a").await;
    assert_eq!(world.count("floatingip"), 1);
}

#[tokio::test(start_paused = true)]
async fn ten_machines_of_a_pool_cost_three_writes_each_and_few_lists() {
    let mut world = World::open(CloudOptions::default()).await;
    // Lists that somebody asks for alone.
    (world.idle, world.rest) = (20 * MINUTE, 20 * MINUTE);
    world.run();
    pool(&world, json!({})).await;
    cluster(&world).await;
    let before = world.writes();
    let lists = |world: &World| {
        let all = world.cloud.requests().into_iter();
        let of = all.filter(|it| it.method == "GET" && it.route == "/v2.0/floatingips");
        of.map(|it| it.count).sum::<u64>()
    };
    let listed = lists(&world);
    let names: Vec<_> = (0..10).map(|n| format!("md-{n}")).collect();
    for name in &names {
        world.machine(name, false, reference()).await;
    }
    for name in &names {
        world.machine_ready(name).await;
    }
    let mut writes = world.writes();
    writes.retain(|name, count| {
        *count -= before.get(name).unwrap_or(&0);
        name.contains("floatingips") && *count > 0
    });
    let of: Vec<_> = writes.into_iter().collect();
    let expected = [
        "POST /v2.0/floatingips",
        "PUT /v2.0/floatingips/{id}",
        "PUT /v2.0/floatingips/{id}/tags",
    ];
    assert_eq!(of, expected.map(|name| (name.to_owned(), 10)));
    let listed = lists(&world) - listed;
    assert!(listed <= 20, "{listed} lists of floating IPs");
}

#[tokio::test(start_paused = true)]
async fn a_bastion_has_the_address_of_a_pool_and_gives_it_back() {
    let world = World::start().await;
    pool(&world, json!({"reclaimPolicy": "Retain"})).await;
    let mut server = json!({"flavor": {"filter": {"name": "m1.small"}},
        "image": {"filter": {"name": "ubuntu-24.04"}}});
    server["floatingIPPoolRef"] = reference()["floatingIPPoolRef"].clone();
    let bastion = json!({"enabled": true, "spec": server});
    world.cluster(json!({"bastion": bastion})).await;
    let of_bastion = |is_so: fn(&str, &str) -> bool, address: String| {
        let world = &world;
        async move {
            eventually("the bastion", || async {
                let object = world.api::<OpenStackCluster>().get("demo").await.unwrap();
                let status = object.status.unwrap_or_default();
                let known = status.bastion.clone().unwrap_or_default();
                let found = known.floating_ip.clone().unwrap_or_default();
                match !found.is_empty() && is_so(&found, &address) {
                    true => Ok((found, known.id)),
                    false => Err(listed(&status.conditions)),
                }
            })
            .await
        }
    };
    let (address, id) = of_bastion(|_, _| true, String::new()).await;
    pool_is(&world, "the address", |status| {
        status.claimed_ips == [address.clone()]
    })
    .await;
    // Another address is no other server.
    let without = json!({"spec": {"bastion": {"spec": {"floatingIPPoolRef": null}}}});
    world.merge::<OpenStackCluster>("demo", without).await;
    let (other, same) = of_bastion(|found, known| found != known, address.clone()).await;
    assert_eq!(same, id);
    pool_is(&world, "the address back", |status| {
        status.claimed_ips.is_empty() && status.available_ips == [address.clone()]
    })
    .await;
    world
        .merge::<OpenStackCluster>("demo", json!({"spec": {"bastion": {"spec": server}}}))
        .await;
    of_bastion(|found, known| found != known, other).await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    pool_is(&world, "it with its cluster", |status| {
        status.claimed_ips.is_empty()
    })
    .await;
    world.delete::<OpenStackFloatingIPPool>("public").await;
    world.gone::<OpenStackFloatingIPPool>("public").await;
    assert_eq!(world.left_over(), BTreeMap::default());
}

/// The life of a pool, of which a machine has an address, too.
struct OfPool;

impl Life for OfPool {
    const STAGES: &'static [&'static str] = &["claimed", "used", "given back", "deleted"];

    async fn begin(world: &World, stage: &str) {
        match stage {
            "claimed" => {
                pool(world, json!({})).await;
                claim(world, "a").await;
            }
            "used" => world.machine("md-0", false, reference()).await,
            "given back" => {
                world.delete::<IPAddressClaim>("a").await;
                world.delete::<OpenStackMachine>("md-0").await;
            }
            _ => world.delete::<OpenStackFloatingIPPool>("public").await,
        }
    }

    async fn end(world: &World, stage: &str) {
        match stage {
            "claimed" => drop(answer(world, "a").await),
            "used" => {
                external(&world.machine_ready("md-0").await);
            }
            "given back" => {
                world.gone::<OpenStackMachine>("md-0").await;
                eventually("no floating IP", || async {
                    let left = world.count("floatingip");
                    (left == 0).then_some(()).ok_or(left.to_string())
                })
                .await;
            }
            _ => world.gone::<OpenStackFloatingIPPool>("public").await,
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_cloud_a_pool_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    world.run();
    cluster(&world).await;
    let mut expected = BTreeMap::new();
    for nth in 1.. {
        let look = |world: &World, stage| {
            let there = world.cloud.resources();
            let known = expected.entry(stage).or_insert_with(|| there.clone());
            assert_eq!(there, *known, "{stage}, killed at write {nth}");
        };
        let was_cut = killed_at::<OfPool>(&mut world, nth, look).await;
        world.delete::<Machine>("md-0").await;
        world.delete::<Secret>("md-0").await;
        world.run();
        if !was_cut {
            assert!(nth > 8, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_to_the_api_server_a_pool_ends_the_same() {
    let mut world = World::open(CloudOptions::default()).await;
    world.run();
    cluster(&world).await;
    world.kill().await;
    for nth in 1.. {
        let fuse = testbed::Fuse::at(nth);
        world.run_behind(&fuse);
        let mut was_cut = false;
        for stage in OfPool::STAGES {
            OfPool::begin(&world, stage).await;
            if !was_cut {
                was_cut = tokio::select! {
                    () = OfPool::end(&world, stage) => false,
                    () = fuse.blown() => true,
                };
                if was_cut {
                    world.kill().await;
                    world.run();
                }
            }
            OfPool::end(&world, stage).await;
        }
        world.delete::<Machine>("md-0").await;
        world.delete::<Secret>("md-0").await;
        world.kill().await;
        assert_eq!(world.count("floatingip"), 0, "killed at write {nth}");
        if !was_cut {
            assert!(nth > 15, "only {nth} writes");
            break;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_pool_whose_every_kind_of_write_fails_once_ends_the_same() {
    const WRITES: [(&str, &str, &str); 4] = [
        ("network", "POST", "/v2.0/floatingips"),
        ("network", "PUT", "/v2.0/floatingips/*/tags"),
        ("network", "PUT", "/v2.0/floatingips/*"),
        ("network", "DELETE", "/v2.0/floatingips/*"),
    ];
    let more = [400, 403, 404].map(|status| json!({"status": status}));
    for action in failures().into_iter().chain(more) {
        let world = World::start().await;
        cluster(&world).await;
        let before = world.cloud.resources();
        each_fails_once(&world, &WRITES, &action).await;
        for stage in OfPool::STAGES {
            OfPool::begin(&world, stage).await;
            OfPool::end(&world, stage).await;
            let number = match *stage {
                "claimed" => 1,
                "used" => 2,
                _ => 0,
            };
            eventually("as many floating IPs as claims", || async {
                let there = world.count("floatingip");
                (there == number)
                    .then_some(())
                    .ok_or(format!("{stage}: {action}: {there}"))
            })
            .await;
        }
        assert_eq!(world.cloud.resources(), before, "{action}");
    }
}
