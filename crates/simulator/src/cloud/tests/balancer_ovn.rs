//! Octavia with the OVN driver, named or as the default.

use serde_json::json;

use super::*;

const LBAAS: &str = "/load-balancer/v2.0/lbaas";

async fn ovn() -> (Cloud, Client, Net) {
    let (cloud, client) = demo().await;
    let drivers = json!({"enabled_provider_drivers": ["amphora", "octavia", "ovn"], "default_provider_driver": "ovn"});
    client.post("/_simulator/settings", drivers).await;
    let net = net(&client, "10.6.0.0/24").await;
    (cloud, client, net)
}

#[tokio::test]
async fn the_default_driver_is_that_of_the_settings_and_other_drivers_are_listed_beside_it() {
    let (_cloud, client, net) = ovn().await;
    let listed = client.fetch(&format!("{LBAAS}/providers")).await;
    let names: Vec<_> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["name"])
        .collect();
    assert_eq!(names, ["amphora", "octavia", "ovn"]);
    let wanted = json!({"loadbalancer": {"vip_subnet_id": net.subnet}});
    let balancer = client.make(&format!("{LBAAS}/loadbalancers"), wanted).await;
    assert_eq!(balancer["provider"], "ovn");
    let named = json!({"loadbalancer": {"vip_subnet_id": net.subnet, "provider": "amphora"}});
    let balancer = client.make(&format!("{LBAAS}/loadbalancers"), named).await;
    assert_eq!(balancer["provider"], "amphora");
}

#[tokio::test]
async fn a_refused_tree_leaves_the_port_of_its_address() {
    let (cloud, client, net) = ovn().await;
    let before = cloud.resources();
    let tree = json!({"loadbalancer": {"vip_subnet_id": net.subnet, "listeners": [{"protocol": "TCP", "protocol_port": 6443,
        "default_pool": {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}}]}});
    let got = client.post(&format!("{LBAAS}/loadbalancers"), tree).await;
    assert_eq!(got.status, 501, "{}", got.text);
    let text = got.body["faultstring"].as_str().unwrap();
    let words = "Provider 'ovn' does not support a requested option: OVN provider does not support ROUND_ROBIN algorithm";
    assert_eq!(text, words);
    let all = client.fetch(&format!("{LBAAS}/loadbalancers")).await;
    assert_eq!(all, json!([]));
    let ports = |resources: &std::collections::BTreeMap<
        String,
        std::collections::BTreeMap<String, usize>,
    >| { resources["demo"].get("port").copied().unwrap_or(0) };
    assert_eq!(ports(&cloud.resources()), ports(&before) + 1);
}

