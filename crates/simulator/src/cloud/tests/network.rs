use serde_json::json;

use super::*;

/// Requests that Neutron rejects: path, body, status, type.
#[tokio::test]
async fn refusals_are_neutrons() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let zero = "00000000-0000-4000-8000-000000000000";
    let rows = [
        (
            "networks",
            json!({"network": {"tags": ["a"]}}),
            400,
            "HTTPBadRequest",
            "Attribute 'tags' not allowed in POST",
        ),
        (
            "networks",
            json!({"network": {"nonsense": 1}}),
            400,
            "HTTPBadRequest",
            "Unrecognized attribute(s) 'nonsense'",
        ),
        (
            "networks",
            json!({"network": {"shared": true}}),
            403,
            "PolicyNotAuthorized",
            "disallowed by policy",
        ),
        (
            "networks",
            json!({"network": {"mtu": "many"}}),
            400,
            "HTTPBadRequest",
            "Invalid input for mtu",
        ),
        (
            "networks",
            json!({"subnet": {}}),
            400,
            "HTTPBadRequest",
            "Unable to find 'network'",
        ),
        (
            "subnets",
            json!({"subnet": {"network_id": net.network, "ip_version": 4, "cidr": "10.6.0.0/25"}}),
            400,
            "InvalidInput",
            "overlaps with another subnet",
        ),
        (
            "subnets",
            json!({"subnet": {"network_id": net.network, "ip_version": 4, "cidr": "10.6.0.1/25"}}),
            400,
            "HTTPBadRequest",
            "is recommended",
        ),
        (
            "subnets",
            json!({"subnet": {"network_id": zero, "ip_version": 4, "cidr": "10.9.0.0/25"}}),
            404,
            "NetworkNotFound",
            "could not be found",
        ),
        (
            "subnets",
            json!({"subnet": {"ip_version": 4, "cidr": "10.9.0.0/25"}}),
            400,
            "HTTPBadRequest",
            "Required attribute 'network_id' not specified",
        ),
        (
            "ports",
            json!({"port": {"network_id": net.network, "fixed_ips": [{"ip_address": "10.6.0.1"}]}}),
            409,
            "IpAddressAlreadyAllocated",
            "already allocated",
        ),
        (
            "ports",
            json!({"port": {"network_id": net.network, "fixed_ips": [{"ip_address": "10.7.0.1"}]}}),
            400,
            "InvalidIpForNetwork",
            "is not a valid IP",
        ),
        (
            "ports",
            json!({"port": {"network_id": net.network, "security_groups": [zero]}}),
            404,
            "SecurityGroupNotFound",
            "does not exist",
        ),
        (
            "ports",
            json!({"port": {"network_id": net.external}}),
            403,
            "PolicyNotAuthorized",
            "disallowed by policy",
        ),
        (
            "floatingips",
            json!({"floatingip": {"floating_network_id": net.network}}),
            400,
            "BadRequest",
            "is not a valid external network",
        ),
        (
            "floatingips",
            json!({"floatingip": {"floating_network_id": net.external, "port_id": zero}}),
            404,
            "PortNotFound",
            "could not be found",
        ),
        (
            "security-groups",
            json!({"security_group": {"name": "default"}}),
            409,
            "SecurityGroupDefaultAlreadyExists",
            "already exists",
        ),
        (
            "security-group-rules",
            json!({"security_group_rule": {"security_group_id": zero, "direction": "ingress"}}),
            404,
            "SecurityGroupNotFound",
            "does not exist",
        ),
    ];
    for (collection, body, status, kind, words) in rows {
        let got = client
            .post(&format!("/network/v2.0/{collection}"), body.clone())
            .await;
        let error = &got.body["NeutronError"];
        assert_eq!(got.status, status, "{body}: {}", got.text);
        assert_eq!(error["type"], kind, "{body}: {}", got.text);
        assert!(
            error["message"].as_str().unwrap().contains(words),
            "{body}: {}",
            got.text
        );
        assert!(got.headers.contains_key("x-openstack-request-id"));
    }
}

