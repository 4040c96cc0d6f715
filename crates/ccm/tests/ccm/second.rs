//! Services of two address families where one load balancer has one address.

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};
use testbed::eventually;

use crate::families::{families, furnished};
use crate::services::{NAME, octavia_where};
use crate::world::World;

const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// A world with an older Octavia, and workers with an address of each family.
async fn older(conf: &str, workers: &[&str]) -> World {
    let mut world = World::open(conf).await;
    world.has_older_octavia = true;
    world.run();
    furnished(world, workers).await
}

fn both() -> Value {
    families(&["IPv4", "IPv6"], "RequireDualStack")
}

async fn addresses(world: &World, name: &str) -> Vec<String> {
    let service = world.cluster.api::<Service>().get_opt(name).await.unwrap();
    let status = service.and_then(|service| service.status?.load_balancer?.ingress);
    let ingress = status.unwrap_or_default();
    ingress.into_iter().filter_map(|one| one.ip).collect()
}

/// Waits until a Service publishes this many addresses.
async fn with_addresses(world: &World, name: &str, count: usize) -> Vec<String> {
    eventually(&format!("{count} addresses of {name}"), || async {
        let found = addresses(world, name).await;
        match found.len() == count {
            true => Ok(found),
            false => Err(format!("{found:?} {:?}", world.writes())),
        }
    })
    .await
}

/// The load balancers by their names.
async fn names(world: &World) -> Vec<String> {
    let all = world.octavia("loadbalancers").await;
    let name = |one: &Value| one["name"].as_str().unwrap().to_owned();
    let mut names: Vec<_> = all.iter().map(name).collect();
    names.sort();
    names
}

