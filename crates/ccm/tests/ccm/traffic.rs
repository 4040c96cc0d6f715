//! How listeners forward: timeouts and limits, X-Forwarded-For, PROXY protocol.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::services::{octavia_where, world};
use crate::world::{World, eventually, ip};

fn annotated(list: &[(&str, Option<&str>)]) -> Value {
    let pair = |(name, value): &(&str, Option<&str>)| {
        (format!("loadbalancer.openstack.org/{name}"), json!(value))
    };
    json!({"metadata": {"annotations": list.iter().map(pair).collect::<serde_json::Map<_, _>>()}})
}

#[tokio::test(start_paused = true)]
async fn timeouts_and_the_connection_limit_follow_the_annotations_and_return_to_their_defaults() {
    let world = world(&["worker-1"]).await;
    let set = annotated(&[
        ("timeout-client-data", Some("1000")),
        ("timeout-member-connect", Some("2000")),
        ("connection-limit", Some("7")),
    ]);
    world.service("web", &[("TCP", 80)], set).await;
    world.published("web").await;
    let settings = |list: &[Value]| {
        let all: Vec<_> = [
            "timeout_client_data",
            "timeout_member_connect",
            "timeout_member_data",
            "timeout_tcp_inspect",
            "connection_limit",
        ]
        .map(|name| list[0][name].as_i64().unwrap())
        .into();
        all
    };
    octavia_where(&world, "listeners", |list| {
        settings(list) == [1000, 2000, 50_000, 0, 7]
    })
    .await;
    let changed = annotated(&[
        ("timeout-client-data", None),
        ("timeout-member-connect", Some("3000")),
        ("timeout-member-data", Some("4000")),
        ("timeout-tcp-inspect", Some("5000")),
        ("connection-limit", None),
    ]);
    world.cluster.merge::<Service>("web", changed).await;
    octavia_where(&world, "listeners", |list| {
        settings(list) == [50_000, 3000, 4000, 5000, -1]
    })
    .await;
}

/// The protocols of the listener and of the pool, and the inserted headers.
async fn forwarding(world: &World, protocol: &str, pool: &str, headers: Value) {
    octavia_where(world, "listeners", |list| {
        list.len() == 1
            && list[0]["protocol"] == protocol
            && list[0]["insert_headers"] == headers
            && list[0]["default_pool_id"].is_string()
    })
    .await;
    octavia_where(world, "pools", |list| {
        list.len() == 1 && list[0]["protocol"] == pool
    })
    .await;
    world.members_are(&["worker-1"]).await;
}

#[tokio::test(start_paused = true)]
async fn forwarding_changes_from_each_form_to_each_other() {
    let world = world(&["worker-1"]).await;
    world
        .service(
            "web",
            &[("TCP", 80)],
            annotated(&[("x-forwarded-for", Some("true"))]),
        )
        .await;
    world.published("web").await;
    forwarding(&world, "HTTP", "HTTP", json!({"X-Forwarded-For": "true"})).await;
    let change = async |list: &[(&str, Option<&str>)]| {
        world.cluster.merge::<Service>("web", annotated(list)).await;
    };
    change(&[("x-forwarded-for", None), ("proxy-protocol", Some("v2"))]).await;
    forwarding(&world, "TCP", "PROXYV2", json!({})).await;
    change(&[("proxy-protocol", Some("true"))]).await;
    forwarding(&world, "TCP", "PROXY", json!({})).await;
    change(&[("proxy-protocol", None)]).await;
    forwarding(&world, "TCP", "TCP", json!({})).await;
    change(&[("x-forwarded-for", Some("true"))]).await;
    forwarding(&world, "HTTP", "HTTP", json!({"X-Forwarded-For": "true"})).await;
}

#[tokio::test(start_paused = true)]
async fn a_port_of_udp_is_rejected_with_the_annotation_that_it_does_not_fit() {
    let world = world(&["worker-1"]).await;
    world
        .service(
            "web",
            &[("TCP", 80), ("UDP", 53)],
            annotated(&[("proxy-protocol", Some("true"))]),
        )
        .await;
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(
        note.contains("proxy-protocol: the Service has a port of protocol UDP"),
        "{note}"
    );
    let alone = annotated(&[("x-forwarded-for", Some("true"))]);
    world.service("dns", &[("UDP", 53)], alone).await;
    let note = world.event("dns", "SyncLoadBalancerFailed").await;
    assert!(
        note.ends_with("support it: remove the annotation"),
        "{note}"
    );
}

