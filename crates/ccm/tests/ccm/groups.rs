//! The security group of a Service.

use api::k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::world::{World, eventually};

const MANAGED: &str = "[LoadBalancer]\nmanage-security-groups = true\n";

pub(crate) async fn world(workers: &[&str]) -> World {
    World::serving(MANAGED, workers).await
}

pub(crate) async fn groups(world: &World) -> Vec<Value> {
    let all = world
        .request("GET", "/network/v2.0/security-groups", Value::Null)
        .await;
    let mut groups = all["security_groups"].as_array().unwrap().clone();
    groups.retain(|group| group["name"].as_str().unwrap().starts_with("lb-sg-"));
    groups
}

/// The ingress rules, as `tcp 30080 10.0.0.0/16`.
fn rules(group: &Value) -> Vec<String> {
    let ingress = group["security_group_rules"].as_array().unwrap().iter();
    let mut rules: Vec<_> = ingress
        .filter(|rule| rule["direction"] == "ingress")
        .map(|rule| {
            format!(
                "{} {} {}",
                rule["protocol"].as_str().unwrap(),
                rule["port_range_min"],
                rule["remote_ip_prefix"].as_str().unwrap()
            )
        })
        .collect();
    rules.sort();
    rules
}

/// The number of ports with a group.
async fn ports_with(world: &World, group: &Value) -> usize {
    let all = world
        .request("GET", "/network/v2.0/ports", Value::Null)
        .await;
    let ports = all["ports"].as_array().unwrap().iter();
    let has = |port: &&Value| {
        port["security_groups"]
            .as_array()
            .unwrap()
            .contains(&group["id"])
    };
    ports.filter(has).count()
}

/// The rules that the ports of a Service ask for.
fn wanted(service: &Service) -> Vec<String> {
    let ports = service.spec.clone().unwrap().ports.unwrap();
    let mut rules: Vec<_> = ports
        .iter()
        .map(|port| {
            let protocol = port.protocol.clone().unwrap().to_lowercase();
            format!("{protocol} {} 10.0.0.0/16", port.node_port.unwrap())
        })
        .collect();
    rules.sort();
    rules
}

pub(crate) async fn settled(world: &World, name: &str, members: usize) {
    eventually("the group", || async {
        let service = world.cluster.api::<Service>().get(name).await.unwrap();
        let groups = groups(world).await;
        let [group] = groups.as_slice() else {
            return Err(format!("{groups:?}"));
        };
        let (found, count) = (rules(group), ports_with(world, group).await);
        let is = found == wanted(&service) && count == members;
        is.then_some(())
            .ok_or_else(|| format!("{found:?} on {count} ports"))
    })
    .await;
}

#[tokio::test]
async fn a_group_opens_the_node_ports_on_the_ports_of_the_members_and_goes_with_the_service() {
    let world = world(&["worker-1", "worker-2"]).await;
    let before = world.cloud.resources();
    world
        .service("web", &[("TCP", 80), ("UDP", 53)], json!({}))
        .await;
    let service = world.published("web").await;
    settled(&world, "web", 2).await;
    let group = groups(&world).await[0].clone();
    let uid = service.uid().unwrap();
    assert_eq!(group["name"], format!("lb-sg-{uid}-default-web"));
    assert!(
        group["description"].as_str().unwrap().starts_with(
            "Security Group for default/web Service LoadBalancer in cluster kubernetes"
        )
    );
    let change = json!({"spec": {"ports": crate::world::ports_of(&[("TCP", 80), ("TCP", 443)])}});
    world.cluster.merge::<Service>("web", change).await;
    settled(&world, "web", 2).await;
    // A rule that is deleted by hand, and a node that is no longer a member.
    let rule = group["security_group_rules"]
        .as_array()
        .unwrap()
        .iter()
        .find(|rule| rule["direction"] == "ingress" && rule["protocol"] == "tcp")
        .unwrap()["id"]
        .clone();
    let path = format!(
        "/network/v2.0/security-group-rules/{}",
        rule.as_str().unwrap()
    );
    world.request("DELETE", &path, Value::Null).await;
    world.exclude("worker-1").await;
    settled(&world, "web", 1).await;
    world.delete_service("web").await;
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test]
async fn a_group_is_deleted_when_cloud_conf_no_longer_asks_for_it() {
    let world = world(&["worker-1"]).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    settled(&world, "web", 1).await;
    let settings = crate::world::settings(&world.cloud, "");
    world.settings.send_replace(settings.into());
    eventually("the group to go", || async {
        let groups = groups(&world).await;
        groups
            .is_empty()
            .then_some(())
            .ok_or_else(|| format!("{groups:?}"))
    })
    .await;
}
