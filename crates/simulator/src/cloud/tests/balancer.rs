use std::time::Duration;

use serde_json::json;

use super::*;
use crate::cloud::{Latency, Timings};

const LBAAS: &str = "/load-balancer/v2.0/lbaas";

#[tokio::test]
async fn a_pending_load_balancer_and_its_parts_cannot_be_changed() {
    let timings = Timings {
        load_balancer_create: Duration::from_secs(60),
        load_balancer_update: Duration::from_secs(60),
        load_balancer_delete: Duration::from_secs(60),
        ..Timings::default()
    };
    let options = Options {
        latency: Latency::Custom(Box::new(timings)),
        ..Options::default()
    };
    let cloud = Cloud::open(options).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let net = net(&client, "10.6.0.0/24").await;
    let created = client
        .make(
            &format!("{LBAAS}/loadbalancers"),
            json!({"loadbalancer": {"vip_subnet_id": net.subnet}}),
        )
        .await;
    let path = format!("{LBAAS}/loadbalancers/{}", id(&created));
    let listener = json!({"listener": {"loadbalancer_id": created["id"], "protocol": "TCP", "protocol_port": 80}});
    for got in [
        client
            .post(&format!("{LBAAS}/listeners"), listener.clone())
            .await,
        client
            .put(&path, json!({"loadbalancer": {"name": "b"}}))
            .await,
        client.delete(&path).await,
    ] {
        assert_eq!(got.status, 409, "{}", got.text);
        assert_eq!(got.body["faultcode"], "Client");
        assert!(
            got.body["faultstring"]
                .as_str()
                .unwrap()
                .contains("is immutable and cannot be updated")
        );
    }
    cloud.advance_clock(Duration::from_secs(61));
    assert_eq!(client.fetch(&path).await["provisioning_status"], "ACTIVE");
    let created = client.make(&format!("{LBAAS}/listeners"), listener).await;
    assert_eq!(created["provisioning_status"], "PENDING_CREATE");
    assert_eq!(
        client.fetch(&path).await["provisioning_status"],
        "PENDING_UPDATE"
    );
    cloud.advance_clock(Duration::from_secs(61));
    let other_family = json!({"listener": {"allowed_cidrs": ["2001:db8::/32"]}});
    let got = client
        .put(&format!("{LBAAS}/listeners/{}", id(&created)), other_family)
        .await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert!(got.text.contains("IP version incompatible"), "{}", got.text);
    assert_eq!(client.delete(&path).await.status, 400, "it has children");
    assert_eq!(
        client.delete(&format!("{path}?cascade=true")).await.status,
        204
    );
    assert_eq!(
        client.fetch(&path).await["provisioning_status"],
        "PENDING_DELETE"
    );
    cloud.advance_clock(Duration::from_secs(61));
    assert_eq!(client.get(&path).await.status, 404);
}

#[tokio::test]
async fn refusals_are_octavias() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let zero = "00000000-0000-4000-8000-000000000000";
    let balancer = client.make(&format!("{LBAAS}/loadbalancers"), json!({"loadbalancer": {"vip_subnet_id": net.subnet,
        "listeners": [{"protocol": "TCP", "protocol_port": 80, "default_pool": {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
            "members": [{"address": "10.6.0.9", "protocol_port": 80}]}}]}})).await;
    let (lb, pool) = (id(&balancer), id(&balancer["pools"][0]));
    let members = format!("pools/{pool}/members");
    for (path, body, status, words) in [
        (
            "loadbalancers",
            json!({"loadbalancer": {}}),
            400,
            "VIP must contain one of",
        ),
        (
            "loadbalancers",
            json!({"loadbalancer": {"vip_subnet_id": zero}}),
            400,
            "not found",
        ),
        (
            "loadbalancers",
            json!({"loadbalancer": {"vip_subnet_id": net.subnet, "provider": "x"}}),
            400,
            "is not enabled",
        ),
        (
            "loadbalancers",
            json!({"loadbalancer": {"nonsense": 1}}),
            400,
            "Unknown attribute",
        ),
        (
            "listeners",
            json!({"listener": {"protocol": "TCP", "protocol_port": 80}}),
            400,
            "Mandatory field missing",
        ),
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "TCP"}}),
            400,
            "protocol_port",
        ),
        // Parts inside a part are created with a load balancer only.
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "TCP", "protocol_port": 81,
                "default_pool": {"protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}}}),
            500,
            "_sa_instance_state",
        ),
        (
            "pools",
            json!({"pool": {"loadbalancer_id": lb, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
                "members": [{"address": "10.6.0.9", "protocol_port": 80}]}}),
            500,
            "_sa_instance_state",
        ),
        (
            "pools",
            json!({"pool": {"loadbalancer_id": lb, "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN",
                "healthmonitor": {"type": "TCP", "delay": 2, "timeout": 1, "max_retries": 1}}}),
            500,
            "_sa_instance_state",
        ),
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "HTTP", "protocol_port": 80}}),
            409,
            "is already using",
        ),
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "TCP", "protocol_port": 81,
                "allowed_cidrs": ["10.0.0.0/8", "2001:db8::/32"]}}),
            400,
            "CIDR 2001:db8::/32 IP version incompatible with all VIPs ['10.",
        ),
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": lb, "protocol": "ODD", "protocol_port": 81}}),
            400,
            "protocol",
        ),
        (
            "listeners",
            json!({"listener": {"loadbalancer_id": zero, "protocol": "TCP", "protocol_port": 81}}),
            404,
            "not found",
        ),
        (
            members.as_str(),
            json!({"member": {"address": "10.6.0.9", "protocol_port": 80}}),
            409,
            "Another member",
        ),
        (
            members.as_str(),
            json!({"member": {"address": "here", "protocol_port": 80}}),
            400,
            "address",
        ),
        (
            "healthmonitors",
            json!({"healthmonitor": {"pool_id": pool, "type": "TCP", "delay": 1, "timeout": 5, "max_retries": 1}}),
            400,
            "timeout",
        ),
    ] {
        let got = client.post(&format!("{LBAAS}/{path}"), body.clone()).await;
        assert_eq!(got.status, status, "{body}: {}", got.text);
        assert!(
            got.body["faultstring"].as_str().unwrap().contains(words),
            "{body}: {}",
            got.text
        );
    }
}