#[tokio::test]
async fn what_is_in_use_cannot_be_deleted() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let port = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    let group = port["security_groups"][0].as_str().unwrap();
    let interface = client
        .fetch(&format!(
            "/network/v2.0/ports?device_owner=network:router_interface&network_id={}",
            net.network
        ))
        .await;
    for (path, status, kind) in [
        (format!("networks/{}", net.network), 409, "NetworkInUse"),
        (format!("subnets/{}", net.subnet), 409, "SubnetInUse"),
        (format!("routers/{}", net.router), 409, "RouterInUse"),
        (
            format!("security-groups/{group}"),
            409,
            "SecurityGroupInUse",
        ),
        (
            format!("ports/{}", id(&interface[0])),
            409,
            "ServicePortInUse",
        ),
        ("routers/none".to_owned(), 404, "RouterNotFound"),
    ] {
        let got = client.delete(&format!("/network/v2.0/{path}")).await;
        assert_eq!(
            (got.status, &got.body["NeutronError"]["type"]),
            (status, &json!(kind)),
            "{path}: {}",
            got.text
        );
    }
}

#[tokio::test]
async fn a_floating_ip_holds_its_router_interface_and_gateway() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let port = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    let floating = client
        .make(
            "/network/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": net.external, "description": "d"}}),
        )
        .await;
    assert_eq!(
        (&floating["status"], &floating["router_id"]),
        (&json!("DOWN"), &Value::Null)
    );
    let path = format!("/network/v2.0/floatingips/{}", id(&floating));
    let got = client
        .put(&path, json!({"floatingip": {"port_id": port["id"]}}))
        .await;
    assert_eq!(
        (got.status, &got.body["floatingip"]["status"]),
        (200, &json!("ACTIVE"))
    );
    assert_eq!(got.body["floatingip"]["router_id"], net.router);
    let second = client
        .post(
            "/network/v2.0/floatingips",
            json!({"floatingip": {"floating_network_id": net.external, "port_id": port["id"]}}),
        )
        .await;
    assert_eq!(
        (second.status, &second.body["NeutronError"]["type"]),
        (409, &json!("FloatingIPPortAlreadyAssociated"))
    );
    let router = format!("/network/v2.0/routers/{}", net.router);
    let got = client
        .put(
            &format!("{router}/remove_router_interface"),
            json!({"subnet_id": net.subnet}),
        )
        .await;
    assert_eq!(
        got.body["NeutronError"]["type"],
        "RouterInterfaceInUseByFloatingIP"
    );
    let got = client
        .put(&router, json!({"router": {"external_gateway_info": null}}))
        .await;
    assert_eq!(
        got.body["NeutronError"]["type"],
        "RouterExternalGatewayInUseByFloatingIp"
    );
    client
        .delete(&format!("/network/v2.0/ports/{}", id(&port)))
        .await;
    assert_eq!(client.fetch(&path).await["status"], "DOWN");
}

#[tokio::test]
async fn an_update_of_a_floating_ip_without_any_field_dissociates_it() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let port = json!({"port": {"network_id": net.network}});
    let port = client.make("/network/v2.0/ports", port).await;
    let floating =
        json!({"floatingip": {"floating_network_id": net.external, "port_id": port["id"]}});
    let floating = client.make("/network/v2.0/floatingips", floating).await;
    let path = format!("/network/v2.0/floatingips/{}", id(&floating));

    let described = json!({"floatingip": {"description": "kept"}});
    let got = client.put(&path, described).await;
    assert_eq!(
        (got.status, &got.body["floatingip"]["port_id"]),
        (200, &port["id"])
    );
    let address = json!({"floatingip": {"fixed_ip_address": floating["fixed_ip_address"]}});
    assert_eq!(client.put(&path, address).await.status, 400);

    let got = client.put(&path, json!({"floatingip": {}})).await;
    assert_eq!(got.status, 200);
    for field in ["port_id", "fixed_ip_address", "router_id"] {
        assert_eq!(got.body["floatingip"][field], Value::Null, "{field}");
    }
    assert_eq!(got.body["floatingip"]["description"], "kept");
    assert_eq!(client.fetch(&path).await["status"], "DOWN");
}