#[tokio::test(start_paused = true)]
async fn an_older_octavia_gives_each_family_a_load_balancer_and_both_addresses_are_published() {
    let world = older("", &["worker-1"]).await;
    let before = world.cloud.resources();
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], both())
        .await;
    let all = with_addresses(&world, "web", 2).await;
    assert!(
        all[0].starts_with("127.30.") && all[1].starts_with("fd00:10::"),
        "{all:?}"
    );
    assert_eq!(
        names(&world).await,
        [NAME.to_owned(), format!("{NAME}_IPv6")]
    );
    let uid = world.published("web").await.uid().unwrap();
    for balancer in world.octavia("loadbalancers").await {
        let tags = balancer["tags"].to_string();
        assert!(tags.contains("ferrostack-cluster="), "{tags}");
        assert!(
            tags.contains(&format!("ferrostack-service={uid}")),
            "{tags}"
        );
    }
    assert_eq!(world.members().await, ["worker-1"; 4]);
    let writes = [
        ("POST load-balancer /v2.0/lbaas/loadbalancers".to_owned(), 2),
        ("POST network /v2.0/floatingips".to_owned(), 1),
    ];
    assert_eq!(world.writes(), writes.into());
    let change = json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8", "fd00::/8"]}});
    world.cluster.merge::<Service>("web", change).await;
    octavia_where(&world, "listeners", |list| {
        let with = |ranges: Value| list.iter().filter(|l| l["allowed_cidrs"] == ranges).count();
        with(json!(["10.0.0.0/8"])) == 2 && with(json!(["fd00::/8"])) == 2
    })
    .await;
    assert_eq!(
        world
            .count_events("web", "LoadBalancerDualStackIgnored")
            .await,
        0
    );
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_service_of_two_load_balancers_that_is_in_order_is_never_written_again() {
    let mut world = older(
        "[LoadBalancer]\nmanage-security-groups = true\n",
        &["worker-1"],
    )
    .await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], both()).await;
    with_addresses(&world, "web", 2).await;
    world.published("web").await;
    world.cloud.reset_requests();
    for round in 1..3 {
        world.kill().await;
        world.run();
        eventually("lists", || async {
            let all = world.requests();
            let lists = all.get("GET load-balancer /v2.0/lbaas/loadbalancers");
            (lists.copied().unwrap_or(0) > round * 2)
                .then_some(())
                .ok_or_else(|| format!("{all:?}"))
        })
        .await;
    }
    assert!(world.writes().is_empty(), "{:?}", world.writes());
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn ipv4_as_the_second_family_has_the_floating_ip_unless_the_service_is_internal() {
    let world = older("", &["worker-1"]).await;
    let swapped = families(&["IPv6", "IPv4"], "PreferDualStack");
    world.service("web", &[("TCP", 80)], swapped.clone()).await;
    let all = with_addresses(&world, "web", 2).await;
    assert!(
        all[0].starts_with("fd00:10::") && all[1].starts_with("127.30."),
        "{all:?}"
    );
    assert_eq!(
        names(&world).await,
        [NAME.to_owned(), format!("{NAME}_IPv4")]
    );
    let internal = json!({"metadata": {"annotations": {INTERNAL: "true"}}});
    world.cluster.merge::<Service>("web", internal).await;
    eventually("the virtual address", || async {
        let all = addresses(&world, "web").await;
        let is_internal = all.get(1).is_some_and(|second| second.starts_with("10.0."));
        is_internal.then_some(()).ok_or_else(|| format!("{all:?}"))
    })
    .await;
    assert!(world.floating_ips().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_rejects_additional_addresses_has_two_load_balancers_and_is_not_asked_again()
{
    let world = furnished(World::start("").await, &["worker-1"]).await;
    let rule = json!({"service": "load-balancer", "method": "POST", "route": "/v2.0/lbaas/loadbalancers",
        "status": 501, "count": 1});
    world.request("POST", "/_simulator/faults", rule).await;
    for name in ["web", "other"] {
        world.service(name, &[("TCP", 80)], both()).await;
        with_addresses(&world, name, 2).await;
    }
    assert_eq!(names(&world).await.len(), 4);
    let creations = world.writes()["POST load-balancer /v2.0/lbaas/loadbalancers"];
    assert_eq!(creations, 5);
}

#[tokio::test(start_paused = true)]
async fn a_second_family_that_comes_later_gets_a_load_balancer_and_loses_it_with_the_family() {
    let world = furnished(World::start("").await, &["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.cluster.merge::<Service>("web", both()).await;
    with_addresses(&world, "web", 2).await;
    world.worker("worker-2").await;
    world
        .members_are(&["worker-1", "worker-1", "worker-2", "worker-2"])
        .await;
    let one = families(&["IPv4"], "SingleStack");
    world.cluster.merge::<Service>("web", one).await;
    with_addresses(&world, "web", 1).await;
    octavia_where(&world, "loadbalancers", |list| list.len() == 1).await;
    world.members_are(&["worker-1", "worker-2"]).await;
    world.delete_service("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_second_load_balancer_that_is_deleted_or_changed_by_hand_is_repaired() {
    let world = older("", &["worker-1"]).await;
    world.service("web", &[("TCP", 80)], both()).await;
    let all = with_addresses(&world, "web", 2).await;
    let second = |list: &[Value]| {
        let mut all = list.iter();
        let found = all.find(|one| one["name"] == format!("{NAME}_IPv6").as_str());
        found.map(|one| one["id"].as_str().unwrap().to_owned())
    };
    let id = second(&world.octavia("loadbalancers").await).unwrap();
    let path = format!("/load-balancer/v2.0/lbaas/loadbalancers/{id}?cascade=true");
    world.request("DELETE", &path, Value::Null).await;
    octavia_where(&world, "loadbalancers", |list| {
        second(list).is_some_and(|other| other != id)
    })
    .await;
    let after = with_addresses(&world, "web", 2).await;
    assert_eq!(all[0], after[0]);
    let id = second(&world.octavia("loadbalancers").await).unwrap();
    let listeners = world.octavia("listeners").await;
    let of_second = |l: &&Value| l["loadbalancers"][0]["id"] == id.as_str();
    let listener = listeners.iter().find(of_second).unwrap()["id"].clone();
    let path = format!(
        "/load-balancer/v2.0/lbaas/listeners/{}",
        listener.as_str().unwrap()
    );
    world.request("DELETE", &path, Value::Null).await;
    octavia_where(&world, "listeners", |list| {
        list.len() == 2 && list.iter().all(|l| l["id"] != listener)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_with_the_name_of_the_second_one_is_left_alone() {
    let world = older("", &["worker-1"]).await;
    let name = format!("{NAME}_IPv6");
    let foreign = json!({"loadbalancer": {"name": name, "vip_subnet_id": world.subnet,
        "tags": [name, "ferrostack-cluster=another"]}});
    let path = "/load-balancer/v2.0/lbaas/loadbalancers";
    world.request("POST", path, foreign).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], both()).await;
    with_addresses(&world, "web", 2).await;
    assert_eq!(names(&world).await.len(), 3);
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

/// The life of a Service with two load balancers.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Both,
    One,
    BothAgain,
    ClusterIp,
}

impl Phase {
    const ALL: [Self; 4] = [Self::Both, Self::One, Self::BothAgain, Self::ClusterIp];

    async fn begin(self, world: &World) {
        match self {
            Self::Both => world.service("web", &[("TCP", 80)], both()).await,
            Self::One => {
                let one = families(&["IPv4"], "SingleStack");
                drop(world.cluster.merge::<Service>("web", one).await);
            }
            Self::BothAgain => drop(world.cluster.merge::<Service>("web", both()).await),
            Self::ClusterIp => {
                let change = json!({"spec": {"type": "ClusterIP"}});
                drop(world.cluster.merge::<Service>("web", change).await);
            }
        }
    }

    async fn problem(self, world: &World) -> Option<String> {
        let addresses = addresses(world, "web").await.len();
        let ids = world.octavia("loadbalancers").await.len();
        let service = world.cluster.api::<Service>().get("web").await.unwrap();
        let recorded = service.annotations().len();
        let is = (addresses, ids, recorded);
        let wanted = match self {
            Self::Both | Self::BothAgain => (2, 2, 2),
            Self::One => (1, 1, 2),
            Self::ClusterIp => (0, 0, 0),
        };
        (is != wanted || self == Self::ClusterIp && !service.finalizers().is_empty())
            .then(|| format!("{is:?}"))
    }
}

#[tokio::test(start_paused = true)]
async fn killed_at_any_write_two_load_balancers_end_the_same() {
    let mut world = older("", &["worker-1"]).await;
    world.kill().await;
    let before = world.cloud.resources();
    for nth in 1.. {
        let mut was_cut = false;
        for phase in Phase::ALL {
            world.run();
            let writes = world.cut_at(nth);
            phase.begin(&world).await;
            let seen = &world;
            eventually("the cut", || async {
                match (writes.reached(), phase.problem(seen).await) {
                    (true, _) | (_, None) => Ok(()),
                    (_, Some(problem)) => Err(problem),
                }
            })
            .await;
            world.kill().await;
            world.cloud.on_write(|_| {});
            was_cut |= writes.reached();
            world.run();
            let seen = &world;
            eventually(&format!("{phase:?}, killed at write {nth}"), || async {
                phase.problem(seen).await.map_or(Ok(()), Err)
            })
            .await;
            world.kill().await;
        }
        assert_eq!(world.cloud.resources(), before, "killed at write {nth}");
        world.cluster.delete::<Service>("web").await;
        world.cluster.gone::<Service>("web").await;
        if !was_cut {
            assert!(nth > 3, "only {nth} writes");
            break;
        }
    }
}
