//! TLS that ends at listeners, with certificates of the key manager; and the protocols of single ports.

use api::k8s_openapi::api::core::v1::Service;
use serde_json::{Value, json};

use crate::services::{octavia_where, world};
use crate::world::{World, eventually, ports_of};

const REFERENCE: &str = "loadbalancer.openstack.org/default-tls-container-ref";
const PROTOCOLS: &str = "loadbalancer.openstack.org/port-protocols";
const FORWARDED_FOR: &str = "loadbalancer.openstack.org/x-forwarded-for";
const LOOK: &str = "GET key-manager /v1/containers/{id}";

async fn secret(world: &World, body: Value) -> String {
    let answer = world.request("POST", "/key-manager/v1/secrets", body).await;
    answer["secret_ref"].as_str().unwrap().to_owned()
}

async fn container(world: &World, kind: &str) -> String {
    let secret = secret(world, json!({"payload": "pem"})).await;
    let body =
        json!({"type": kind, "secret_refs": [{"name": "certificate", "secret_ref": secret}]});
    let path = "/key-manager/v1/containers";
    let answer = world.request("POST", path, body).await;
    answer["container_ref"].as_str().unwrap().to_owned()
}

/// A new certificate; returns its reference.
pub(crate) async fn certificate(world: &World) -> String {
    container(world, "certificate").await
}

/// The reference of the certificate that exists.
pub(crate) async fn the_certificate(world: &World) -> Value {
    let path = "/key-manager/v1/containers";
    let all = world.request("GET", path, Value::Null).await;
    all["containers"][0]["container_ref"].clone()
}

fn annotated(annotations: Value) -> Value {
    json!({"metadata": {"annotations": annotations}})
}

/// Waits for listeners with these protocols and ports, in order of the ports, and for pools with these protocols.
async fn listeners(world: &World, wanted: &[(&str, u16)], pools: &[&str]) {
    octavia_where(world, "listeners", |list| {
        let mut found: Vec<_> = list
            .iter()
            .map(|l| (l["protocol_port"].as_u64().unwrap(), l["protocol"].clone()))
            .collect();
        found.sort_by_key(|(port, _)| *port);
        let wanted = wanted
            .iter()
            .map(|(name, port)| (u64::from(*port), json!(name)));
        let complete = list.iter().all(|l| l["default_pool_id"].is_string());
        complete && found == wanted.collect::<Vec<_>>()
    })
    .await;
    octavia_where(world, "pools", |list| {
        let mut found: Vec<_> = list
            .iter()
            .map(|p| p["protocol"].as_str().unwrap())
            .collect();
        found.sort_unstable();
        found == pools
    })
    .await;
}

fn looks(world: &World) -> u64 {
    world.requests().get(LOOK).copied().unwrap_or(0)
}

#[tokio::test(start_paused = true)]
async fn a_certificate_ends_tls_at_all_ports_and_its_change_is_one_request() {
    let world = world(&["worker-1"]).await;
    let (one, other) = (certificate(&world).await, certificate(&world).await);
    let before = world.cloud.resources();
    world.cloud.reset_requests();
    let ports = [("TCP", 443), ("TCP", 8443)];
    world
        .service("web", &ports, annotated(json!({REFERENCE: one})))
        .await;
    world.published("web").await;
    let protocols = [("TERMINATED_HTTPS", 443), ("TERMINATED_HTTPS", 8443)];
    listeners(&world, &protocols, &["HTTP", "HTTP"]).await;
    let with = |list: &[Value], reference: &str| {
        list.iter()
            .all(|l| l["default_tls_container_ref"] == reference)
    };
    octavia_where(&world, "listeners", |list| with(list, &one)).await;
    assert_eq!(looks(&world), 1, "one certificate of two listeners");
    assert_eq!(world.writes().len(), 2, "{:?}", world.writes());
    world.cloud.reset_requests();
    let change = annotated(json!({REFERENCE: other}));
    world.cluster.merge::<Service>("web", change).await;
    octavia_where(&world, "listeners", |list| with(list, &other)).await;
    let change = "PUT load-balancer /v2.0/lbaas/listeners/{id}";
    assert_eq!(world.writes(), [(change.to_owned(), 2)].into());
    // Without it, connections are passed on.
    let off = annotated(json!({REFERENCE: null}));
    world.cluster.merge::<Service>("web", off).await;
    listeners(&world, &[("TCP", 443), ("TCP", 8443)], &["TCP", "TCP"]).await;
    let asked = looks(&world);
    let poke = annotated(json!({"poked": "1"}));
    world.cluster.merge::<Service>("web", poke).await;
    world.delete_service("web").await;
    assert_eq!(looks(&world), asked);
    assert_eq!(world.cloud.resources(), before);
}