#[tokio::test]
async fn a_floating_ip_needs_a_router_to_its_network() {
    let (_cloud, client) = demo().await;
    let network = id(&client
        .make("/network/v2.0/networks", json!({"network": {}}))
        .await);
    client
        .make(
            "/network/v2.0/subnets",
            json!({"subnet": {"network_id": network, "ip_version": 4, "cidr": "10.1.0.0/24"}}),
        )
        .await;
    let port = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": network}}),
        )
        .await;
    let external = client
        .fetch("/network/v2.0/networks?router:external=true")
        .await;
    let got = client.post("/network/v2.0/floatingips", json!({"floatingip": {"floating_network_id": external[0]["id"], "port_id": port["id"]}})).await;
    assert_eq!(
        (got.status, &got.body["NeutronError"]["type"]),
        (404, &json!("ExternalGatewayForFloatingIPNotFound"))
    );
}

#[tokio::test]
async fn the_first_port_of_a_default_subnet_skips_gateway_and_metadata_port() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/29").await;
    let first = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    assert_eq!(first["fixed_ips"][0]["ip_address"], "10.6.0.3");
    assert_eq!(first["tenant_id"], client.project);
    assert!(
        first.get("binding:host_id").is_none(),
        "only administrators see bindings"
    );
    for _ in 0..3 {
        client
            .make(
                "/network/v2.0/ports",
                json!({"port": {"network_id": net.network}}),
            )
            .await;
    }
    let got = client
        .post(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    assert_eq!(
        (got.status, &got.body["NeutronError"]["type"]),
        (409, &json!("IpAddressGenerationFailure"))
    );
    client
        .delete(&format!("/network/v2.0/ports/{}", id(&first)))
        .await;
    let again = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    assert_eq!(again["fixed_ips"], first["fixed_ips"]);
}

#[tokio::test]
async fn addresses_of_automatic_subnets_follow_from_hardware_addresses() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let port = json!({"port": {"network_id": net.network, "mac_address": "fa:16:3e:00:00:01"}});
    let port = client.make("/network/v2.0/ports", port).await;
    let path = format!("/network/v2.0/ports/{}", id(&port));
    let subnet = json!({"subnet": {"network_id": net.network, "ip_version": 6, "cidr": "fd00:6::/64",
        "ipv6_ra_mode": "slaac", "ipv6_address_mode": "slaac"}});
    let subnet = client.make("/network/v2.0/subnets", subnet).await;
    let automatic = "fd00:6::f816:3eff:fe00:1";
    let addresses = async || -> Vec<String> {
        let port = client.fetch(&path).await;
        let fixed = port["fixed_ips"].as_array().unwrap();
        let addresses = fixed.iter().map(|one| one["ip_address"].as_str().unwrap());
        addresses.map(str::to_owned).collect()
    };
    let [first, second] = addresses().await.try_into().unwrap();
    assert_eq!(
        second, automatic,
        "a port that was there has an address in the new subnet"
    );

    let chosen =
        json!({"port": {"fixed_ips": [{"subnet_id": subnet["id"], "ip_address": "fd00:6::5"}]}});
    let got = client.put(&path, chosen).await;
    assert_eq!(got.status, 400, "{}", got.text);
    let less = json!({"port": {"fixed_ips": [{"ip_address": first}]}});
    assert_eq!(client.put(&path, less).await.status, 200);
    assert_eq!(
        addresses().await,
        [&first, automatic],
        "it cannot be left out"
    );

    let path = format!("/network/v2.0/subnets/{}", id(&subnet));
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(addresses().await, [first], "it goes with its subnet");
}

