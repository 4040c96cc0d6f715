use serde_json::json;

use super::*;

async fn image(client: &Client) -> String {
    id(&client.fetch("/image/v2/images?name=ubuntu-24.04").await[0])
}

#[tokio::test]
async fn refusals_are_novas() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let image = image(&client).await;
    let port = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    let base = json!({"name": "a", "flavorRef": "2", "imageRef": image, "networks": [{"uuid": net.network}]});
    let long = "A".repeat(65_540);
    let rows = [
        (
            json!({"flavorRef": "nope"}),
            400,
            "badRequest",
            "Flavor nope could not be found.",
        ),
        (
            json!({"imageRef": "nope"}),
            400,
            "badRequest",
            "Can not find requested image",
        ),
        (
            json!({"imageRef": ""}),
            400,
            "badRequest",
            "Block Device Mapping is Invalid",
        ),
        (
            json!({"networks": [{"uuid": "nope"}]}),
            400,
            "badRequest",
            "Network nope could not be found.",
        ),
        (
            json!({"networks": [{"port": "nope"}]}),
            400,
            "badRequest",
            "Port nope could not be found.",
        ),
        (
            json!({"availability_zone": "nope"}),
            400,
            "badRequest",
            "The requested availability zone is not available",
        ),
        (
            json!({"key_name": "nope"}),
            400,
            "badRequest",
            "Invalid key_name provided.",
        ),
        (
            json!({"security_groups": [{"name": "nope"}]}),
            400,
            "badRequest",
            "Security group nope not found",
        ),
        (json!({"user_data": long}), 400, "badRequest", "user_data"),
        (json!({"user_data": "%%%"}), 400, "badRequest", "base64"),
        (
            json!({"tags": ["a"]}),
            400,
            "badRequest",
            "Additional properties are not allowed ('tags' was unexpected)",
        ),
        (json!({"metadata": {"a": 1}}), 400, "badRequest", "a"),
    ];
    for (change, status, key, words) in rows {
        let mut body = base.clone();
        body.as_object_mut()
            .unwrap()
            .extend(change.as_object().unwrap().clone());
        let got = client
            .post("/compute/v2.1/servers", json!({"server": body}))
            .await;
        assert_eq!(got.status, status, "{}", got.text);
        let message = got.body[key]["message"].as_str().unwrap_or_default();
        assert!(message.contains(words), "{words}: {}", got.text);
    }
    let mut body = base.clone();
    body["networks"] = json!([{"port": port["id"]}]);
    client
        .make("/compute/v2.1/servers", json!({"server": body}))
        .await;
    let got = client
        .post("/compute/v2.1/servers", json!({"server": body}))
        .await;
    assert_eq!(
        (got.status, got.body.get("conflictingRequest").is_some()),
        (409, true),
        "{}",
        got.text
    );
    let got = client.get("/compute/v2.1/servers/nope").await;
    assert_eq!(
        got.body["itemNotFound"]["message"],
        "Instance nope could not be found."
    );
}

#[tokio::test]
async fn quotas_refuse_in_novas_words() {
    let quotas = [("instances".to_owned(), 1), ("cores".to_owned(), 2)].into();
    let cloud = Cloud::open(Options {
        quotas,
        ..Options::default()
    })
    .await
    .unwrap();
    let client = Client::login(&cloud, "demo").await;
    let body = json!({"server": {"name": "a", "flavorRef": "3", "imageRef": image(&client).await, "networks": "none"}});
    client.make("/compute/v2.1/servers", body.clone()).await;
    let got = client.post("/compute/v2.1/servers", body).await;
    assert_eq!(got.status, 403);
    assert_eq!(
        got.body["forbidden"]["message"],
        "Quota exceeded for instances, cores: Requested 1, 2, but already used 1, 2 of 1, 2 instances, cores"
    );
    let limits = client.fetch("/compute/v2.1/limits").await;
    assert_eq!(limits["absolute"]["totalCoresUsed"], 2);
}