/// Traefik's chart with HTTP/3: a port of UDP with the number of one of TCP.
#[tokio::test(start_paused = true)]
async fn a_port_of_udp_beside_the_proxy_protocol_names_the_annotation_with_which_it_is_served() {
    let world = world(&["worker-1"]).await;
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": name, "protocol": protocol});
    let mut fields = annotated(&[("proxy-protocol", Some("v2"))]);
    fields["spec"] = json!({"externalTrafficPolicy": "Local", "ports": [
        port("web", 80, "TCP"), port("websecure", 443, "TCP"), port("websecure-http3", 443, "UDP")]});
    world.service("traefik", &[], fields).await;
    let note = world.event("traefik", "SyncLoadBalancerFailed").await;
    let cure = "loadbalancer.openstack.org/port-protocols: \"80=TCP,443=TCP\"";
    assert!(note.contains(cure), "{note}");
    assert!(world.octavia("loadbalancers").await.is_empty());
    let change = annotated(&[("port-protocols", Some("80=TCP,443=TCP"))]);
    world.cluster.merge::<Service>("traefik", change).await;
    world.published("traefik").await;
    let pools = world.octavia("pools").await;
    let mut protocols: Vec<_> = pools
        .iter()
        .map(|pool| pool["protocol"].as_str().unwrap())
        .collect();
    protocols.sort_unstable();
    assert_eq!(protocols, ["PROXYV2", "PROXYV2", "UDP"]);
}

/// HTTP/3 that is turned on later.
#[tokio::test(start_paused = true)]
async fn a_port_of_udp_that_is_added_beside_the_proxy_protocol_names_the_annotation_too() {
    let world = world(&["worker-1"]).await;
    let port = |name: &str, port: u16, protocol: &str| json!({"name": name, "port": port, "targetPort": name, "protocol": protocol});
    let mut fields = annotated(&[("proxy-protocol", Some("v2"))]);
    let tcp = [port("web", 80, "TCP"), port("websecure", 443, "TCP")];
    fields["spec"] = json!({"ports": tcp});
    world.service("traefik", &[], fields).await;
    world.published("traefik").await;
    let all = json!([tcp[0], tcp[1], port("websecure-http3", 443, "UDP")]);
    let change = json!({"spec": {"ports": all}});
    world.cluster.merge::<Service>("traefik", change).await;
    let cure = "loadbalancer.openstack.org/port-protocols: \"80=TCP,443=TCP\"";
    let failed = "SyncLoadBalancerFailed";
    world.event_with("traefik", failed, cure).await;
    world.worker("worker-2").await;
    // Of two pools.
    world
        .members_are(&["worker-1", "worker-1", "worker-2", "worker-2"])
        .await;
    let change = annotated(&[("port-protocols", Some("80=TCP,443=TCP"))]);
    world.cluster.merge::<Service>("traefik", change).await;
    octavia_where(&world, "listeners", |list| {
        list.iter().any(|listener| listener["protocol"] == "UDP")
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn with_the_proxy_protocol_the_mode_is_proxy_and_a_host_name_is_published_if_cloud_conf_says_so()
 {
    let mut world = world(&["worker-1"]).await;
    world
        .service(
            "web",
            &[("TCP", 80)],
            annotated(&[("proxy-protocol", Some("v1"))]),
        )
        .await;
    let service = world.published("web").await;
    let ingress = |service: &Service| {
        let status = service.status.clone().unwrap().load_balancer.unwrap();
        status.ingress.unwrap()[0].clone()
    };
    assert_eq!(ingress(&service).ip_mode.as_deref(), Some("Proxy"));
    let address = ip(&service);
    world.kill().await;
    let conf =
        "[LoadBalancer]\nenable-ingress-hostname = true\ningress-hostname-suffix = example.org\n";
    let settings = crate::world::settings(&world.cloud, conf);
    world.settings.send_replace(settings.into());
    world.run();
    eventually("the host name", || async {
        let service = world.cluster.api::<Service>().get("web").await.unwrap();
        let found = ingress(&service);
        let is = found.ip.is_none()
            && found.hostname.as_deref() == Some(format!("{address}.example.org").as_str());
        is.then_some(()).ok_or_else(|| format!("{found:?}"))
    })
    .await;
}
