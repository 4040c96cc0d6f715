//! Load balancers of Octavia's OVN driver: by name, and where it is the default that nobody names.

use api::infra::v1beta2::OpenStackCluster;
use openstack::Service;
use serde_json::{Value, json};
use simulator::cloud::Options as CloudOptions;

use crate::world::{MINUTE, World, eventually};

/// A cloud with the OVN driver beside that of amphorae, one of which is the default.
async fn cloud(default: &str) -> World {
    let mut world = World::open(CloudOptions::default()).await;
    let drivers = json!({"enabled_provider_drivers": ["amphora", "octavia", "ovn"], "default_provider_driver": default});
    world.settings(drivers).await;
    world.run();
    world
}

async fn octavia(world: &World, what: &str) -> Vec<Value> {
    let path = format!("/lbaas/{what}");
    let all = world
        .request(Service::LoadBalancer, "GET", &path, json!({}))
        .await;
    all[what].as_array().unwrap().clone()
}

/// Cluster `demo` with a control plane machine behind the load balancer, in which `pools` hold.
async fn served(world: &World, spec: Value, algorithm: &str) {
    world.cluster(spec).await;
    world.cluster_ready().await;
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    eventually("a member", || async {
        let listeners = world.cloud.world().borrow().listeners.clone();
        let is_served = listeners.iter().all(|listener| listener.members.len() == 1);
        (is_served && !listeners.is_empty())
            .then_some(())
            .ok_or(format!("{listeners:?}"))
    })
    .await;
    let pools = octavia(world, "pools").await;
    assert!(
        pools.iter().all(|pool| pool["lb_algorithm"] == algorithm),
        "{pools:#?}"
    );
    world.cluster_ready().await;
}

async fn goes_without_a_trace(world: &World) {
    world.delete_machine("cp-0").await;
    world.delete::<OpenStackCluster>("demo").await;
    world.gone::<OpenStackCluster>("demo").await;
    assert_eq!(world.left_over(), Default::default());
}

#[tokio::test(start_paused = true)]
async fn where_ovn_is_the_default_that_nobody_names_the_balancer_has_what_ovn_has() {
    let world = cloud("ovn").await;
    let monitor =
        json!({"managedLoadBalancer": {"additionalPorts": [8443], "monitor": {"delay": 7}}});
    served(&world, json!({"apiServer": monitor}), "SOURCE_IP_PORT").await;
    let monitors = octavia(&world, "healthmonitors").await;
    assert_eq!(monitors.len(), 2);
    for monitor in &monitors {
        assert_eq!(
            (&monitor["type"], &monitor["delay"]),
            (&json!("TCP"), &json!(7))
        );
    }
    assert_eq!(world.notes("demo", "Warning").await, Vec::<String>::new());
    let writes = world.writes();
    world.poke::<OpenStackCluster>("demo").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(world.writes(), writes);
    goes_without_a_trace(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_named_ovn_is_created_in_one_request_and_gets_its_monitor() {
    let world = cloud("amphora").await;
    let named = json!({"apiServer": {"managedLoadBalancer": {"provider": "ovn"}}});
    served(&world, named, "SOURCE_IP_PORT").await;
    let writes = world.writes();
    assert_eq!(writes["POST /v2.0/lbaas/loadbalancers"], 1);
    assert!(
        !writes.contains_key("POST /v2.0/lbaas/listeners"),
        "{writes:?}"
    );
    assert_eq!(octavia(&world, "healthmonitors").await.len(), 1);
    goes_without_a_trace(&world).await;
}

#[tokio::test(start_paused = true)]
async fn where_ovn_is_there_and_not_the_default_the_balancer_is_the_usual_one() {
    let world = cloud("amphora").await;
    served(&world, json!({}), "ROUND_ROBIN").await;
    assert_eq!(octavia(&world, "healthmonitors").await.len(), 1);
    goes_without_a_trace(&world).await;
}

#[tokio::test(start_paused = true)]
async fn allowed_cidrs_that_ovn_does_not_have_are_a_condition_that_names_the_rule_to_narrow() {
    let world = cloud("ovn").await;
    let cidrs = json!({"apiServer": {"managedLoadBalancer": {"allowedCIDRs": ["192.0.2.0/24"]}}});
    world.cluster(cidrs).await;
    let words = "managedSecurityGroups.defaultRules";
    world.cluster_says("APIEndpointReady", words).await;
    // Machines are created nevertheless.
    world.machine("cp-0", true, json!({})).await;
    world.machine_ready("cp-0").await;
    let none = json!({"spec": {"apiServer": {"managedLoadBalancer": {"allowedCIDRs": null}}}});
    world.merge::<OpenStackCluster>("demo", none).await;
    world.cluster_ready().await;
}

#[tokio::test(start_paused = true)]
async fn a_driver_without_health_monitors_serves_without_and_is_asked_once() {
    let world = cloud("ovn").await;
    world
        .fault(json!({"service": "load-balancer", "method": "POST", "route": "/v2.0/lbaas/healthmonitors",
            "status": 501, "message": "Provider 'ovn' does not support a requested action"}))
        .await;
    served(&world, json!({}), "SOURCE_IP_PORT").await;
    let asked = || world.writes()["POST /v2.0/lbaas/healthmonitors"];
    assert_eq!(asked(), 1);
    let notes = world.notes("demo", "Warning").await;
    let is_noted = |note: &&String| note.contains("goes on without health monitors");
    assert_eq!(notes.iter().filter(is_noted).count(), 1, "{notes:#?}");
    world.poke::<OpenStackCluster>("demo").await;
    tokio::time::sleep(MINUTE).await;
    assert_eq!(asked(), 1);
    goes_without_a_trace(&world).await;
}