#[tokio::test]
async fn microversions_are_negotiated_and_shape_the_reply() {
    let (_cloud, client) = demo().await;
    let body = json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image(&client).await,
        "networks": "none", "tags": ["x"]}});
    let v = |text: &'static str| [("openstack-api-version", text)];
    let got = client
        .send(
            Method::POST,
            "/compute/v2.1/servers",
            &v("compute 2.52"),
            &body,
        )
        .await;
    assert_eq!(got.status, 202, "{}", got.text);
    assert_eq!(got.headers["openstack-api-version"], "compute 2.52");
    let path = format!("/compute/v2.1/servers/{}", id(&got.body["server"]));
    let old = client.fetch(&path).await;
    assert!(old.get("tags").is_none() && old["flavor"].get("id").is_some());
    let new = client
        .send(Method::GET, &path, &v("compute 2.60"), &Value::Null)
        .await
        .body;
    assert_eq!(new["server"]["tags"], json!(["x"]));
    assert_eq!(new["server"]["flavor"]["original_name"], "m1.small");
    let got = client
        .send(Method::GET, &path, &v("compute 2.99"), &Value::Null)
        .await;
    assert_eq!(got.status, 406);
    assert!(got.text.contains("Minimum is 2.1 and maximum is 2.93"));
    let got = client
        .send(Method::GET, &path, &v("compute nonsense"), &Value::Null)
        .await;
    assert_eq!(got.status, 400);
    let old_header = [("x-openstack-nova-api-version", "2.26")];
    let got = client
        .send(
            Method::GET,
            "/compute/v2.1/servers/detail?tags=x",
            &old_header,
            &Value::Null,
        )
        .await;
    assert_eq!(got.body["servers"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn server_lists_filter_by_name_pattern_status_and_change() {
    let (_cloud, client) = demo().await;
    let image = image(&client).await;
    for name in ["web-1", "web-2", "db-1"] {
        client.make("/compute/v2.1/servers", json!({"server": {"name": name, "flavorRef": "2", "imageRef": image, "networks": "none"}})).await;
    }
    for (query, count) in [
        ("name=web", 2),
        ("name=^web-1$", 1),
        ("name=%5Eweb-.*", 2),
        ("name=^eb", 0),
        ("status=ACTIVE", 3),
        ("status=error", 0),
        ("limit=2", 2),
        ("changes-since=2020-01-01T00:00:00Z", 3),
        ("changes-since=2999-01-01T00:00:00Z", 0),
    ] {
        let found = client
            .fetch(&format!("/compute/v2.1/servers/detail?{query}"))
            .await;
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }
    let gone = client.fetch("/compute/v2.1/servers?name=db").await;
    client
        .delete(&format!("/compute/v2.1/servers/{}", id(&gone[0])))
        .await;
    assert_eq!(
        client
            .fetch("/compute/v2.1/servers")
            .await
            .as_array()
            .unwrap()
            .len(),
        2
    );
    let since = client
        .fetch("/compute/v2.1/servers/detail?changes-since=2020-01-01T00:00:00Z")
        .await;
    let deleted: Vec<&Value> = since
        .as_array()
        .unwrap()
        .iter()
        .filter(|s| s["status"] == "DELETED")
        .collect();
    assert_eq!(deleted.len(), 1);
    let mut names = Vec::new();
    let mut next = Some("/compute/v2.1/servers?limit=1".to_owned());
    while let Some(url) = next {
        let got = client.get(&url).await;
        names.extend(
            got.body["servers"]
                .as_array()
                .unwrap()
                .iter()
                .map(|s| s["name"].clone()),
        );
        next = got.body["servers_links"][0]["href"]
            .as_str()
            .map(|href| href.replace(BASE, ""));
    }
    assert_eq!(names.len(), 2);
}

#[tokio::test]
async fn actions_move_a_server_between_its_states() {
    let (cloud, client) = demo().await;
    cloud.set_console(|id| format!("line one\nthis is {id}"));
    let server = client.make("/compute/v2.1/servers", json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image(&client).await, "networks": "none"}})).await;
    let path = format!("/compute/v2.1/servers/{}", id(&server));
    let action = format!("{path}/action");
    for (body, status, after) in [
        (json!({"os-start": null}), 409, "ACTIVE"),
        (json!({"os-stop": null}), 202, "SHUTOFF"),
        (json!({"os-start": null}), 202, "ACTIVE"),
        (json!({"reboot": {"type": "SOFT"}}), 202, "ACTIVE"),
        (json!({"reboot": {"type": "odd"}}), 400, "ACTIVE"),
        (json!({"nonsense": {}}), 400, "ACTIVE"),
        (json!({"lock": null}), 202, "ACTIVE"),
        (json!({"os-stop": null}), 409, "ACTIVE"),
        (json!({"unlock": null}), 202, "ACTIVE"),
    ] {
        let got = client.post(&action, body.clone()).await;
        assert_eq!(got.status, status, "{body}: {}", got.text);
        assert_eq!(client.fetch(&path).await["status"], after, "{body}");
    }
    let got = client
        .post(&action, json!({"os-getConsoleOutput": {"length": 1}}))
        .await;
    assert_eq!(got.body["output"], format!("this is {}", id(&server)));
}

