//! Lists of servers are cached as text: after any change, a list must equal the servers.

use serde_json::json;

use super::*;

/// Compares each server of the list with the server itself.
async fn check_list(client: &Client, microversion: &str, after: &str) {
    let version = format!("compute {microversion}");
    let headers = [("openstack-api-version", version.as_str())];
    let get = async |path: &str| {
        let path = format!("/compute/v2.1/servers/{path}");
        client
            .send(Method::GET, &path, &headers, &Value::Null)
            .await
            .body
    };
    // The first list fills the cache, the second one uses it.
    let list = get("detail?all_tenants=0").await;
    assert_eq!(list, get("detail?all_tenants=0").await, "{after}");
    for listed in list["servers"].as_array().unwrap() {
        let mut alone = get(listed["id"].as_str().unwrap()).await["server"].take();
        alone.as_object_mut().unwrap().remove("server_groups");
        assert_eq!(*listed, alone, "after {after}, microversion {microversion}");
    }
}

#[tokio::test]
async fn a_list_of_servers_follows_every_change_of_what_it_shows() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let check = async |after: &str| {
        for microversion in ["2.1", "2.60", "2.93"] {
            check_list(&client, microversion, after).await;
        }
        check_list(&admin, "2.60", after).await;
    };
    let network = id(&client
        .make("/network/v2.0/networks", json!({"network": {"name": "n"}}))
        .await);
    let subnet = json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.0.0.0/24"}});
    let subnet = id(&client.make("/network/v2.0/subnets", subnet).await);
    let group = json!({"security_group": {"name": "g"}});
    let group = id(&client.make("/network/v2.0/security-groups", group).await);
    let port = json!({"port": {"network_id": network, "security_groups": [group]}});
    let port = id(&client.make("/network/v2.0/ports", port).await);
    let image = id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0]);
    for number in 0..3 {
        let networks = if number == 0 {
            json!([{"port": port}])
        } else {
            json!([{"uuid": network}])
        };
        let body = json!({"server": {"name": format!("s{number}"), "flavorRef": "1",
            "imageRef": image, "networks": networks}});
        client.make("/compute/v2.1/servers", body).await;
    }
    check("creation").await;
    let list = client.fetch("/compute/v2.1/servers").await;
    let of_port = format!("/network/v2.0/ports/{port}");
    let server = client.fetch(&of_port).await["device_id"]
        .as_str()
        .unwrap()
        .to_owned();
    assert_eq!(list.as_array().unwrap().len(), 3);
    let at = |rest: &str| format!("/compute/v2.1/servers/{server}{rest}");

    client
        .put(&at(""), json!({"server": {"name": "renamed"}}))
        .await;
    check("a new name").await;
    client
        .post(&at("/metadata"), json!({"metadata": {"a": "b"}}))
        .await;
    check("metadata").await;
    client.post(&at("/action"), json!({"os-stop": null})).await;
    check("a stop").await;
    client
        .put(&of_port, json!({"port": {"security_groups": []}}))
        .await;
    check("security groups of the port").await;
    client
        .put(&of_port, json!({"port": {"security_groups": [group]}}))
        .await;
    let of_group = format!("/network/v2.0/security-groups/{group}");
    client
        .put(&of_group, json!({"security_group": {"name": "other"}}))
        .await;
    check("a new name of the group").await;
    let of_network = format!("/network/v2.0/networks/{network}");
    client
        .put(&of_network, json!({"network": {"name": "other"}}))
        .await;
    check("a new name of the network").await;

    let public = id(&client
        .fetch("/network/v2.0/networks?router:external=true")
        .await[0]);
    let router = json!({"router": {"external_gateway_info": {"network_id": public}}});
    let router = id(&client.make("/network/v2.0/routers", router).await);
    let interface = format!("/network/v2.0/routers/{router}/add_router_interface");
    client.put(&interface, json!({"subnet_id": subnet})).await;
    let floating = json!({"floatingip": {"floating_network_id": public, "port_id": port}});
    let floating = client.make("/network/v2.0/floatingips", floating).await;
    let found = client.fetch(&at("")).await.to_string();
    assert!(found.contains(floating["floating_ip_address"].as_str().unwrap()));
    check("a floating IP").await;
    let of_floating = format!("/network/v2.0/floatingips/{}", id(&floating));
    client
        .put(&of_floating, json!({"floatingip": {"port_id": null}}))
        .await;
    check("the floating IP let go").await;
    client
        .put(&of_floating, json!({"floatingip": {"port_id": port}}))
        .await;
    client.delete(&of_floating).await;
    check("the floating IP deleted").await;
    client
        .post(
            &at("/os-interface"),
            json!({"interfaceAttachment": {"net_id": network}}),
        )
        .await;
    check("another port").await;
    client.delete(&at(&format!("/os-interface/{port}"))).await;
    check("a port less").await;
    cloud.fail_server(&server, "broken").unwrap();
    check("an error").await;
    client.delete(&at("")).await;
    check("deletion").await;
    assert_eq!(
        client
            .fetch("/compute/v2.1/servers")
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[tokio::test]
async fn a_refused_change_leaves_the_list_as_it_was() {
    let (_cloud, client) = demo().await;
    let body = json!({"server": {"name": "s", "flavorRef": "1", "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "source_type": "blank",
            "destination_type": "volume", "volume_size": 1}]}});
    let server = id(&client.make("/compute/v2.1/servers", body).await);
    check_list(&client, "2.60", "creation").await;
    let at = format!("/compute/v2.1/servers/{server}");
    let got = client
        .put(&at, json!({"server": {"name": "x", "colour": "red"}}))
        .await;
    assert_eq!(got.status, 400);
    check_list(&client, "2.60", "a refused change").await;
}

#[tokio::test]
async fn lists_can_lag_behind_writes_while_a_resource_by_its_id_is_the_present_one() {
    let (cloud, client) = demo().await;
    let lag = json!({"list_lag_milliseconds": 5000});
    assert_eq!(client.post("/_simulator/settings", lag).await.status, 200);
    let names = async || {
        let path = "/network/v2.0/networks?project_id=".to_owned() + &client.project;
        let found = client.fetch(&path).await;
        let found = found.as_array().unwrap().iter();
        let names = found.map(|it| it["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>()
    };
    let before = names().await;
    let network = json!({"network": {"name": "new"}});
    let network_id = id(&client.make("/network/v2.0/networks", network).await);
    let one = format!("/network/v2.0/networks/{network_id}");
    assert_eq!(client.get(&one).await.status, 200);
    assert_eq!(names().await, before);
    let seconds = std::time::Duration::from_secs;
    cloud.advance_clock(seconds(4));
    assert_eq!(names().await, before);
    let change = json!({"network": {"name": "newer"}});
    client.put(&one, change).await;
    cloud.advance_clock(seconds(2));
    assert!(names().await.contains(&"new".to_owned()));
    client.delete(&one).await;
    assert_eq!(client.get(&one).await.status, 404);
    cloud.advance_clock(seconds(4));
    assert!(names().await.contains(&"newer".to_owned()));
    cloud.advance_clock(seconds(2));
    assert_eq!(names().await, before);
}
