//! Services of type LoadBalancer.

use api::k8s_openapi::api::core::v1::{Namespace, Service};
use kube::{Api, ResourceExt};
use serde_json::{Value, json};

use crate::world::{World, eventually, ip, ports_of};

pub(crate) const NAME: &str = "kube_service_kubernetes_default_web";

pub(crate) async fn world(workers: &[&str]) -> World {
    let world = World::serving("", workers).await;
    world.cloud.reset_requests();
    world
}

/// Waits until `check` returns true for Octavia's resources of a kind.
pub(crate) async fn octavia_where(world: &World, kind: &str, check: impl Fn(&[Value]) -> bool) {
    eventually(&format!("{kind} to be as wanted"), || async {
        let all = world.octavia(kind).await;
        check(&all).then_some(()).ok_or_else(|| format!("{all:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_gets_its_load_balancer_in_two_writes_and_publishes_the_floating_ip() {
    let world = world(&["worker-1", "worker-2"]).await;
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], json!({}))
        .await;
    let service = world.published("web").await;
    assert_eq!(
        world.writes(),
        [
            ("POST load-balancer /v2.0/lbaas/loadbalancers".to_owned(), 1),
            ("POST network /v2.0/floatingips".to_owned(), 1)
        ]
        .into()
    );
    let (balancers, ips) = (
        world.octavia("loadbalancers").await,
        world.floating_ips().await,
    );
    let balancer = &balancers[0];
    assert_eq!(
        (balancers.len(), balancer["name"].as_str()),
        (1, Some(NAME))
    );
    assert_eq!(
        balancer["description"],
        "Kubernetes external service default/web from cluster kubernetes"
    );
    assert_eq!(
        ips[0]["floating_ip_address"].as_str(),
        Some(ip(&service).as_str())
    );
    assert_eq!(ips[0]["port_id"], balancer["vip_port_id"]);
    assert!(ips[0]["description"].as_str().unwrap().starts_with(
        "Floating IP for Kubernetes external service default/web from cluster kubernetes"
    ));
    assert_eq!(
        service.annotations()["loadbalancer.openstack.org/load-balancer-id"],
        balancer["id"].as_str().unwrap()
    );
    assert_eq!(
        service.annotations()["loadbalancer.openstack.org/load-balancer-address"],
        ip(&service)
    );
    assert_eq!(
        service.finalizers(),
        ["service.kubernetes.io/load-balancer-cleanup"]
    );
    let mut listeners: Vec<_> = world
        .octavia("listeners")
        .await
        .iter()
        .map(|l| (l["name"].clone(), l["protocol"].clone()))
        .collect();
    listeners.sort_by_key(|(name, _)| name.to_string());
    assert_eq!(
        listeners,
        [
            (json!(format!("listener_0_{NAME}")), json!("TCP")),
            (json!(format!("listener_1_{NAME}")), json!("UDP"))
        ]
    );
    assert_eq!(
        world.members().await,
        ["worker-1", "worker-1", "worker-2", "worker-2"]
    );
    world.event("web", "EnsuredLoadBalancer").await;
}

#[tokio::test(start_paused = true)]
async fn a_service_in_order_is_never_written_to_the_cloud_again() {
    let mut world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.cloud.reset_requests();
    for round in 0..3 {
        world
            .cluster
            .merge::<Service>(
                "web",
                json!({"metadata": {"annotations": {"poked": round.to_string()}}}),
            )
            .await;
        world.kill().await;
        world.run();
        eventually("lists", || async {
            let lists = world
                .requests()
                .get("GET load-balancer /v2.0/lbaas/loadbalancers")
                .copied()
                .unwrap_or(0);
            (lists > round * 2 + 1)
                .then_some(())
                .ok_or_else(|| format!("{:?}", world.requests()))
        })
        .await;
    }
    assert!(world.writes().is_empty(), "{:?}", world.writes());
}

#[tokio::test(start_paused = true)]
async fn nodes_that_come_and_go_change_the_members_in_one_request_for_each_pool() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.worker("worker-2").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    world.exclude("worker-1").await;
    world.members_are(&["worker-2"]).await;
    let sets = world
        .writes()
        .remove("PUT load-balancer /v2.0/lbaas/pools/{pool_id}/members");
    assert!(sets.is_none_or(|count| count <= 2), "{:?}", world.writes());
}

#[tokio::test(start_paused = true)]
async fn the_member_of_a_deleted_node_leaves_at_once_while_its_server_is_still_there() {
    let world = world(&["worker-1", "worker-2"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let params = Default::default();
    world.nodes().delete("worker-1", &params).await.unwrap();
    eventually("the member to go", || async {
        let members = world.members().await;
        (members == ["worker-2"])
            .then_some(())
            .ok_or_else(|| format!("{members:?}"))
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn ports_settings_and_monitors_follow_the_service() {
    let world = world(&["worker-1"]).await;
    world
        .service("web", &[("TCP", 80), ("TCP", 443)], json!({}))
        .await;
    world.published("web").await;
    world
        .cluster
        .merge::<Service>(
            "web",
            json!({"spec": {"ports": ports_of(&[("TCP", 443), ("UDP", 53)])}}),
        )
        .await;
    let ports = |list: &[Value]| {
        let mut ports: Vec<_> = list
            .iter()
            .map(|l| format!("{} {}", l["protocol"].as_str().unwrap(), l["protocol_port"]))
            .collect();
        ports.sort();
        ports
    };
    octavia_where(&world, "listeners", |list| {
        ports(list) == ["TCP 443", "UDP 53"]
    })
    .await;
    octavia_where(&world, "pools", |list| list.len() == 2).await;
    world
        .cluster
        .merge::<Service>(
            "web",
            json!({"metadata": {"annotations": {
                "loadbalancer.openstack.org/lb-method": "LEAST_CONNECTIONS",
                "loadbalancer.openstack.org/enable-health-monitor": "true",
                "loadbalancer.openstack.org/health-monitor-delay": "7",
            }}, "spec": {"loadBalancerSourceRanges": ["10.0.0.0/8", "192.168.1.7/24"]}}),
        )
        .await;
    octavia_where(&world, "pools", |list| {
        list.iter()
            .all(|pool| pool["lb_algorithm"] == "LEAST_CONNECTIONS")
    })
    .await;
    octavia_where(&world, "healthmonitors", |list| {
        list.len() == 2 && list.iter().all(|m| m["delay"] == 7)
    })
    .await;
    octavia_where(&world, "listeners", |list| {
        list.iter()
            .all(|l| l["allowed_cidrs"] == json!(["10.0.0.0/8", "192.168.1.0/24"]))
    })
    .await;
    let off = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/enable-health-monitor": null}}});
    world.cluster.merge::<Service>("web", off).await;
    octavia_where(&world, "healthmonitors", <[Value]>::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_or_changed_by_hand_is_repaired() {
    let world = world(&["worker-1"]).await;
    world
        .service("web", &[("TCP", 80), ("TCP", 443)], json!({}))
        .await;
    world.published("web").await;
    let listener = world.octavia("listeners").await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    world
        .request(
            "DELETE",
            &format!("/load-balancer/v2.0/lbaas/listeners/{listener}"),
            Value::Null,
        )
        .await;
    octavia_where(&world, "listeners", |list| {
        list.len() == 2 && list.iter().all(|l| l["id"] != listener.as_str())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_that_goes_leaves_nothing_in_the_cloud() {
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_changes_its_type_loses_load_balancer_address_and_annotations() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world
        .cluster
        .merge::<Service>("web", json!({"spec": {"type": "ClusterIP"}}))
        .await;
    eventually("the service to be as before", || async {
        let service = world.cluster.api::<Service>().get("web").await.unwrap();
        let clean = service.finalizers().is_empty()
            && service.annotations().is_empty()
            && ip(&service).is_empty();
        clean
            .then_some(())
            .ok_or_else(|| serde_json::to_string(&service).unwrap())
    })
    .await;
    assert!(world.octavia("loadbalancers").await.is_empty());
    assert!(world.floating_ips().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_internal_service_publishes_its_virtual_address_and_gains_a_floating_ip_when_it_is_no_longer_internal()
 {
    let world = world(&["worker-1"]).await;
    let key = "service.beta.kubernetes.io/openstack-internal-load-balancer";
    world
        .service(
            "web",
            &[("TCP", 80)],
            json!({"metadata": {"annotations": {key: "true"}}}),
        )
        .await;
    let service = world.published("web").await;
    assert!(ip(&service).starts_with("10.0."), "{}", ip(&service));
    assert!(world.floating_ips().await.is_empty());
    world
        .cluster
        .merge::<Service>("web", json!({"metadata": {"annotations": {key: "false"}}}))
        .await;
    eventually("the floating IP", || async {
        let service = world.cluster.api::<Service>().get("web").await.unwrap();
        (!ip(&service).starts_with("10.0."))
            .then_some(())
            .ok_or_else(|| ip(&service))
    })
    .await;
}

/// Another cluster with the same name has a Service with the same name: with the Go manager, both would use one load
/// balancer.
#[tokio::test(start_paused = true)]
async fn the_load_balancer_of_a_cluster_of_the_same_name_is_left_alone() {
    let world = world(&["worker-1"]).await;
    let foreign = json!({"loadbalancer": {"name": NAME, "vip_subnet_id": world.subnet, "tags": [NAME, "ferrostack-cluster=another"]}});
    let foreign = world
        .request("POST", "/load-balancer/v2.0/lbaas/loadbalancers", foreign)
        .await;
    let unmarked =
        json!({"loadbalancer": {"name": NAME, "vip_subnet_id": world.subnet, "tags": [NAME]}});
    world
        .request("POST", "/load-balancer/v2.0/lbaas/loadbalancers", unmarked)
        .await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    assert_eq!(world.octavia("loadbalancers").await.len(), 3);
    world.cluster.delete::<Service>("web").await;
    octavia_where(&world, "loadbalancers", |list| list.len() == 2).await;
    assert!(
        world
            .octavia("loadbalancers")
            .await
            .iter()
            .any(|lb| lb["id"] == foreign["loadbalancer"]["id"])
    );
}

#[tokio::test(start_paused = true)]
async fn the_load_balancer_that_the_go_manager_made_is_adopted_by_its_recorded_id_name_and_tag() {
    let world = world(&["worker-1"]).await;
    let created =
        json!({"loadbalancer": {"name": NAME, "vip_subnet_id": world.subnet, "tags": [NAME]}});
    let created = world
        .request("POST", "/load-balancer/v2.0/lbaas/loadbalancers", created)
        .await;
    let id = created["loadbalancer"]["id"].as_str().unwrap();
    let annotations = json!({"loadbalancer.openstack.org/load-balancer-id": id});
    world
        .service(
            "web",
            &[("TCP", 80)],
            json!({"metadata": {"annotations": annotations}}),
        )
        .await;
    let uid = Api::<Namespace>::all(world.cluster.client.clone())
        .get("kube-system")
        .await
        .unwrap()
        .uid()
        .unwrap();
    octavia_where(&world, "loadbalancers", |list| {
        list.len() == 1
            && list[0]["id"] == id
            && list[0]["tags"]
                .as_array()
                .unwrap()
                .contains(&json!(format!("ferrostack-cluster={uid}")))
    })
    .await;
    octavia_where(&world, "listeners", |list| list.len() == 1).await;
    world.published("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_recorded_id_that_leads_nowhere_does_not_stop_the_creation_and_one_of_others_does() {
    let world = world(&["worker-1"]).await;
    let gone = json!({"loadbalancer.openstack.org/load-balancer-id": "8d1c1a94-0000-4000-8000-000000000000"});
    world
        .service(
            "web",
            &[("TCP", 80)],
            json!({"metadata": {"annotations": gone}}),
        )
        .await;
    world.published("web").await;
    let foreign =
        json!({"loadbalancer": {"name": "kube_service_x_y_z", "vip_subnet_id": world.subnet}});
    let foreign = world
        .request("POST", "/load-balancer/v2.0/lbaas/loadbalancers", foreign)
        .await;
    let annotations =
        json!({"loadbalancer.openstack.org/load-balancer-id": foreign["loadbalancer"]["id"]});
    world
        .service(
            "shared",
            &[("TCP", 80)],
            json!({"metadata": {"annotations": annotations}}),
        )
        .await;
    let note = world.event("shared", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains("(kube_service_x_y_z) is not that of this Service"),
        "{note}"
    );
}

#[tokio::test(start_paused = true)]
async fn source_ranges_that_the_driver_ovn_does_not_have_are_reported() {
    let conf = "[LoadBalancer]\nlb-provider = ovn\nlb-method = SOURCE_IP_PORT\n";
    let world = World::serving(conf, &["worker-1"]).await;
    world
        .service(
            "web",
            &[("TCP", 80)],
            json!({"spec": {"loadBalancerSourceRanges": ["10.0.0.0/8"]}}),
        )
        .await;
    let note = world.event("web", "LoadBalancerSourceRangesIgnored").await;
    assert!(note.contains("10.0.0.0/8"), "{note}");
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_deleted_while_load_balancers_are_disabled_waits_until_they_are_enabled()
{
    let world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let set = |conf: &str| {
        let settings = crate::world::settings(&world.cloud, conf);
        world.settings.send_replace(settings.into());
    };
    set("[LoadBalancer]\nenabled = false\n");
    world.cluster.delete::<Service>("web").await;
    let note = world.event("web", "DeleteLoadBalancerFailed").await;
    assert!(note.contains("[LoadBalancer] enabled is false"), "{note}");
    assert_eq!(world.octavia("loadbalancers").await.len(), 1);
    set("");
    world.cluster.gone::<Service>("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn requests_and_reconciles_are_counted_under_the_names_of_the_go_manager() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.cluster.delete::<Service>("web").await;
    octavia_where(&world, "loadbalancers", <[Value]>::is_empty).await;
    let text = world.metrics();
    for line in [
        "openstack_api_requests_total{request=\"loadbalancer_create\"} 1",
        "openstack_api_requests_total{request=\"floating_ip_create\"} 1",
        "openstack_api_requests_total{request=\"loadbalancer_delete\"} 1",
        "openstack_api_request_duration_seconds_count{request=\"loadbalancer_create\"} 1",
        "cloudprovider_openstack_reconcile_total{operation=\"loadbalancer_ensure\"}",
        "cloudprovider_openstack_reconcile_duration_seconds_count{operation=\"loadbalancer_delete\"}",
    ] {
        assert!(text.contains(line), "{line}:\n{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_fails_is_reported_under_the_reasons_of_the_go_manager() {
    let world = world(&["worker-1"]).await;
    let fail = async |method: &str, route: &str| {
        let rule = json!({"service": "load-balancer", "method": method, "route": route, "status": 500, "count": 2});
        world.request("POST", "/_simulator/faults", rule).await;
    };
    fail("POST", "/v2.0/lbaas/loadbalancers").await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.event("web", "SyncLoadBalancerFailed").await;
    world.published("web").await;
    fail("PUT", "/v2.0/lbaas/pools/{pool_id}/members").await;
    world.worker("worker-2").await;
    world.event("web", "UpdateLoadBalancerFailed").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    fail("DELETE", "/v2.0/lbaas/loadbalancers/{id}").await;
    world.cluster.delete::<Service>("web").await;
    world.event("web", "DeleteLoadBalancerFailed").await;
    world.cluster.gone::<Service>("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_zone_that_the_driver_ovn_does_not_have_is_reported_and_the_service_is_served() {
    let conf =
        "[LoadBalancer]\nlb-provider = ovn\nlb-method = SOURCE_IP_PORT\navailability-zone = az1\n";
    let world = World::serving(conf, &["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    let note = world
        .event("web", "LoadBalancerAvailabilityZonesIgnored")
        .await;
    assert!(
        note.contains("availability-zone `az1` has no effect"),
        "{note}"
    );
    world.published("web").await;
    assert!(world.octavia("loadbalancers").await[0]["availability_zone"].is_null());
}

#[tokio::test(start_paused = true)]
async fn members_that_others_remove_are_added_again() {
    let world = world(&["worker-1", "worker-2"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    for _ in 0..3 {
        let pool = world.octavia("pools").await[0]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let path = format!("/load-balancer/v2.0/lbaas/pools/{pool}/members");
        world.request("PUT", &path, json!({"members": []})).await;
        world.members_are(&["worker-1", "worker-2"]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn session_affinity_follows_the_service() {
    let world = world(&["worker-1"]).await;
    let affine = |seconds: i64| {
        json!({"spec": {"sessionAffinity": "ClientIP",
            "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": seconds}}}})
    };
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], affine(60))
        .await;
    world.published("web").await;
    let note = world
        .event("web", "LoadBalancerSessionAffinityTimeoutIgnored")
        .await;
    assert!(note.contains("60 s have no effect"), "{note}");
    let timeouts = |list: &[Value]| {
        let persistence = |pool: &Value| pool["session_persistence"].clone();
        let mut all: Vec<_> = list
            .iter()
            .map(persistence)
            .map(|p| format!("{} {}", p["type"], p["persistence_timeout"]))
            .collect();
        all.sort();
        all
    };
    octavia_where(&world, "pools", |list| {
        timeouts(list) == ["\"SOURCE_IP\" 60", "\"SOURCE_IP\" null"]
    })
    .await;
    world.cluster.merge::<Service>("web", affine(90)).await;
    octavia_where(&world, "pools", |list| {
        timeouts(list) == ["\"SOURCE_IP\" 90", "\"SOURCE_IP\" null"]
    })
    .await;
    let none = json!({"spec": {"sessionAffinity": "None", "sessionAffinityConfig": null}});
    world.cluster.merge::<Service>("web", none).await;
    octavia_where(&world, "pools", |list| {
        list.iter()
            .all(|pool| pool["session_persistence"].is_null())
    })
    .await;
}