#[tokio::test]
async fn a_hardware_address_is_on_one_port_of_a_network() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let elsewhere = json!({"network": {"name": "elsewhere"}});
    let elsewhere = client.make("/network/v2.0/networks", elsewhere).await;
    let port =
        |network: &str, mac: &str| json!({"port": {"network_id": network, "mac_address": mac}});
    let ports = "/network/v2.0/ports";
    let first = client
        .make(ports, port(&net.network, "fa:16:3e:00:00:0a"))
        .await;
    let second = client
        .make(ports, port(&net.network, "fa:16:3e:00:00:0b"))
        .await;
    client
        .make(ports, port(&id(&elsewhere), "fa:16:3e:00:00:0a"))
        .await;
    let again = client
        .post(ports, port(&net.network, "FA:16:3E:00:00:0A"))
        .await;
    assert_eq!(again.status, 409, "{}", again.text);
    assert_eq!(again.body["NeutronError"]["type"], "MacAddressInUse");
    let change = json!({"port": {"mac_address": "fa:16:3e:00:00:0a"}});
    let path = |port: &Value| format!("{ports}/{}", id(port));
    assert_eq!(client.put(&path(&first), change.clone()).await.status, 200);
    assert_eq!(client.put(&path(&second), change).await.status, 409);
}

