//! Every request to the cloud fails once in every way, and the end is the same.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};
use testbed::eventually;

use crate::killing::{Phase, prepare};
use crate::services::{octavia_where, world};
use crate::world::World;

/// The ways in which a request fails.
pub(crate) fn classes() -> Vec<Value> {
    vec![
        json!({"status": 500}),
        json!({"status": 503, "retry_after": 0}),
        json!({"status": 429, "retry_after": 0}),
        json!({"status": 409}),
        json!({"status": 403}),
        json!({"status": 401}),
        json!({"drop": true}),
        json!({"garbage": true}),
        // The request is executed, and its answer is lost.
        json!({"status": 504, "after_change": true}),
        json!({"drop": true, "after_change": true}),
        json!({"garbage": true, "after_change": true}),
    ]
}

/// The writes of a Service's life, as the cloud names them.
const WRITES: &[(&str, &str, &str)] = &[
    ("load-balancer", "POST", "/v2.0/lbaas/loadbalancers"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/loadbalancers/{id}"),
    ("load-balancer", "POST", "/v2.0/lbaas/listeners"),
    ("load-balancer", "PUT", "/v2.0/lbaas/listeners/{id}"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/listeners/{id}"),
    ("load-balancer", "POST", "/v2.0/lbaas/pools"),
    ("load-balancer", "PUT", "/v2.0/lbaas/pools/{id}"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/pools/{id}"),
    (
        "load-balancer",
        "PUT",
        "/v2.0/lbaas/pools/{pool_id}/members",
    ),
    ("load-balancer", "POST", "/v2.0/lbaas/healthmonitors"),
    ("load-balancer", "PUT", "/v2.0/lbaas/healthmonitors/{id}"),
    ("load-balancer", "DELETE", "/v2.0/lbaas/healthmonitors/{id}"),
    ("network", "POST", "/v2.0/floatingips"),
    ("network", "DELETE", "/v2.0/floatingips/{id}"),
];

pub(crate) async fn inject(world: &World, service: &str, method: &str, route: &str, class: &Value) {
    let mut rule = class.clone();
    rule["service"] = json!(service);
    rule["method"] = json!(method);
    rule["route"] = json!(route);
    rule["count"] = json!(1);
    world.request("POST", "/_simulator/faults", rule).await;
}

/// The rules that have not applied yet.
pub(crate) async fn left(world: &World) -> Vec<Value> {
    let all = world
        .request("GET", "/_simulator/faults", Value::Null)
        .await;
    all["faults"].as_array().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn every_write_fails_once_in_every_way_and_the_end_is_the_same() {
    let world = world(&["worker-1"]).await;
    all_fail(world, WRITES, &Phase::ALL).await;
}

async fn all_fail(world: World, writes: &[(&str, &str, &str)], phases: &[Phase]) {
    prepare(&world).await;
    let before = world.cloud.resources();
    for class in classes() {
        for (service, method, route) in writes {
            inject(&world, service, method, route, &class).await;
        }
        for phase in phases {
            phase.begin(&world).await;
            phase.complete(&world).await;
            if world.manages_groups && *phase != Phase::Deleted {
                crate::groups::settled(&world, "web", 1).await;
            }
        }
        assert_eq!(
            left(&world).await,
            Vec::<Value>::new(),
            "{class}: requests that did not happen"
        );
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}

/// The requests for the security group of a Service; the port of a node is read before it is changed.
const OF_GROUPS: &[(&str, &str, &str)] = &[
    ("network", "POST", "/v2.0/security-groups"),
    ("network", "DELETE", "/v2.0/security-groups/{id}"),
    ("network", "POST", "/v2.0/security-group-rules"),
    ("network", "DELETE", "/v2.0/security-group-rules/{id}"),
    ("network", "GET", "/v2.0/ports/{id}"),
    ("network", "PUT", "/v2.0/ports/{id}"),
];

#[tokio::test(start_paused = true)]
async fn every_request_for_a_security_group_fails_once_in_every_way_and_the_end_is_the_same() {
    let world = crate::groups::world(&["worker-1"]).await;
    let phases = [Phase::Created, Phase::Changed, Phase::Deleted];
    all_fail(world, OF_GROUPS, &phases).await;
}

/// The requests that a driver without bulk requests gets for members.
const OF_MEMBERS: [(&str, &str); 3] = [
    ("POST", "/v2.0/lbaas/pools/{pool_id}/members"),
    ("PUT", "/v2.0/lbaas/pools/{pool_id}/members/{id}"),
    ("DELETE", "/v2.0/lbaas/pools/{pool_id}/members/{id}"),
];

/// Waits for a number of members, all with this monitor port.
async fn members_are(world: &World, count: usize, monitor_port: &Value) {
    eventually(&format!("{count} members"), || async {
        let members = world.all_members().await;
        let is = |member: &Value| member["monitor_port"] == *monitor_port;
        let all = members.len() == count && members.iter().all(is);
        all.then_some(()).ok_or_else(|| format!("{members:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn every_write_of_a_single_member_fails_once_in_every_way_and_the_end_is_the_same() {
    let conf = "[LoadBalancer]\nprovider-requires-serial-api-calls = true\n";
    let world = World::serving(conf, &["worker-1", "worker-2"]).await;
    let before = world.cloud.resources();
    let cluster = json!({"spec": {"externalTrafficPolicy": "Cluster"}});
    let local = json!({"spec": {"externalTrafficPolicy": "Local"}});
    for class in classes() {
        for (method, route) in OF_MEMBERS {
            inject(&world, "load-balancer", method, route, &class).await;
        }
        world.service("web", &[("TCP", 80)], cluster.clone()).await;
        world.published("web").await;
        members_are(&world, 2, &Value::Null).await;
        world.cluster.merge::<Service>("web", local.clone()).await;
        let service = world.cluster.api::<Service>().get("web").await.unwrap();
        let port = json!(service.spec.unwrap().health_check_node_port.unwrap());
        members_are(&world, 2, &port).await;
        world.exclude("worker-2").await;
        members_are(&world, 1, &port).await;
        world.include("worker-2").await;
        members_are(&world, 2, &port).await;
        assert_eq!(left(&world).await, Vec::<Value>::new(), "{class}");
        world.delete_service("web").await;
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}

/// The writes of a Service with the driver ovn whose monitors are switched on and off.
const OF_OVN: [(&str, &str); 6] = [
    ("POST", "/v2.0/lbaas/loadbalancers"),
    ("PUT", "/v2.0/lbaas/pools/{pool_id}/members"),
    ("POST", "/v2.0/lbaas/healthmonitors"),
    ("PUT", "/v2.0/lbaas/healthmonitors/{id}"),
    ("DELETE", "/v2.0/lbaas/healthmonitors/{id}"),
    ("DELETE", "/v2.0/lbaas/loadbalancers/{id}"),
];

#[tokio::test(start_paused = true)]
async fn every_write_of_udp_without_and_with_monitors_on_ovn_fails_once_and_the_end_is_the_same() {
    let world = World::serving(crate::ovn::CONF, &["worker-1", "worker-2"]).await;
    let before = world.cloud.resources();
    let monitors = async |delay: &Value, count: usize| {
        let annotation = |name: &str| format!("loadbalancer.openstack.org/{name}");
        let enabled = if delay.is_null() { "false" } else { "true" };
        let change = json!({"metadata": {"annotations": {
            annotation("enable-health-monitor"): enabled, annotation("health-monitor-delay"): delay,
        }}});
        world.cluster.merge::<Service>("web", change).await;
        let delay = delay.as_str().and_then(|text| text.parse::<i64>().ok());
        octavia_where(&world, "healthmonitors", |list| {
            list.len() == count && list.iter().all(|it| it["delay"].as_i64() == delay)
        })
        .await;
    };
    for class in classes() {
        for (method, route) in OF_OVN {
            inject(&world, "load-balancer", method, route, &class).await;
        }
        world
            .service("web", &[("UDP", 53), ("TCP", 53)], json!({}))
            .await;
        world.published("web").await;
        monitors(&json!("6"), 2).await;
        monitors(&json!("7"), 2).await;
        monitors(&Value::Null, 0).await;
        world.exclude("worker-2").await;
        world.members_are(&["worker-1", "worker-1"]).await;
        world.include("worker-2").await;
        let both = ["worker-1", "worker-1", "worker-2", "worker-2"];
        world.members_are(&both).await;
        world.delete_service("web").await;
        assert_eq!(left(&world).await, Vec::<Value>::new(), "{class}");
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn every_list_fails_once_in_every_way_and_the_end_is_the_same() {
    let mut world = world(&["worker-1"]).await;
    prepare(&world).await;
    let before = world.cloud.resources();
    let kinds = ["loadbalancers", "listeners", "pools", "healthmonitors"];
    let mut routes: Vec<_> = kinds
        .map(|kind| ("load-balancer", format!("/v2.0/lbaas/{kind}")))
        .into();
    let kinds = [
        "floatingips",
        "networks",
        "subnets",
        "ports",
        "security-groups",
    ];
    routes.extend(kinds.map(|kind| ("network", format!("/v2.0/{kind}"))));
    for class in classes() {
        for phase in Phase::ALL {
            world.kill().await;
            for (service, route) in &routes {
                inject(&world, service, "GET", route, &class).await;
            }
            if phase == Phase::Secured {
                inject(&world, "key-manager", "GET", "/v1/containers/{id}", &class).await;
            }
            world.run();
            phase.begin(&world).await;
            // Requests of the test would take part.
            eventually("the faults", || async {
                let left = left(&world).await;
                left.is_empty()
                    .then_some(())
                    .ok_or_else(|| format!("{left:?}"))
            })
            .await;
            phase.complete(&world).await;
        }
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}

/// Requests for a load balancer of a user, with changed tags, and for a floating IP of a user, which is attached and
/// detached.
const OF_OTHERS: [(&str, &str, &str); 2] = [
    ("load-balancer", "PUT", "/v2.0/lbaas/loadbalancers/{id}"),
    ("network", "PUT", "/v2.0/floatingips/{id}"),
];

#[tokio::test(start_paused = true)]
async fn every_change_of_what_users_own_fails_once_and_it_is_as_before_in_the_end() {
    let world = world(&["worker-1"]).await;
    let shared = crate::sharing::by_hand(&world).await;
    let floating = json!({"floatingip": {"floating_network_id": world.external_network().await}});
    let floating = world
        .request("POST", "/network/v2.0/floatingips", floating)
        .await;
    let address = floating["floatingip"]["floating_ip_address"]
        .as_str()
        .unwrap();
    let before = world.cloud.resources();
    let inject_all = async |class: &Value| {
        for (service, method, route) in OF_OTHERS {
            inject(&world, service, method, route, class).await;
        }
    };
    for class in classes() {
        inject_all(&class).await;
        crate::sharing::guest(&world, "guest", 80, &shared).await;
        world.published("guest").await;
        let asked = json!({"spec": {"loadBalancerIP": address}});
        world.service("web", &[("TCP", 80)], asked).await;
        assert_eq!(crate::world::ip(&world.published("web").await), address);
        assert_eq!(
            left(&world).await,
            Vec::<Value>::new(),
            "{class}: requests that did not happen"
        );
        inject_all(&class).await;
        let internal = json!({"metadata": {"annotations": {
            "service.beta.kubernetes.io/openstack-internal-load-balancer": "true"}}, "spec": {"loadBalancerIP": null}});
        world.cluster.merge::<Service>("web", internal).await;
        eventually("the floating IP to be free", || async {
            let ips = world.floating_ips().await;
            let free = ips
                .iter()
                .any(|it| it["floating_ip_address"] == address && it["port_id"].is_null());
            free.then_some(()).ok_or_else(|| format!("{ips:?}"))
        })
        .await;
        world.delete_service("web").await;
        world.delete_service("guest").await;
        assert_eq!(
            left(&world).await,
            Vec::<Value>::new(),
            "{class}: requests that did not happen"
        );
        assert_eq!(world.cloud.resources(), before, "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failover_that_fails_is_requested_again_unless_it_is_denied() {
    for class in classes() {
        let mut world = world(&["worker-1"]).await;
        world.kill().await;
        crate::recovery::administrator(&world).await;
        world.run();
        world.service("web", &[("TCP", 80)], json!({})).await;
        world.published("web").await;
        let route = "/v2.0/lbaas/loadbalancers/{id}/failover";
        inject(&world, "load-balancer", "PUT", route, &class).await;
        let id = crate::recovery::fail(&world).await;
        if class["status"] == 403 {
            world
                .event_with(
                    "web",
                    "LoadBalancerFailover",
                    "may not request its failover",
                )
                .await;
            continue;
        }
        octavia_where(&world, "loadbalancers", |list| {
            list[0]["id"] == id && list[0]["provisioning_status"] == "ACTIVE"
        })
        .await;
        assert_eq!(left(&world).await, Vec::<Value>::new(), "{class}");
        let count = world.requests()[&format!("PUT load-balancer {route}")];
        assert!((1..=3).contains(&count), "{class}: {count}");
    }
}

#[tokio::test(start_paused = true)]
async fn lists_of_members_fail_once_in_every_way_and_no_member_is_written() {
    let mut world = world(&["worker-1"]).await;
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], json!({}))
        .await;
    world.published("web").await;
    world.changeable().await;
    for class in classes() {
        world.kill().await;
        world.cloud.reset_requests();
        let route = "/v2.0/lbaas/pools/{pool_id}/members";
        inject(&world, "load-balancer", "GET", route, &class).await;
        world.run();
        eventually("the failed list", || async {
            let left = left(&world).await;
            left.is_empty()
                .then_some(())
                .ok_or_else(|| format!("{left:?}"))
        })
        .await;
        // The later change shows that the lists were read at last.
        let is_eight = world.octavia("listeners").await[0]["connection_limit"] == 8;
        let limit = if is_eight { "9" } else { "8" };
        let change = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/connection-limit": limit}}});
        world.cluster.merge::<Service>("web", change).await;
        let limit: i64 = limit.parse().unwrap();
        octavia_where(&world, "listeners", |list| {
            list.iter().all(|it| it["connection_limit"] == limit)
        })
        .await;
        assert_eq!(
            world.writes().get(&format!("PUT load-balancer {route}")),
            None,
            "{class}"
        );
        world.members_are(&["worker-1", "worker-1"]).await;
        world.changeable().await;
    }
}

#[tokio::test(start_paused = true)]
async fn lists_of_servers_and_ports_fail_once_in_every_way_and_no_node_is_deleted() {
    let mut world = World::start("").await;
    for (number, class) in classes().into_iter().enumerate() {
        world.kill().await;
        inject(&world, "compute", "GET", "/v2.1/servers/detail", &class).await;
        inject(&world, "network", "GET", "/v2.0/ports", &class).await;
        world.run();
        let name = format!("worker-{number}");
        world.worker(&name).await;
        assert_eq!(left(&world).await, Vec::<Value>::new(), "{class}");
        // Nodes that are not ready are looked up again and again.
        world.ready(&name, "Unknown").await;
        let nodes = world.nodes().list(&Default::default()).await.unwrap();
        assert_eq!(nodes.items.len(), number + 1, "{class}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_login_without_a_project_says_so() {
    let world = World::open("").await;
    let user = json!({"user": {"name": "loner", "password": "secret", "domain_id": "default"}});
    world.administer("POST", "/identity/v3/users", user).await;
    let mut settings = crate::world::settings(&world.cloud, "");
    settings.cloud.credential = openstack::config::Credential::Password {
        user: openstack::config::UserRef::Named(
            "loner".to_owned(),
            openstack::config::DomainRef::Id("default".to_owned()),
        ),
        password: "secret".into(),
        scope: openstack::config::Scope::Default,
    };
    world.settings.send(std::sync::Arc::new(settings)).unwrap();
    let mut world = world;
    world.run();
    world.service("web", &[("TCP", 80)], json!({})).await;
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(note.contains("the login is for no project"), "{note}");
}
