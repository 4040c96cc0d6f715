//! Bugs of the Go manager, each as a test of the right behaviour here (docs/guides/cloud-controller-manager.md has
//! the table).

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::groups::settled;
use crate::services::{NAME, octavia_where, world};
use crate::world::{World, eventually};

const MEMBERS: &str = "PUT load-balancer /v2.0/lbaas/pools/{pool_id}/members";

/// Deletes Octavia's first resource of a kind by hand.
async fn delete_first(world: &World, kind: &str) {
    let id = world.octavia(kind).await[0]["id"].clone();
    let path = format!(
        "/load-balancer/v2.0/lbaas/{kind}/{}?cascade=true",
        id.as_str().unwrap()
    );
    world.request("DELETE", &path, Value::Null).await;
}

#[tokio::test(start_paused = true)]
async fn another_cluster_name_with_underscores_keeps_the_load_balancer_and_a_listener_without_a_pool_gets_one()
 {
    let mut world = world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world
        .service("web", &[("TCP", 80), ("TCP", 443)], json!({}))
        .await;
    let id =
        world.published("web").await.annotations()["loadbalancer.openstack.org/load-balancer-id"]
            .clone();
    world.kill().await;
    delete_first(&world, "pools").await;
    octavia_where(&world, "pools", |list| list.len() == 1).await;
    world.options(|options| options.cluster_name = "a_b_c".to_owned());
    world.run();
    octavia_where(&world, "pools", |list| list.len() == 2).await;
    world.members_are(&["worker-1", "worker-1"]).await;
    let balancers = world.octavia("loadbalancers").await;
    assert_eq!(
        (balancers.len(), balancers[0]["id"].as_str()),
        (1, Some(id.as_str()))
    );
    assert_eq!(balancers[0]["name"], NAME);
    assert_eq!(world.octavia("listeners").await.len(), 2);
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_is_gone_does_not_keep_nodes_out_of_the_security_group() {
    let world = crate::groups::world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    settled(&world, "web", 1).await;
    let rule = json!({"service": "network", "method": "DELETE", "route": "/v2.0/security-group-rules/{id}",
        "status": 404, "count": 1});
    world.request("POST", "/_simulator/faults", rule).await;
    let change = json!({"spec": {"ports": crate::world::ports_of(&[("UDP", 53)])}});
    world.cluster.merge::<Service>("web", change).await;
    world.worker("worker-2").await;
    settled(&world, "web", 2).await;
}

#[tokio::test(start_paused = true)]
async fn groups_that_others_give_to_the_port_of_a_node_stay() {
    let world = crate::groups::world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    settled(&world, "web", 1).await;
    let path = "/network/v2.0/security-groups";
    let group = json!({"security_group": {"name": "mine"}});
    let group = world.request("POST", path, group).await["security_group"]["id"].clone();
    let ports = world
        .request("GET", "/network/v2.0/ports", Value::Null)
        .await;
    let mut ports = ports["ports"].as_array().unwrap().iter();
    let port = ports.find(|port| {
        port["device_owner"]
            .as_str()
            .unwrap()
            .starts_with("compute:")
    });
    let port = port.unwrap();
    let mut all = port["security_groups"].as_array().unwrap().clone();
    all.push(group.clone());
    let path = format!("/network/v2.0/ports/{}", port["id"].as_str().unwrap());
    let change = json!({"port": {"security_groups": all}});
    world.request("PUT", &path, change).await;
    world.exclude("worker-1").await;
    world.worker("worker-2").await;
    settled(&world, "web", 1).await;
    world.delete_service("web").await;
    let port = world.request("GET", &path, Value::Null).await;
    let left = port["port"]["security_groups"].as_array().unwrap().clone();
    assert!(left.contains(&group), "{left:?}");
}

#[tokio::test(start_paused = true)]
async fn a_listener_keeps_the_tags_that_others_gave_it() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    let listener = world.octavia("listeners").await[0].clone();
    let mut tags = listener["tags"].as_array().unwrap().clone();
    tags.push(json!("mine"));
    let path = format!(
        "/load-balancer/v2.0/lbaas/listeners/{}",
        listener["id"].as_str().unwrap()
    );
    let change = json!({"listener": {"tags": tags}});
    world.request("PUT", &path, change).await;
    let change =
        json!({"metadata": {"annotations": {"loadbalancer.openstack.org/connection-limit": "7"}}});
    world.cluster.merge::<Service>("web", change).await;
    octavia_where(&world, "listeners", |list| {
        list[0]["connection_limit"] == 7 && list[0]["tags"].as_array() == Some(&tags)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn members_that_cannot_be_listed_are_not_written_again() {
    let mut world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.kill().await;
    let rule = json!({"service": "load-balancer", "method": "GET", "route": "/v2.0/lbaas/pools/{pool_id}/members",
        "status": 500, "count": 5});
    world.request("POST", "/_simulator/faults", rule).await;
    world.run();
    eventually("the failed lists", || async {
        let left = crate::faults::left(&world).await;
        left.is_empty()
            .then_some(())
            .ok_or_else(|| format!("{left:?}"))
    })
    .await;
    world.worker("worker-2").await;
    world.members_are(&["worker-1", "worker-2"]).await;
    // The one of the second node.
    assert_eq!(
        world.writes().get(MEMBERS),
        Some(&1),
        "{:?}",
        world.writes()
    );
}

#[tokio::test(start_paused = true)]
async fn a_load_balancer_that_is_gone_already_takes_floating_ip_and_security_group_along() {
    let mut world = crate::groups::world(&["worker-1"]).await;
    let before = world.cloud.resources();
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    settled(&world, "web", 1).await;
    world.kill().await;
    delete_first(&world, "loadbalancers").await;
    octavia_where(&world, "loadbalancers", <[Value]>::is_empty).await;
    assert_eq!(world.floating_ips().await.len(), 1);
    world.cluster.delete::<Service>("web").await;
    world.run();
    world.cluster.gone::<Service>("web").await;
    assert_eq!(world.cloud.resources(), before);
}