#[tokio::test]
async fn a_bulk_creation_that_fails_leaves_nothing() {
    let (cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/29").await;
    let before = cloud.resources();
    let ports: Vec<Value> = (0..10)
        .map(|_| json!({"network_id": net.network}))
        .collect();
    let got = client
        .post("/network/v2.0/ports", json!({"ports": ports}))
        .await;
    assert_eq!(got.status, 409);
    assert_eq!(cloud.resources(), before);
}

#[tokio::test]
async fn lists_filter_select_and_page() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let ports: Vec<Value> = (0..5)
        .map(|n| json!({"network_id": net.network, "name": format!("p{n}"), "tags": ["lost"]}))
        .collect();
    let got = client
        .post("/network/v2.0/ports", json!({"ports": ports}))
        .await;
    let ids: Vec<String> = got.body["ports"]
        .as_array()
        .unwrap()
        .iter()
        .map(id)
        .collect();
    assert_eq!(
        got.body["ports"][0]["tags"],
        json!([]),
        "silently dropped, as by Zed"
    );
    for (index, port_id) in ids.iter().enumerate() {
        let tags = json!({"tags": [format!("t{}", index % 2), "all"]});
        let got = client
            .put(&format!("/network/v2.0/ports/{port_id}/tags"), tags)
            .await;
        assert_eq!(got.status, 200, "{}", got.text);
    }
    for (query, count) in [
        ("tags=all", 5),
        ("tags=all,t0", 3),
        ("tags-any=t0,t1", 5),
        ("not-tags=t0", 4),
        ("name=p1&name=p2", 2),
        ("name=p1&network_id=none", 0),
        ("device_owner=", 5),
        ("admin_state_up=True&tags=all", 5),
        ("fixed_ips=ip_address=10.6.0.3", 1),
        ("project_id=other", 0),
    ] {
        let found = client.fetch(&format!("/network/v2.0/ports?{query}")).await;
        assert_eq!(found.as_array().unwrap().len(), count, "{query}");
    }
    let by_ids = client
        .fetch(&format!(
            "/network/v2.0/ports?id={}&id={}&fields=id&fields=name",
            ids[0], ids[1]
        ))
        .await;
    assert_eq!(by_ids.as_array().unwrap().len(), 2);
    assert_eq!(by_ids[0].as_object().unwrap().len(), 2);
    let bad = client.get("/network/v2.0/ports?colour=red").await;
    assert_eq!(bad.status, 400);

    let mut seen = Vec::new();
    let mut next = Some("/network/v2.0/ports?tags=all&limit=2".to_owned());
    while let Some(url) = next {
        let got = client.get(&url).await;
        seen.extend(got.body["ports"].as_array().unwrap().iter().map(id));
        let links = got.body["ports_links"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        next = links
            .iter()
            .find(|link| link["rel"] == "next")
            .map(|link| link["href"].as_str().unwrap().replace(BASE, ""));
    }
    let mut expected = ids.clone();
    expected.sort();
    assert_eq!(seen, expected);
}

#[tokio::test]
async fn a_stale_revision_is_refused() {
    let (_cloud, client) = demo().await;
    let created = client
        .make("/network/v2.0/networks", json!({"network": {"name": "a"}}))
        .await;
    let path = format!("/network/v2.0/networks/{}", id(&created));
    let body = json!({"network": {"name": "b"}});
    let stale = [("if-match", "revision_number=7")];
    let got = client.send(Method::PUT, &path, &stale, &body).await;
    assert_eq!(
        (got.status, &got.body["NeutronError"]["type"]),
        (412, &json!("RevisionNumberConstraintFailed"))
    );
    let current = format!("revision_number={}", created["revision_number"]);
    let got = client
        .send(Method::PUT, &path, &[("if-match", &current)], &body)
        .await;
    assert_eq!(got.status, 200);
    assert!(got.body["network"]["revision_number"].as_i64() > created["revision_number"].as_i64());
}

#[tokio::test]
async fn a_rule_twice_is_a_conflict_however_it_is_spelled() {
    let (_cloud, client) = demo().await;
    let group = client
        .make(
            "/network/v2.0/security-groups",
            json!({"security_group": {"name": "g"}}),
        )
        .await;
    let rule = |protocol: Value, prefix: Value| {
        json!({"security_group_rule": {"security_group_id": group["id"], "direction": "ingress",
            "protocol": protocol, "port_range_min": 22, "port_range_max": 22, "remote_ip_prefix": prefix}})
    };
    let path = "/network/v2.0/security-group-rules";
    assert_eq!(
        client
            .post(path, rule(json!("tcp"), Value::Null))
            .await
            .status,
        201
    );
    for (protocol, prefix) in [
        (json!("tcp"), json!("0.0.0.0/0")),
        (json!(6), Value::Null),
        (json!("TCP"), Value::Null),
    ] {
        let got = client.post(path, rule(protocol, prefix)).await;
        assert_eq!(
            (got.status, &got.body["NeutronError"]["type"]),
            (409, &json!("SecurityGroupRuleExists"))
        );
    }
    for (body, kind) in [
        (
            json!({"port_range_min": 5, "port_range_max": 1, "protocol": "tcp"}),
            "SecurityGroupInvalidPortRange",
        ),
        (
            json!({"port_range_min": 5, "port_range_max": 5}),
            "SecurityGroupProtocolRequiredWithPorts",
        ),
        (
            json!({"protocol": "nonsense"}),
            "SecurityGroupRuleInvalidProtocol",
        ),
        (
            json!({"remote_ip_prefix": "::/0"}),
            "SecurityGroupRuleParameterConflict",
        ),
        (
            json!({"remote_ip_prefix": "10.0.0.0/8", "remote_group_id": group["id"]}),
            "SecurityGroupMultipleRemoteEntites",
        ),
    ] {
        let mut body = body;
        body["security_group_id"] = group["id"].clone();
        body["direction"] = json!("ingress");
        let got = client
            .post(path, json!({"security_group_rule": body}))
            .await;
        assert_eq!(
            (got.status, &got.body["NeutronError"]["type"]),
            (400, &json!(kind)),
            "{}",
            got.text
        );
    }
}

#[tokio::test]
async fn a_quota_stops_creation_and_details_tell_the_use() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let path = format!("/network/v2.0/quotas/{}", client.project);
    assert_eq!(
        client
            .put(&path, json!({"quota": {"network": 1}}))
            .await
            .status,
        403
    );
    assert_eq!(
        admin
            .put(&path, json!({"quota": {"network": 1}}))
            .await
            .status,
        200
    );
    client
        .make("/network/v2.0/networks", json!({"network": {}}))
        .await;
    let got = client
        .post("/network/v2.0/networks", json!({"network": {}}))
        .await;
    assert_eq!(
        (got.status, &got.body["NeutronError"]["type"]),
        (409, &json!("OverQuota"))
    );
    assert_eq!(
        got.body["NeutronError"]["message"],
        "Quota exceeded for resources: ['network']."
    );
    let details = client.fetch(&format!("{path}/details.json")).await;
    assert_eq!(
        details["network"],
        json!({"limit": 1, "used": 1, "reserved": 0})
    );
    // As the openstack client without --force, and with it.
    for (quota, status) in [
        (json!({"network": 5, "check_limit": true}), 200),
        (json!({"network": -1, "check_limit": true}), 200),
        (json!({"network": 0, "check_limit": true}), 400),
        (json!({"network": 0, "force": true}), 200),
    ] {
        let got = admin.put(&path, json!({"quota": quota})).await;
        assert_eq!(got.status, status, "{quota}: {}", got.text);
    }
}

