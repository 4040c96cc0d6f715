//! The requests of a Cluster API cluster, from nothing to nothing.

use serde_json::json;

use super::*;

#[tokio::test]
async fn a_cluster_comes_up_and_leaves_nothing_behind() {
    let (cloud, client) = demo().await;
    let before = cloud.resources();
    let mut world = cloud.world();

    let net = net(&client, "10.6.0.0/24").await;
    let group = client
        .make(
            "/network/v2.0/security-groups",
            json!({"security_group": {"name": "cp"}}),
        )
        .await;
    assert_eq!(
        group["security_group_rules"].as_array().unwrap().len(),
        2,
        "two egress rules"
    );
    let group = id(&group);
    let rules: Vec<Value> = (1..=20)
        .map(|port| {
            json!({"security_group_id": group, "direction": "ingress", "protocol": "tcp",
                "port_range_min": port, "port_range_max": port})
        })
        .collect();
    let got = client
        .post(
            "/network/v2.0/security-group-rules",
            json!({"security_group_rules": rules}),
        )
        .await;
    assert_eq!(got.status, 201);
    assert_eq!(
        got.body["security_group_rules"].as_array().unwrap().len(),
        20
    );

    let tree = json!({"loadbalancer": {"name": "api", "vip_subnet_id": net.subnet, "tags": ["t"],
        "listeners": [{"name": "api-6443", "protocol": "TCP", "protocol_port": 6443,
            "default_pool": {"name": "api-6443", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
                "healthmonitor": {"type": "TCP", "delay": 10, "timeout": 5, "max_retries": 3}}}]}});
    let balancer = client
        .make("/load-balancer/v2.0/lbaas/loadbalancers", tree)
        .await;
    assert_eq!(balancer["provisioning_status"], "PENDING_CREATE");
    let pool = balancer["listeners"][0]["default_pool_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let balancer_path = format!("/load-balancer/v2.0/lbaas/loadbalancers/{}", id(&balancer));
    let balancer = client.fetch(&balancer_path).await;
    assert_eq!(balancer["provisioning_status"], "ACTIVE");
    assert_eq!(balancer["operating_status"], "ONLINE");

    let floating = client
        .make(
            "/network/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": net.external, "port_id": balancer["vip_port_id"]}}),
        )
        .await;
    assert_eq!(floating["status"], "ACTIVE");
    assert_eq!(floating["fixed_ip_address"], balancer["vip_address"]);

    let ports = json!({"ports": [{"network_id": net.network, "name": "cp-0-0", "security_groups": [group]}]});
    let got = client.post("/network/v2.0/ports", ports).await;
    assert_eq!(got.status, 201, "{}", got.text);
    let port = got.body["ports"][0].clone();
    let image = client
        .fetch("/image/v2/images?name=ubuntu-2404-kube-v1.34.2")
        .await;
    assert_eq!(image[0]["status"], "active");
    let server = client
        .make(
            "/compute/v2.1/servers",
            json!({"server": {"name": "cp-0", "flavorRef": "3", "imageRef": image[0]["id"],
                "networks": [{"port": port["id"]}], "user_data": "I2Nsb3VkLWNvbmZpZwo=",
                "metadata": {"role": "cp"}, "config_drive": true, "availability_zone": "az1"}}),
        )
        .await;
    let server_path = format!("/compute/v2.1/servers/{}", id(&server));
    let server = client.fetch(&server_path).await;
    assert_eq!(server["status"], "ACTIVE");
    assert_eq!(
        server["addresses"]["net"][0]["addr"],
        port["fixed_ips"][0]["ip_address"]
    );
    assert_eq!(server["config_drive"], "True");

    let member = json!({"members": [{"address": port["fixed_ips"][0]["ip_address"], "protocol_port": 6443,
        "subnet_id": net.subnet}]});
    let got = client
        .put(
            &format!("/load-balancer/v2.0/lbaas/pools/{pool}/members?additive_only=true"),
            member,
        )
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    let status = client.fetch(&format!("{balancer_path}/status")).await;
    let member = &status["loadbalancer"]["listeners"][0]["pools"][0]["members"][0];
    assert_eq!(member["operating_status"], "ONLINE");

    let seen = world
        .wait_for(|world| {
            world.instances.iter().any(|one| one.running)
                && world.listeners.iter().any(|l| !l.members.is_empty())
        })
        .await
        .unwrap()
        .clone();
    assert_eq!(
        seen.instances[0].user_data.as_deref(),
        Some(b"#cloud-config\n".as_slice())
    );
    let reached = &seen.listeners[0].members[0];
    assert_eq!(reached.at.port(), 6443);
    assert_eq!(reached.server.as_deref(), server["id"].as_str());
    assert_eq!(seen.addresses[0].fixed, seen.listeners[0].vip);

    // In the order in which Cluster API deletes, each step is allowed.
    for (path, status) in [
        (server_path.clone(), 204),
        (format!("/network/v2.0/ports/{}", id(&port)), 204),
        (format!("/network/v2.0/floatingips/{}", id(&floating)), 204),
        (format!("{balancer_path}?cascade=true"), 204),
        (server_path, 404),
        (balancer_path, 404),
    ] {
        let got = client.delete(&path).await;
        assert_eq!(got.status, status, "DELETE {path}: {}", got.text);
    }
    let remove = format!(
        "/network/v2.0/routers/{}/remove_router_interface",
        net.router
    );
    assert_eq!(
        client
            .put(&remove, json!({"subnet_id": net.subnet}))
            .await
            .status,
        200
    );
    for path in [
        format!("/network/v2.0/routers/{}", net.router),
        format!("/network/v2.0/networks/{}", net.network),
        format!("/network/v2.0/security-groups/{group}"),
    ] {
        let got = client.delete(&path).await;
        assert_eq!(got.status, 204, "DELETE {path}: {}", got.text);
    }
    assert_eq!(cloud.resources(), before);
}

#[tokio::test]
async fn a_deleted_server_keeps_the_ports_it_was_given_and_loses_those_nova_made() {
    let (cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let port = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    let image = client.fetch("/image/v2/images?name=ubuntu-24.04").await;
    let server = client
        .make(
            "/compute/v2.1/servers",
            json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image[0]["id"],
                "networks": [{"port": port["id"]}, {"uuid": net.network}]}}),
        )
        .await;
    let path = format!("/network/v2.0/ports?device_id={}", id(&server));
    assert_eq!(client.fetch(&path).await.as_array().unwrap().len(), 2);
    client
        .delete(&format!("/compute/v2.1/servers/{}", id(&server)))
        .await;
    assert_eq!(client.fetch(&path).await.as_array().unwrap().len(), 0);
    let kept = client
        .fetch(&format!("/network/v2.0/ports/{}", id(&port)))
        .await;
    assert_eq!(
        (&kept["device_id"], &kept["status"]),
        (&json!(""), &json!("DOWN"))
    );
    assert_eq!(cloud.resources()["demo"].get("server"), None);
}