#[tokio::test]
async fn a_server_that_no_host_takes_goes_to_error_with_a_fault() {
    let (_cloud, client) = demo().await;
    let image = image(&client).await;
    let group = client
        .make(
            "/compute/v2.1/os-server-groups",
            json!({"server_group": {"name": "g", "policies": ["anti-affinity"]}}),
        )
        .await;
    let mut last = Value::Null;
    for n in 0..9 {
        last = client.make("/compute/v2.1/servers", json!({"server": {"name": format!("s{n}"), "flavorRef": "2", "imageRef": image, "networks": "none"},
            "os:scheduler_hints": {"group": group["id"]}})).await;
    }
    let found = client
        .fetch(&format!("/compute/v2.1/servers/{}", id(&last)))
        .await;
    assert_eq!(found["status"], "ERROR");
    assert!(
        found["fault"]["message"]
            .as_str()
            .unwrap()
            .contains("No valid host was found")
    );
}

#[tokio::test]
async fn booting_from_an_image_makes_a_volume_that_goes_with_the_server() {
    let (cloud, client) = demo().await;
    let before = cloud.resources();
    let server = client.make("/compute/v2.1/servers", json!({"server": {"name": "a", "flavorRef": "2", "imageRef": "", "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "uuid": image(&client).await, "source_type": "image",
            "destination_type": "volume", "volume_size": 20, "delete_on_termination": true}]}})).await;
    let path = format!("/compute/v2.1/servers/{}", id(&server));
    let found = client.fetch(&path).await;
    assert_eq!(
        (&found["status"], &found["image"]),
        (&json!("ACTIVE"), &json!(""))
    );
    let volume = found["os-extended-volumes:volumes_attached"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let found = client
        .fetch(&format!("/volume/v3/{}/volumes/{volume}", client.project))
        .await;
    assert_eq!(
        (&found["status"], &found["attachments"][0]["server_id"]),
        (&json!("in-use"), &server["id"])
    );
    client.delete(&path).await;
    assert_eq!(client.get(&path).await.status, 404);
    assert_eq!(cloud.resources(), before);
}

#[tokio::test]
async fn volumes_and_ports_attach_and_detach() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let server = client.make("/compute/v2.1/servers", json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image(&client).await, "networks": "none"}})).await;
    let path = format!("/compute/v2.1/servers/{}", id(&server));
    let volumes = format!("/volume/v3/{}/volumes", client.project);
    let volume = client
        .make(&volumes, json!({"volume": {"size": 1, "name": "v"}}))
        .await;
    assert_eq!(volume["status"], "creating");
    let attachments = format!("{path}/os-volume_attachments");
    let created = client
        .make(
            &attachments,
            json!({"volumeAttachment": {"volumeId": volume["id"]}}),
        )
        .await;
    assert_eq!(created["device"], "/dev/vdb");
    let one = format!("{volumes}/{}", id(&volume));
    assert_eq!(client.fetch(&one).await["status"], "in-use");
    assert_eq!(client.delete(&one).await.status, 400);
    assert_eq!(
        client
            .delete(&format!("{attachments}/{}", id(&volume)))
            .await
            .status,
        202
    );
    assert_eq!(client.fetch(&one).await["status"], "available");
    let interface = client
        .make(
            &format!("{path}/os-interface"),
            json!({"interfaceAttachment": {"net_id": net.network}}),
        )
        .await;
    assert_eq!(interface["port_state"], "DOWN");
    let port = interface["port_id"].as_str().unwrap();
    assert_eq!(
        client
            .delete(&format!("{path}/os-interface/{port}"))
            .await
            .status,
        202
    );
    assert_eq!(
        client
            .get(&format!("/network/v2.0/ports/{port}"))
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn addresses_come_and_go_through_nova_up_to_2_43() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let server = client.make("/compute/v2.1/servers", json!({"server": {"name": "a", "flavorRef": "2", "imageRef": image(&client).await, "networks": [{"uuid": net.network}]}})).await;
    let action = format!("/compute/v2.1/servers/{}/action", id(&server));
    let ports = format!("/network/v2.0/ports?device_id={}", id(&server));
    let addresses = async || -> Vec<String> {
        let port = client.fetch(&ports).await[0].clone();
        let fixed = port["fixed_ips"].as_array().unwrap();
        let addresses = fixed.iter().map(|one| one["ip_address"].as_str().unwrap());
        addresses.map(str::to_owned).collect()
    };
    let first = addresses().await;
    let more = json!({"addFixedIp": {"networkId": net.network}});
    assert_eq!(client.post(&action, more).await.status, 202);
    let both = addresses().await;
    assert_eq!((both.len(), &both[0]), (2, &first[0]));
    let less = json!({"removeFixedIp": {"address": first[0]}});
    assert_eq!(client.post(&action, less).await.status, 202);
    assert_eq!(addresses().await, both[1..]);

    let subnet = json!({"subnet": {"network_id": net.network, "ip_version": 6, "cidr": "fd00:6::/64",
        "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}});
    client.make("/network/v2.0/subnets", subnet).await;
    let with_automatic = addresses().await;
    assert_eq!(with_automatic.len(), 2);
    let less = json!({"removeFixedIp": {"address": with_automatic[1]}});
    assert_eq!(client.post(&action, less).await.status, 202);
    assert_eq!(addresses().await, with_automatic, "an automatic one stays");

    let floating = client
        .make(
            "/network/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": net.external}}),
        )
        .await;
    let of = |action: &str| json!({action: {"address": floating["floating_ip_address"]}});
    let path = format!("/network/v2.0/floatingips/{}", id(&floating));
    assert_eq!(client.post(&action, of("addFloatingIp")).await.status, 202);
    assert_eq!(client.fetch(&path).await["fixed_ip_address"], both[1]);
    let taken = client.post(&action, of("removeFloatingIp")).await;
    assert_eq!(taken.status, 202);
    assert_eq!(client.fetch(&path).await["port_id"], Value::Null);
}

