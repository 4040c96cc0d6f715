//! Events of machines, in the view of the cloud's clients.

use serde_json::json;

use super::*;
use crate::machine::{Member, Servers, VolumeAnswer};

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

/// Returns a cloud with a server that answers for its volumes, and a volume on its way to the server.
async fn asked() -> (Cloud, Client, String, String) {
    let (cloud, client) = demo().await;
    let server = client.server("a").await;
    let volume = client.new_volume(json!({"size": 1})).await;
    assert_eq!(client.status(&volume).await, "available");
    cloud.answers_for_volumes(&server, 1);
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    assert_eq!(client.status(&volume).await, "attaching");
    (cloud, client, server, volume)
}

#[tokio::test]
async fn a_volume_is_in_use_when_its_machine_has_it_and_available_when_it_has_it_no_more() {
    let (cloud, client, server, volume) = asked().await;
    let disks = || cloud.volumes(&server).unwrap();
    assert_eq!(disks().len(), 1);
    cloud.volume_answered(&server, &volume, &VolumeAnswer::Gone);
    assert_eq!(
        client.status(&volume).await,
        "attaching",
        "that was not asked"
    );
    cloud.volume_answered(&server, &volume, &VolumeAnswer::Ready);
    assert_eq!(client.status(&volume).await, "in-use");
    let grow = json!({"os-extend": {"new_size": 2}});
    assert_eq!(client.act(&volume, grow).await.0, 202);
    assert_eq!(client.status(&volume).await, "in-use");
    assert_eq!(disks()[0].size_gib, 2);
    assert_eq!(client.detach(&server, &volume).await.status, 202);
    assert_eq!(client.status(&volume).await, "detaching");
    assert_eq!(disks().len(), 0);
    cloud.volume_answered(&server, &volume, &VolumeAnswer::Gone);
    assert_eq!(client.status(&volume).await, "available");
    assert_eq!(client.listed(&server).await.len(), 0);
}

#[tokio::test]
async fn a_machine_that_cannot_take_a_volume_or_does_not_let_it_go_is_believed() {
    let (cloud, client, server, volume) = asked().await;
    let failed = VolumeAnswer::Failed("no more slots".to_owned());
    cloud.volume_answered(&server, &volume, &failed);
    assert_eq!(client.status(&volume).await, "available");
    assert_eq!(cloud.volumes(&server).unwrap().len(), 0);
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    assert_eq!(client.status(&volume).await, "attaching");
    cloud.volume_answered(&server, &volume, &VolumeAnswer::Ready);
    assert_eq!(client.detach(&server, &volume).await.status, 202);
    assert_eq!(client.status(&volume).await, "detaching");
    let busy = VolumeAnswer::Failed("it is mounted".to_owned());
    cloud.volume_answered(&server, &volume, &busy);
    assert_eq!(client.status(&volume).await, "in-use");
    assert_eq!(cloud.volumes(&server).unwrap().len(), 1);
}

#[tokio::test]
async fn a_machine_that_does_not_answer_is_waited_for_a_minute() {
    let (cloud, client, server, volume) = asked().await;
    cloud.advance_clock(std::time::Duration::from_secs(59));
    assert_eq!(client.status(&volume).await, "attaching");
    cloud.advance_clock(std::time::Duration::from_secs(2));
    assert_eq!(client.status(&volume).await, "available");
    // A stopped server has no machine to answer.
    let path = format!("/compute/v2.1/servers/{server}/action");
    assert_eq!(
        client.post(&path, json!({"os-stop": null})).await.status,
        202
    );
    assert_eq!(client.attach(&server, &volume).await.status, 200);
    assert_eq!(client.status(&volume).await, "in-use");
    assert_eq!(cloud.volumes(&server).unwrap().len(), 1);
    // Nor has a server whose program has not announced answers in this boot.
    assert_eq!(
        client.post(&path, json!({"os-start": null})).await.status,
        202
    );
    assert_eq!(client.detach(&server, &volume).await.status, 202);
    assert_eq!(client.status(&volume).await, "available");
}