#[tokio::test]
async fn a_batch_of_members_replaces_or_adds() {
    let (_cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let balancer = client
        .make(
            &format!("{LBAAS}/loadbalancers"),
            json!({"loadbalancer": {"vip_network_id": net.network,
        "pools": [{"name": "p", "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN"}]}}),
        )
        .await;
    let path = format!("{LBAAS}/pools/{}/members", id(&balancer["pools"][0]));
    let member = |last: u8| json!({"address": format!("10.6.0.{last}"), "protocol_port": 80});
    for (query, wanted, left) in [
        ("", vec![member(5), member(6)], 2),
        ("?additive_only=true", vec![member(7)], 3),
        ("", vec![member(6)], 1),
    ] {
        let got = client
            .put(&format!("{path}{query}"), json!({"members": wanted}))
            .await;
        assert_eq!(got.status, 202, "{}", got.text);
        assert_eq!(client.fetch(&path).await.as_array().unwrap().len(), left);
    }
    let filtered = client
        .fetch(&format!("{LBAAS}/loadbalancers?name=&fields=id"))
        .await;
    assert_eq!(filtered[0].as_object().unwrap().len(), 1);
    let port = client
        .fetch("/network/v2.0/ports?device_owner=Octavia")
        .await;
    assert_eq!(
        (&port[0]["status"], &port[0]["id"]),
        (&json!("DOWN"), &balancer["vip_port_id"])
    );
}

#[tokio::test]
async fn a_load_balancer_is_of_a_flavor_and_in_a_zone_that_an_administrator_made() {
    let (cloud, client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    let net = net(&client, "10.6.0.0/24").await;
    let path = |rest: &str| format!("{LBAAS}/{rest}");
    let profile = json!({"flavorprofile": {"name": "p", "provider_name": "octavia", "flavor_data": "{\"loadbalancer_topology\": \"SINGLE\"}"}});
    let refused = client.post(&path("flavorprofiles"), profile.clone()).await;
    assert_eq!(refused.status, 403, "a member makes no profiles");
    let profile = admin.make(&path("flavorprofiles"), profile).await;
    let zones = json!({"availability_zone_profile": {"name": "p", "provider_name": "octavia",
        "availability_zone_data": json!({"valid_vip_networks": [net.network]}).to_string()}});
    let zones = admin.make(&path("availabilityzoneprofiles"), zones).await;
    let flavor = json!({"flavor": {"name": "f", "flavor_profile_id": profile["id"]}});
    let flavor = admin.make(&path("flavors"), flavor).await;
    let zone =
        json!({"availability_zone": {"name": "z", "availability_zone_profile_id": zones["id"]}});
    assert_eq!(
        admin.post(&path("availabilityzones"), zone).await.status,
        201
    );
    let balancer = json!({"loadbalancer": {"vip_subnet_id": net.subnet, "flavor_id": flavor["id"], "availability_zone": "z"}});
    let created = client.make(&path("loadbalancers"), balancer).await;
    assert_eq!(created["provider"], "octavia", "the flavor's");
    assert_eq!(
        (&created["flavor_id"], &created["availability_zone"]),
        (&flavor["id"], &json!("z"))
    );
    let in_use = [
        format!("flavors/{}", id(&flavor)),
        "availabilityzones/z".to_owned(),
        format!("flavorprofiles/{}", id(&profile)),
        format!("availabilityzoneprofiles/{}", id(&zones)),
    ];
    for one in &in_use {
        assert_eq!(admin.delete(&path(one)).await.status, 409, "{one}");
    }
    client
        .delete(&path(&format!("loadbalancers/{}", id(&created))))
        .await;
    for one in &in_use {
        assert_eq!(admin.delete(&path(one)).await.status, 204, "{one}");
    }
}

#[tokio::test]
async fn what_a_provider_does_not_know_is_not_put_into_a_profile() {
    let (cloud, _client) = demo().await;
    let admin = Client::login(&cloud, "admin").await;
    for (provider, data, status) in [
        ("amphora", "{}", 201),
        ("nothing", "{}", 400),
        ("amphora", "nonsense", 400),
        ("amphora", "[]", 501),
        ("amphora", "{\"colour\": \"red\"}", 501),
        ("amphora", "{\"loadbalancer_topology\": \"ROUND\"}", 501),
        ("amphora", "{\"compute_flavor\": \"nothing\"}", 500),
    ] {
        let body =
            json!({"flavorprofile": {"name": "p", "provider_name": provider, "flavor_data": data}});
        let got = admin.post(&format!("{LBAAS}/flavorprofiles"), body).await;
        assert_eq!(got.status, status, "{provider} {data}: {}", got.text);
    }
}

#[tokio::test]
async fn a_listener_of_tls_needs_a_certificate_that_the_key_manager_has() {
    let (cloud, client) = demo().await;
    let net = net(&client, "10.6.0.0/24").await;
    let reference = |got: &Got, name: &str| got.body[name].as_str().unwrap().to_owned();
    let secrets = "/key-manager/v1/secrets";
    let bundle = json!({"payload": "MIIB", "payload_content_type": "application/octet-stream",
        "payload_content_encoding": "base64"});
    let bundle = reference(&client.post(secrets, bundle).await, "secret_ref");
    let text = client.post(secrets, json!({"payload": "pem"})).await;
    let text = reference(&text, "secret_ref");
    let container = |kind: &str| json!({"type": kind, "secret_refs": [{"name": "certificate", "secret_ref": text}]});
    let containers = "/key-manager/v1/containers";
    let of = async |kind: &str| {
        reference(
            &client.post(containers, container(kind)).await,
            "container_ref",
        )
    };
    let (whole, generic) = (of("certificate").await, of("generic").await);
    let admin = Client::login(&cloud, "admin").await;
    let foreign = admin.post(secrets, json!({"payload": "pem"})).await;
    let foreign = reference(&foreign, "secret_ref");
    let balancer = client
        .make(
            &format!("{LBAAS}/loadbalancers"),
            json!({"loadbalancer": {"vip_subnet_id": net.subnet}}),
        )
        .await;
    let unknown = "Could not retrieve certificate: ['";
    for (protocol, given, words) in [
        (
            "TERMINATED_HTTPS",
            json!({}),
            "must be provided for TERMINATED_HTTPS",
        ),
        (
            "TERMINATED_HTTPS",
            json!({"default_tls_container_ref": generic}),
            unknown,
        ),
        (
            "TERMINATED_HTTPS",
            json!({"default_tls_container_ref": foreign}),
            unknown,
        ),
        (
            "TERMINATED_HTTPS",
            json!({"default_tls_container_ref": "nothing"}),
            unknown,
        ),
        (
            "TERMINATED_HTTPS",
            json!({"default_tls_container_ref": text}),
            "PKCS12 bundle is unreadable",
        ),
        (
            "TERMINATED_HTTPS",
            json!({"sni_container_refs": [whole, generic]}),
            unknown,
        ),
        (
            "TCP",
            json!({"default_tls_container_ref": whole}),
            "only allowed on TERMINATED_HTTPS",
        ),
        (
            "UDP",
            json!({"default_tls_container_ref": whole}),
            "UDP protocol listener",
        ),
        (
            "TERMINATED_HTTPS",
            json!({"default_tls_container_ref": bundle}),
            "",
        ),
        (
            "TERMINATED_HTTPS",
            json!({"default_tls_container_ref": whole}),
            "",
        ),
    ] {
        let mut listener = given.clone();
        listener["protocol"] = json!(protocol);
        listener["protocol_port"] =
            json!(if given["default_tls_container_ref"] == bundle.as_str() {
                443
            } else {
                444
            });
        listener["loadbalancer_id"] = balancer["id"].clone();
        let got = client
            .post(&format!("{LBAAS}/listeners"), json!({"listener": listener}))
            .await;
        let expected = if words.is_empty() { 201 } else { 400 };
        assert_eq!(got.status, expected, "{protocol} {given}: {}", got.text);
        assert!(got.text.contains(words), "{protocol} {given}: {}", got.text);
    }
    let all = client.fetch(&format!("{LBAAS}/listeners")).await;
    let path = format!("{LBAAS}/listeners/{}", id(&all[0]));
    for (wanted, status) in [(&generic, 400), (&whole, 200)] {
        let change = json!({"listener": {"default_tls_container_ref": wanted}});
        let got = client.put(&path, change).await;
        assert_eq!(got.status, status, "{}", got.text);
    }
    // The same is asked of the listeners of a tree, and nothing of it is created then.
    let tree = json!({"loadbalancer": {"vip_subnet_id": net.subnet, "listeners": [
        {"protocol": "TERMINATED_HTTPS", "protocol_port": 443, "default_tls_container_ref": "nothing"}]}});
    let got = client.post(&format!("{LBAAS}/loadbalancers"), tree).await;
    assert_eq!(got.status, 400, "{}", got.text);
    assert_eq!(
        client
            .fetch(&format!("{LBAAS}/loadbalancers"))
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// A server on a port with this address.
async fn server(client: &Client, network: &str, subnet: &str, address: &str) -> String {
    let fixed = json!([{"subnet_id": subnet, "ip_address": address}]);
    let port = json!({"port": {"network_id": network, "fixed_ips": fixed}});
    let port = client.make("/network/v2.0/ports", port).await;
    let image = client.fetch("/image/v2/images?name=ubuntu-24.04").await;
    let server = json!({"server": {"name": "s", "flavorRef": "1", "imageRef": image[0]["id"],
        "networks": [{"port": port["id"]}]}});
    id(&client.make("/compute/v2.1/servers", server).await)
}

#[tokio::test]
async fn a_member_is_the_server_with_its_address_in_its_subnet_or_behind_a_router() {
    let cloud = Cloud::open(Options::default()).await.unwrap();
    let client = Client::login(&cloud, "demo").await;
    let (first, second) = (
        net(&client, "10.6.0.0/24").await,
        net(&client, "10.6.0.0/24").await,
    );
    let near =
        json!({"subnet": {"network_id": first.network, "ip_version": 4, "cidr": "10.7.0.0/24"}});
    let near = id(&client.make("/network/v2.0/subnets", near).await);
    let path = format!(
        "/network/v2.0/routers/{}/add_router_interface",
        first.router
    );
    assert_eq!(
        client.put(&path, json!({"subnet_id": near})).await.status,
        200
    );
    let a = server(&client, &first.network, &first.subnet, "10.6.0.10").await;
    let b = server(&client, &second.network, &second.subnet, "10.6.0.10").await;
    let c = server(&client, &first.network, &near, "10.7.0.10").await;
    let member = |address: &str, port: u16, subnet: Option<&str>| json!({"address": address, "protocol_port": port, "subnet_id": subnet});
    let tree = json!({"loadbalancer": {"vip_subnet_id": first.subnet, "listeners": [
    {"protocol": "TCP", "protocol_port": 80, "default_pool": {
        "protocol": "TCP", "lb_algorithm": "ROUND_ROBIN", "members": [
            member("10.6.0.10", 1, Some(&first.subnet)),
            member("10.6.0.10", 2, Some(&second.subnet)),
            member("10.6.0.10", 3, None),
            member("10.7.0.10", 4, None),
            member("10.6.0.99", 5, None),
        ]}}]}});
    client.make(&format!("{LBAAS}/loadbalancers"), tree).await;
    let mut world = cloud.world();
    let is_complete = |world: &std::sync::Arc<crate::data_plane::DataPlane>| {
        world.instances.len() == 3 && world.listeners.iter().any(|it| it.members.len() == 5)
    };
    let seen = world.wait_for(is_complete).await.unwrap().clone();
    let mut reached: Vec<_> = seen.listeners[0].members.iter().collect();
    reached.sort_by_key(|member| member.at.port());
    let reached: Vec<_> = reached.iter().map(|it| it.server.clone()).collect();
    let wanted = [Some(a.clone()), Some(b), Some(a), Some(c), None];
    assert_eq!(reached, wanted);
}