#[tokio::test(start_paused = true)]
async fn what_is_no_certificate_is_rejected_before_anything_is_created() {
    let world = world(&["worker-1"]).await;
    let base = certificate(&world).await;
    let unknown =
        base.rsplit_once('/').unwrap().0.to_owned() + "/8d1c1a94-0000-4000-8000-000000000000";
    let generic = container(&world, "generic").await;
    let text = secret(&world, json!({"payload": "pem"})).await;
    world.cloud.reset_requests();
    let cases = [
        (
            "word",
            json!("certificate"),
            "write the URL of a container or secret",
        ),
        (
            "order",
            json!("https://x/v1/orders/y"),
            "write the URL of a container or secret",
        ),
        (
            "unknown",
            json!(unknown),
            "the key manager has no such secret or container",
        ),
        // Octavia's message.
        ("generic", json!(generic), "Could not retrieve certificate"),
        ("text", json!(text), "PKCS12 bundle is unreadable"),
    ];
    for (name, reference, words) in cases {
        let fields = annotated(json!({REFERENCE: reference}));
        world.service(name, &[("TCP", 443)], fields).await;
        let note = world
            .event_with(name, "SyncLoadBalancerFailed", words)
            .await;
        assert!(
            note.contains("default-tls-container-ref") || name == "generic" || name == "text",
            "{note}"
        );
    }
    let udp = annotated(json!({REFERENCE: base}));
    world
        .service("udp", &[("TCP", 443), ("UDP", 443)], udp)
        .await;
    let words = "default-tls-container-ref: the Service has a port of protocol UDP";
    world
        .event_with("udp", "SyncLoadBalancerFailed", words)
        .await;
    assert!(world.octavia("loadbalancers").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_certificate_that_is_corrected_is_used() {
    let mut world = world(&["worker-1"]).await;
    let reference = certificate(&world).await;
    let path = reference.strip_prefix("http://cloud").unwrap();
    world.request("DELETE", path, Value::Null).await;
    world
        .service(
            "web",
            &[("TCP", 443)],
            annotated(json!({REFERENCE: reference})),
        )
        .await;
    let words = "the key manager has no such secret or container";
    world
        .event_with("web", "SyncLoadBalancerFailed", words)
        .await;
    let later = certificate(&world).await;
    let change = annotated(json!({REFERENCE: later}));
    world.cluster.merge::<Service>("web", change).await;
    world.published("web").await;
    world.kill().await;
}

#[tokio::test(start_paused = true)]
async fn the_certificate_of_cloud_conf_is_for_tcp_and_an_empty_annotation_is_none() {
    let mut world = world(&["worker-1"]).await;
    let reference = certificate(&world).await;
    world.kill().await;
    let conf = format!("[LoadBalancer]\ndefault-tls-container-ref = {reference}\n");
    let settings = crate::world::settings(&world.cloud, &conf);
    world.settings.send_replace(settings.into());
    world.run();
    world
        .service("web", &[("TCP", 443), ("UDP", 53)], json!({}))
        .await;
    world.published("web").await;
    listeners(
        &world,
        &[("UDP", 53), ("TERMINATED_HTTPS", 443)],
        &["HTTP", "UDP"],
    )
    .await;
    let none = annotated(json!({REFERENCE: ""}));
    world.cluster.merge::<Service>("web", none).await;
    listeners(&world, &[("UDP", 53), ("TCP", 443)], &["TCP", "UDP"]).await;
}

#[tokio::test(start_paused = true)]
async fn with_an_external_store_any_reference_is_left_to_octavia() {
    let world = World::serving(
        "[LoadBalancer]\ncontainer-store = external\n",
        &["worker-1"],
    )
    .await;
    let fields = annotated(json!({REFERENCE: "vault:certificates/web"}));
    world.service("web", &[("TCP", 443)], fields).await;
    let words = "Could not retrieve certificate: ['vault:certificates/web']";
    world
        .event_with("web", "SyncLoadBalancerFailed", words)
        .await;
    assert_eq!(looks(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn each_port_has_the_protocol_that_the_annotation_lists() {
    let world = world(&["worker-1"]).await;
    let reference = certificate(&world).await;
    let fields = annotated(json!({REFERENCE: reference, FORWARDED_FOR: "true",
        PROTOCOLS: "443=TERMINATED_HTTPS, 80=HTTP"}));
    let ports = [("TCP", 443), ("TCP", 80), ("TCP", 22), ("UDP", 53)];
    world.service("web", &ports, fields).await;
    world.published("web").await;
    let protocols = [
        ("TCP", 22),
        ("UDP", 53),
        ("HTTP", 80),
        ("TERMINATED_HTTPS", 443),
    ];
    listeners(&world, &protocols, &["HTTP", "HTTP", "TCP", "UDP"]).await;
    octavia_where(&world, "listeners", |list| {
        list.iter().all(|l| {
            let is_http = matches!(l["protocol"].as_str(), Some("HTTP" | "TERMINATED_HTTPS"));
            let is_tls = l["protocol"] == "TERMINATED_HTTPS";
            (l["insert_headers"] == json!({"X-Forwarded-For": "true"})) == is_http
                && (l["default_tls_container_ref"] == reference.as_str()) == is_tls
        })
    })
    .await;
    for (value, words) in [
        (
            "80=HTTP,81=HTTP",
            "port 81: the Service has no such port of TCP",
        ),
        ("53=HTTP", "port 53: the Service has no such port of TCP"),
        ("80=HTTP,80=TCP", "port 80 is listed twice"),
        ("80=HTTPS", "write app-protocol, or a list"),
        (
            "22=TCP",
            "x-forwarded-for: port-protocols makes no port HTTP",
        ),
    ] {
        let change = annotated(json!({PROTOCOLS: value}));
        world.cluster.merge::<Service>("web", change).await;
        world
            .event_with("web", "SyncLoadBalancerFailed", words)
            .await;
    }
    let change = annotated(json!({PROTOCOLS: "443=TERMINATED_HTTPS", REFERENCE: null}));
    world.cluster.merge::<Service>("web", change).await;
    let words = "port 443: TLS needs a certificate";
    world
        .event_with("web", "SyncLoadBalancerFailed", words)
        .await;
}

#[tokio::test(start_paused = true)]
async fn each_port_has_the_protocol_of_its_app_protocol_if_the_annotation_says_so() {
    let world = world(&["worker-1"]).await;
    let reference = certificate(&world).await;
    let mut ports = ports_of(&[("TCP", 80), ("TCP", 443), ("TCP", 5432)]);
    for (index, name) in ["http", "https", "postgres"].into_iter().enumerate() {
        ports[index]["appProtocol"] = json!(name);
    }
    let fields =
        json!({"metadata": {"annotations": {PROTOCOLS: "app-protocol"}}, "spec": {"ports": ports}});
    world.service("web", &[], fields).await;
    world.published("web").await;
    // Without a certificate, TLS is passed on.
    let protocols = [("HTTP", 80), ("TCP", 443), ("TCP", 5432)];
    listeners(&world, &protocols, &["HTTP", "TCP", "TCP"]).await;
    let change = annotated(json!({REFERENCE: reference}));
    world.cluster.merge::<Service>("web", change).await;
    let protocols = [("HTTP", 80), ("TERMINATED_HTTPS", 443), ("TCP", 5432)];
    listeners(&world, &protocols, &["HTTP", "HTTP", "TCP"]).await;
    // As with the Go manager, appProtocol means nothing without the annotation.
    let off = annotated(json!({PROTOCOLS: null, REFERENCE: null}));
    world.cluster.merge::<Service>("web", off).await;
    let protocols = [("TCP", 80), ("TCP", 443), ("TCP", 5432)];
    listeners(&world, &protocols, &["TCP", "TCP", "TCP"]).await;
    eventually("rest", || async {
        let pending = world.octavia("loadbalancers").await[0]["provisioning_status"] != "ACTIVE";
        (!pending).then_some(()).ok_or("PENDING".to_owned())
    })
    .await;
}