#[tokio::test]
async fn keypairs_come_with_a_private_key_only_when_nova_generated_them() {
    let (_cloud, client) = demo().await;
    let created = client
        .make(
            "/compute/v2.1/os-keypairs",
            json!({"keypair": {"name": "k"}}),
        )
        .await;
    assert!(
        created["private_key"]
            .as_str()
            .unwrap()
            .starts_with("-----BEGIN")
    );
    let given = json!({"keypair": {"name": "k2", "public_key": created["public_key"]}});
    let given = client.make("/compute/v2.1/os-keypairs", given).await;
    assert!(given.get("private_key").is_none());
    assert_eq!(given["fingerprint"], created["fingerprint"]);
    let got = client
        .post(
            "/compute/v2.1/os-keypairs",
            json!({"keypair": {"name": "k"}}),
        )
        .await;
    assert_eq!(got.status, 409);
}

#[tokio::test]
async fn a_cloud_that_reclaims_later_keeps_deleted_servers_aside() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let body = json!({"server": {"name": "s", "flavorRef": "1", "networks": "none",
        "block_device_mapping_v2": [{"boot_index": 0, "source_type": "blank",
            "destination_type": "volume", "volume_size": 1}]}});
    let server = id(&client.make("/compute/v2.1/servers", body).await);
    let at = format!("/compute/v2.1/servers/{server}");
    let action = format!("{at}/action");
    let restore = json!({"restore": null});
    assert_eq!(client.post(&action, restore.clone()).await.status, 409);
    let odd = client
        .post("/_simulator/settings", json!({"colour": 1}))
        .await;
    assert_eq!(odd.status, 400);
    let hour = json!({"reclaim_instance_interval": 3600});
    let got = client.post("/_simulator/settings", hour).await;
    assert_eq!(got.body["reclaim_instance_interval"], 3600);
    assert_eq!(client.delete(&at).await.status, 204);
    let found = client.fetch(&at).await;
    assert_eq!(
        (&found["status"], &found["OS-EXT-STS:vm_state"]),
        (&json!("SOFT_DELETED"), &json!("soft-delete"))
    );
    assert_eq!(client.fetch("/compute/v2.1/servers").await, json!([]));
    let aside = "/compute/v2.1/servers?all_tenants=1&soft_deleted=1";
    assert_eq!(admin.fetch(aside).await[0]["id"], json!(server));
    assert_eq!(client.post(&action, restore).await.status, 202);
    assert_eq!(client.fetch(&at).await["status"], "ACTIVE");
    cloud.advance_clock(std::time::Duration::from_secs(1800));
    client.delete(&at).await;
    client.get(&at).await;
    cloud.advance_clock(std::time::Duration::from_secs(2000));
    assert_eq!(
        client.fetch(&at).await["status"],
        "SOFT_DELETED",
        "of the second deletion"
    );
    cloud.advance_clock(std::time::Duration::from_secs(2000));
    assert_eq!(client.get(&at).await.status, 404);
}
