//! What machines do, as the cloud's clients see it.

use serde_json::json;

use super::*;
use crate::machine::{Member, Servers};

const LBAAS: &str = "/load-balancer/v2.0/lbaas";

async fn image(client: &Client) -> String {
    id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0])
}

#[tokio::test]
async fn a_machine_that_ends_makes_its_server_shutoff_and_one_that_cannot_start_an_error() {
    let (cloud, client) = demo().await;
    let server = client.make("/compute/v2.1/servers", json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image(&client).await, "networks": "none"}})).await;
    let path = format!("/compute/v2.1/servers/{}", id(&server));
    assert_eq!(client.fetch(&path).await["status"], "ACTIVE");
    cloud.ended(&id(&server), 1);
    assert_eq!(client.fetch(&path).await["status"], "SHUTOFF");
    cloud.ended("nobody", 1);
    client
        .post(&format!("{path}/action"), json!({"os-start": null}))
        .await;
    assert_eq!(client.fetch(&path).await["status"], "ACTIVE");
    cloud.ended(&id(&server), 1);
    cloud.failed(&id(&server), 1, "too late");
    assert_eq!(
        client.fetch(&path).await["status"],
        "ACTIVE",
        "what the machine of an earlier boot reports is late"
    );
    cloud.failed(&id(&server), 2, "there is no such program");
    let server = client.fetch(&path).await;
    assert_eq!(server["status"], "ERROR");
    assert_eq!(server["fault"]["message"], "there is no such program");
    assert!(
        cloud.machine(&id(&server)).is_some(),
        "a server in ERROR keeps its disk"
    );
    client.delete(&path).await;
    assert_eq!(client.get(&path).await.status, 404);
    assert!(cloud.machine(&id(&server)).is_none());
}

#[tokio::test]
async fn a_machine_knows_its_hardware() {
    let (cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let image = image(&client).await;
    let patch = json!([{"op": "add", "path": "/os_version", "value": "24.04"}]);
    let got = client
        .raw(
            Method::PATCH,
            &format!("/image/v2/images/{image}"),
            &[(
                "content-type",
                "application/openstack-images-v2.1-json-patch",
            )],
            patch.to_string().into_bytes(),
        )
        .await;
    // Only its owner, the administrator, may set a property.
    assert_eq!(got.status, 403, "{}", got.text);
    client
        .make("/compute/v2.1/os-keypairs", json!({"keypair": {"name": "mine", "public_key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8mRrfMyWjL1P0sDvJzxgk9eWGNtHLwPZ0JwSbGzyhR a"}}))
        .await;
    client
        .make("/network/v2.0/security-group-rules", json!({"security_group_rule": {"security_group_id": group(&client).await,
            "direction": "ingress", "protocol": "tcp", "port_range_min": 22, "port_range_max": 23, "remote_ip_prefix": "0.0.0.0/0"}}))
        .await;
    client
        .make("/network/v2.0/security-group-rules", json!({"security_group_rule": {"security_group_id": group(&client).await,
            "direction": "ingress", "protocol": "tcp", "port_range_min": 80, "port_range_max": 80, "remote_ip_prefix": "198.51.100.0/24"}}))
        .await;
    let server = client
        .make(
            "/compute/v2.1/servers",
            json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image, "key_name": "mine",
        "config_drive": true, "networks": [{"uuid": net.network}]}}),
        )
        .await;
    let machine = cloud.machine(&id(&server)).unwrap();
    assert_eq!(machine.flavor, "m1.small");
    assert_eq!(machine.image.name, "ubuntu-24.04");
    assert!(
        !machine.image.properties.contains_key("status"),
        "{:?}",
        machine.image
    );
    assert!(machine.config_drive);
    assert_eq!(machine.key.unwrap().name, "mine");
    let port = &machine.ports[0];
    assert!(port.mac_address.starts_with("fa:16:3e:"));
    assert_eq!(
        (port.network_name.as_str(), port.addresses.len()),
        ("net", 1)
    );
    assert_eq!(port.addresses[0].gateway.unwrap().to_string(), "10.6.0.1");
    assert_eq!(port.addresses[0].cidr.to_string(), "10.6.0.0/24");
    assert_eq!(
        port.open,
        [22..=23],
        "what groups let in from groups, or from a range, is not open to all"
    );
}

async fn group(client: &Client) -> String {
    let groups = client
        .fetch("/network/v2.0/security-groups?name=default")
        .await;
    id(&groups[0])
}

#[tokio::test]
async fn members_that_do_not_answer_their_monitor_degrade_the_load_balancer() {
    let (cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let tree = |monitor: bool| {
        let mut pool = json!({"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
            "members": [{"address": "10.6.0.8", "protocol_port": 80}, {"address": "10.6.0.9", "protocol_port": 80}]});
        if monitor {
            pool["healthmonitor"] =
                json!({"type": "TCP", "delay": 10, "timeout": 5, "max_retries": 3});
        }
        json!({"loadbalancer": {"vip_subnet_id": net.subnet,
            "listeners": [{"protocol": "TCP", "protocol_port": 80, "default_pool": pool}]}})
    };
    let report = |balancer: &str, last: u8, answers| {
        cloud.answering(&[Member {
            load_balancer_id: balancer.to_owned(),
            address: ([10, 6, 0, last], 80).into(),
            answers,
        }]);
    };
    let status = async |balancer: &str| {
        let tree = client
            .fetch(&format!("{LBAAS}/loadbalancers/{balancer}/status"))
            .await;
        let balancer = &tree["loadbalancer"];
        let pool = &balancer["listeners"][0]["pools"][0];
        let words = [
            balancer,
            &balancer["listeners"][0],
            pool,
            &pool["members"][0],
            &pool["members"][1],
        ];
        let mut words: Vec<String> = words
            .iter()
            .map(|it| it["operating_status"].as_str().unwrap_or("?").to_owned())
            .collect();
        words[3..].sort();
        words.join(" ")
    };
    let watched = id(&client
        .make(&format!("{LBAAS}/loadbalancers"), tree(true))
        .await);
    assert_eq!(status(&watched).await, "ONLINE ONLINE ONLINE ONLINE ONLINE");
    report(&watched, 8, false);
    assert_eq!(
        status(&watched).await,
        "DEGRADED DEGRADED DEGRADED ERROR ONLINE"
    );
    report(&watched, 9, false);
    assert_eq!(status(&watched).await, "ERROR ERROR ERROR ERROR ERROR");
    report(&watched, 8, true);
    report(&watched, 9, true);
    assert_eq!(status(&watched).await, "ONLINE ONLINE ONLINE ONLINE ONLINE");
    let blind = id(&client
        .make(&format!("{LBAAS}/loadbalancers"), tree(false))
        .await);
    report(&blind, 8, false);
    assert_eq!(
        status(&blind).await,
        "ONLINE ONLINE ONLINE NO_MONITOR NO_MONITOR"
    );
}