#[tokio::test]
async fn options_that_ovn_does_not_have_are_refused_in_every_part() {
    let (_cloud, client, net) = ovn().await;
    let tree = json!({"loadbalancer": {"vip_subnet_id": net.subnet, "listeners": [{"protocol": "TCP", "protocol_port": 6443,
        "default_pool": {"protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT"}}]}});
    let balancer = client.make(&format!("{LBAAS}/loadbalancers"), tree).await;
    let (lb, listener) = (id(&balancer), id(&balancer["listeners"][0]));
    let pool = id(&balancer["pools"][0]);
    let member = |fields: Value| {
        let mut member =
            json!({"address": "10.6.0.9", "protocol_port": 6443, "subnet_id": net.subnet});
        member
            .as_object_mut()
            .unwrap()
            .extend(fields.as_object().unwrap().clone());
        member
    };
    let other = net.subnet.clone();
    for (path, body, words) in [
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "HTTP", "protocol_port": 80}}),
            "HTTP protocol",
        ),
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "TCP", "protocol_port": 81,
            "allowed_cidrs": ["192.0.2.0/24"]}}),
            "allowed_cidrs",
        ),
        (
            "pools",
            json!({"pool": {"loadbalancer_id": lb, "protocol": "TCP", "lb_algorithm": "SOURCE_IP"}}),
            "SOURCE_IP algorithm",
        ),
        (
            "pools",
            json!({"pool": {"loadbalancer_id": lb, "protocol": "PROXY", "lb_algorithm": "SOURCE_IP_PORT"}}),
            "PROXY protocol",
        ),
        (
            "healthmonitors",
            json!({"healthmonitor": {"pool_id": pool, "type": "HTTP", "delay": 5, "timeout": 3,
            "max_retries": 3}}),
            "HTTP health monitor",
        ),
        (
            "l7policies",
            json!({"l7policy": {"listener_id": listener, "action": "REJECT"}}),
            "l7policies",
        ),
        (
            "loadbalancers",
            json!({"loadbalancer": {"vip_subnet_id": other, "listeners": [{"protocol": "TCP", "protocol_port": 1,
            "allowed_cidrs": ["192.0.2.0/24"]}]}}),
            "allowed_cidrs",
        ),
    ] {
        let got = client.post(&format!("{LBAAS}/{path}"), body).await;
        assert_eq!(got.status, 501, "{path}: {}", got.text);
        assert!(got.text.contains(words), "{path}: {}", got.text);
    }
    let cidrs = json!({"listener": {"allowed_cidrs": ["192.0.2.0/24"]}});
    let got = client
        .put(&format!("{LBAAS}/listeners/{listener}"), cidrs)
        .await;
    assert_eq!(got.status, 501, "{}", got.text);
    let none = json!({"listener": {"allowed_cidrs": []}});
    let got = client
        .put(&format!("{LBAAS}/listeners/{listener}"), none)
        .await;
    assert_eq!(got.status, 200, "{}", got.text);
    let path = format!("{LBAAS}/pools/{pool}/members");
    for (fields, words) in [
        (json!({"monitor_port": 80}), "monitor options"),
        (
            json!({"subnet_id": null, "address": "192.0.2.1"}),
            "Subnet is required",
        ),
        (json!({"address": "2001:db8::1"}), "mixing IPv4/IPv6"),
    ] {
        let got = client
            .put(&path, json!({"members": [member(fields)]}))
            .await;
        assert_eq!(got.status, 501, "{}", got.text);
        assert!(got.text.contains(words), "{}", got.text);
    }
    let inside = json!({"subnet_id": null});
    let got = client
        .put(&path, json!({"members": [member(inside)]}))
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
}

#[tokio::test]
async fn members_that_have_a_monitor_are_checked_from_a_port_in_their_subnet() {
    let (_cloud, client, net) = ovn().await;
    let tree = json!({"loadbalancer": {"vip_subnet_id": net.subnet, "listeners": [{"protocol": "TCP", "protocol_port": 6443,
        "default_pool": {"protocol": "TCP", "lb_algorithm": "SOURCE_IP_PORT",
            "members": [{"address": "10.6.0.9", "protocol_port": 6443}]}}]}});
    let balancer = client.make(&format!("{LBAAS}/loadbalancers"), tree).await;
    let pool = id(&balancer["pools"][0]);
    let ports = "/network/v2.0/ports?device_owner=ovn-lb-hm:distributed";
    assert_eq!(client.fetch(ports).await, json!([]));
    let monitor = json!({"healthmonitor": {"pool_id": pool, "type": "TCP", "delay": 10, "timeout": 5, "max_retries": 5}});
    let monitor = client
        .make(&format!("{LBAAS}/healthmonitors"), monitor)
        .await;
    let found = client.fetch(ports).await;
    assert_eq!(found[0]["name"], format!("ovn-lb-hm-{}", net.subnet));
    assert_eq!(found[0]["fixed_ips"][0]["subnet_id"], net.subnet.as_str());
    let subnet = format!("/network/v2.0/subnets/{}", net.subnet);
    assert_eq!(client.delete(&subnet).await.status, 409);
    let gone = format!("{LBAAS}/healthmonitors/{}", id(&monitor));
    assert_eq!(client.delete(&gone).await.status, 204);
    assert_eq!(client.fetch(ports).await, json!([]));
}
