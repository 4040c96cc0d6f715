//! The security group of a Service.

use api::k8s_openapi::api::core::v1::Service;
use api::k8s_openapi::api::events::v1::Event;
use kube::{Api, ResourceExt};
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

#[tokio::test(start_paused = true)]
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
    // A rule deleted by hand, and a node that is no longer a member.
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

#[tokio::test(start_paused = true)]
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

/// Networks with the range of the nodes' network, and ports there with all addresses of a node: one of a VM of
/// somebody else, and unused ones. Returns the id of the VM's port.
pub(crate) async fn strangers(world: &World, address: &str) -> String {
    let mut used = String::new();
    for index in 0..4 {
        let network = json!({"network": {"name": format!("other-{index}")}});
        let network = world
            .request("POST", "/network/v2.0/networks", network)
            .await;
        let network = network["network"]["id"].as_str().unwrap().to_owned();
        let subnet =
            json!({"subnet": {"network_id": network, "cidr": "10.0.0.0/16", "ip_version": 4}});
        world.request("POST", "/network/v2.0/subnets", subnet).await;
        let port = json!({"port": {"network_id": network, "fixed_ips": [{"ip_address": address}]}});
        let port = world.request("POST", "/network/v2.0/ports", port).await;
        let port = port["port"]["id"].as_str().unwrap().to_owned();
        if index == 0 {
            let fields = json!({"networks": [{"port": port}]});
            world.server_with("stranger", fields).await;
            used = port;
        }
    }
    used
}

#[tokio::test(start_paused = true)]
async fn of_two_clusters_of_one_range_each_has_its_own_subnet_members_and_ports() {
    let world = world(&["worker-1"]).await;
    let node = world.nodes().get("worker-1").await.unwrap();
    let address = crate::world::addresses(&node)[0].replace("InternalIP ", "");
    let stranger = strangers(&world, &address).await;
    let path = format!("/network/v2.0/ports/{stranger}");
    let before = world.request("GET", &path, Value::Null).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    world.changeable().await;
    let balancers = world.octavia("loadbalancers").await;
    assert_eq!(balancers[0]["vip_subnet_id"], world.subnet.as_str());
    let members = world.all_members().await;
    assert_eq!(members.len(), 1);
    assert_eq!(members[0]["subnet_id"], world.subnet.as_str());
    // The load balancer reaches the worker, and no other server.
    let servers = world
        .request("GET", "/compute/v2.1/servers?name=worker-1", Value::Null)
        .await;
    let mut seen = world.cloud.world();
    let seen = seen.wait_for(|seen| !seen.listeners.is_empty()).await;
    let reached = seen.unwrap().listeners[0].members[0].server.clone();
    assert_eq!(reached.as_deref(), servers["servers"][0]["id"].as_str());
    let group = groups(&world).await.remove(0);
    assert_eq!(ports_with(&world, &group).await, 1);
    let after = world.request("GET", &path, Value::Null).await;
    assert_eq!(
        before["port"]["security_groups"],
        after["port"]["security_groups"]
    );
    world.delete_service("web").await;
}

#[tokio::test(start_paused = true)]
async fn a_port_that_others_change_meanwhile_is_read_again_and_said_in_words_if_they_do_not_stop() {
    let world = world(&["worker-1"]).await;
    let stale = async |count: u32| {
        let rule = json!({"service": "network", "method": "PUT", "route": "/v2.0/ports/{id}", "status": 412,
            "message": "Constrained to 7, but current revision is 8", "count": count});
        world.request("POST", "/_simulator/faults", rule).await;
    };
    stale(2).await;
    world.service("web", &[("TCP", 80)], json!({})).await;
    world.published("web").await;
    settled(&world, "web", 1).await;
    assert_eq!(world.count_events("web", "SyncLoadBalancerFailed").await, 0);
    assert!(crate::faults::left(&world).await.is_empty());
    stale(5).await;
    world.worker("worker-2").await;
    // The age of the list of ports decides if the same reconcile changes members.
    let note = eventually("the event", || async {
        let events: Api<Event> = Api::all(world.cluster.client.clone());
        let list = events.list(&Default::default()).await.unwrap().items;
        let failed = |event: &&Event| {
            let reason = event.reason.as_deref().unwrap_or_default();
            ["SyncLoadBalancerFailed", "UpdateLoadBalancerFailed"].contains(&reason)
        };
        let found = list.iter().find(failed);
        found
            .and_then(|event| event.note.clone())
            .ok_or_else(|| format!("{list:?}"))
    })
    .await;
    assert!(
        note.contains("was changed by others after it was read"),
        "{note}"
    );
    assert!(!note.contains("Constrained"), "{note}");
    settled(&world, "web", 2).await;
}
