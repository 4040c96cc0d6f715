//! `externalTrafficPolicy: Local`: no traffic to nodes without endpoints.

use std::time::Duration;

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::services::{octavia_where, world};
use crate::weights::{self, endpoints};
use crate::world::World;

fn local() -> Value {
    json!({"spec": {"externalTrafficPolicy": "Local"}})
}

#[tokio::test(start_paused = true)]
async fn every_protocol_has_a_monitor_of_the_health_check_port() {
    let world = world(&["worker-1"]).await;
    let ports = [("TCP", 80), ("UDP", 53), ("SCTP", 99)];
    world.service("web", &ports, local()).await;
    let service = world.published("web").await;
    let port = json!(service.spec.unwrap().health_check_node_port.unwrap());
    let of = |list: &[Value], field: &str| {
        let mut all: Vec<_> = list
            .iter()
            .map(|it| it[field].as_str().unwrap().to_owned())
            .collect();
        all.sort();
        all
    };
    assert_eq!(
        of(&world.octavia("pools").await, "protocol"),
        ["SCTP", "TCP", "UDP"]
    );
    let monitors = world.octavia("healthmonitors").await;
    assert_eq!(of(&monitors, "type"), ["HTTP"; 3]);
    assert_eq!(of(&monitors, "url_path"), ["/healthz"; 3]);
    let members = world.all_members().await;
    assert!(
        members.len() == 3 && members.iter().all(|it| it["monitor_port"] == port),
        "{members:?}"
    );
    // The other policy has none, and members are asked at their own port.
    let cluster = json!({"spec": {"externalTrafficPolicy": "Cluster"}});
    world.cluster.merge::<Service>("web", cluster).await;
    octavia_where(&world, "healthmonitors", <[Value]>::is_empty).await;
}

#[tokio::test(start_paused = true)]
async fn a_service_of_sctp_is_served_with_a_monitor_of_its_own() {
    let world = world(&["worker-1", "worker-2"]).await;
    let before = world.cloud.resources();
    let monitored = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/enable-health-monitor": "true"}}});
    world.service("web", &[("SCTP", 99)], monitored).await;
    world.published("web").await;
    for kind in ["listeners", "pools"] {
        assert_eq!(world.octavia(kind).await[0]["protocol"], "SCTP", "{kind}");
    }
    assert_eq!(world.octavia("healthmonitors").await[0]["type"], "SCTP");
    world.members_are(&["worker-1", "worker-2"]).await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn with_the_driver_ovn_members_are_the_nodes_with_ready_endpoints() {
    let period = Duration::from_millis(200);
    let world = weights::world(crate::ovn::CONF, &["worker-1", "worker-2"], period).await;
    endpoints(&world, &[("worker-1", 2)]).await;
    world.service("web", &[("TCP", 80)], local()).await;
    world.published("web").await;
    world.members_are(&["worker-1"]).await;
    endpoints(&world, &[("worker-2", 1)]).await;
    world.members_are(&["worker-2"]).await;
    endpoints(&world, &[("worker-1", 1), ("worker-2", 1)]).await;
    world.members_are(&["worker-1", "worker-2"]).await;
    assert!(world.all_members().await.iter().all(|it| it["weight"] == 1));
    endpoints(&world, &[("worker-1", 1)]).await;
    world.members_are(&["worker-1"]).await;
    // With the other policy, every node passes traffic on.
    let cluster = json!({"spec": {"externalTrafficPolicy": "Cluster"}});
    world.cluster.merge::<Service>("web", cluster).await;
    world.members_are(&["worker-1", "worker-2"]).await;
    assert!(world.octavia("healthmonitors").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn while_no_node_has_an_endpoint_all_are_members() {
    let period = Duration::from_millis(200);
    let world: World = weights::world(crate::ovn::CONF, &["worker-1", "worker-2"], period).await;
    world.service("web", &[("TCP", 80)], local()).await;
    world.published("web").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    endpoints(&world, &[("worker-2", 1)]).await;
    world.members_are(&["worker-2"]).await;
    // One on a node that is no member serves nobody.
    world.exclude("worker-2").await;
    world.members_are(&["worker-1"]).await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_leaves_members_that_depend_on_endpoints_as_they_are() {
    let period = Duration::from_millis(200);
    let mut world = weights::world(crate::ovn::CONF, &["worker-1", "worker-2"], period).await;
    endpoints(&world, &[("worker-1", 1)]).await;
    world.service("web", &[("TCP", 80)], local()).await;
    world.published("web").await;
    world.members_are(&["worker-1"]).await;
    world.changeable().await;
    world.kill().await;
    world.cloud.reset_requests();
    world.run();
    // The effect of the annotation shows that the Service was reconciled after the restart.
    let slow = json!({"metadata": {"annotations": {"loadbalancer.openstack.org/enable-health-monitor": "true"}}});
    world.cluster.merge::<Service>("web", slow).await;
    octavia_where(&world, "healthmonitors", |list| list.len() == 1).await;
    let sets = "PUT load-balancer /v2.0/lbaas/pools/{pool_id}/members";
    assert!(!world.writes().contains_key(sets), "{:?}", world.writes());
    world.members_are(&["worker-1"]).await;
}