#[tokio::test]
async fn an_exhausted_external_network_says_so() {
    let options = Options {
        external_cidr: "127.9.0.0/28".parse().unwrap(),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let external = client
        .fetch("/network/v2.0/networks?router:external=true")
        .await;
    let body = json!({"floatingip": {"floating_network_id": external[0]["id"]}});
    let first = client.make("/network/v2.0/floatingips", body.clone()).await;
    assert_eq!(first["floating_ip_address"], "127.9.0.10");
    for _ in 0..4 {
        client.make("/network/v2.0/floatingips", body.clone()).await;
    }
    let got = client.post("/network/v2.0/floatingips", body).await;
    assert_eq!(
        (got.status, &got.body["NeutronError"]["type"]),
        (400, &json!("ExternalIpAddressExhausted"))
    );
}

#[tokio::test]
async fn trunks_contain_their_ports() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let parent = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    let sub = client
        .make(
            "/network/v2.0/ports",
            json!({"port": {"network_id": net.network}}),
        )
        .await;
    let trunk = client
        .make(
            "/network/v2.0/trunks",
            json!({"trunk": {"port_id": parent["id"], "name": "t"}}),
        )
        .await;
    let path = format!("/network/v2.0/trunks/{}", id(&trunk));
    let subports = json!({"sub_ports": [{"port_id": sub["id"], "segmentation_id": 7, "segmentation_type": "vlan"}]});
    assert_eq!(
        client
            .put(&format!("{path}/add_subports"), subports)
            .await
            .status,
        200
    );
    let got = client
        .delete(&format!("/network/v2.0/ports/{}", id(&parent)))
        .await;
    assert_eq!(got.body["NeutronError"]["type"], "PortInUseAsTrunkParent");
    assert_eq!(client.delete(&path).await.status, 204);
    assert_eq!(
        client
            .delete(&format!("/network/v2.0/ports/{}", id(&parent)))
            .await
            .status,
        204
    );
}

#[tokio::test]
async fn rules_of_two_groups_in_one_request_are_refused() {
    let (_cloud, client) = demo().await;
    let mut rules = Vec::new();
    for name in ["a", "b"] {
        let body = json!({"security_group": {"name": name}});
        let group = client.make("/network/v2.0/security-groups", body).await;
        rules.push(json!({
            "security_group_id": group["id"],
            "direction": "ingress",
        }));
    }
    let body = json!({"security_group_rules": rules});
    let got = client
        .post("/network/v2.0/security-group-rules", body)
        .await;
    assert_eq!(got.status, 400);
    assert_eq!(
        got.body["NeutronError"]["type"],
        "SecurityGroupNotSingleGroupRules"
    );
}

#[tokio::test]
async fn subnets_of_an_external_network_are_visible_to_administrators_only() {
    let (cloud, client) = demo().await;
    let external = "/network/v2.0/networks?router:external=true";
    let external = client.get(external).await.body["networks"][0]["id"].clone();
    let list = format!(
        "/network/v2.0/subnets?network_id={}",
        external.as_str().unwrap()
    );
    assert_eq!(client.get(&list).await.body["subnets"], json!([]));
    let admin = Client::login(&cloud, "admin").await;
    let seen = admin.get(&list).await.body["subnets"].clone();
    assert_eq!(seen.as_array().unwrap().len(), 1);
    let one = format!("/network/v2.0/subnets/{}", seen[0]["id"].as_str().unwrap());
    assert_eq!(client.get(&one).await.status, 404);
    assert_eq!(admin.get(&one).await.status, 200);
}
