//! A wrong value of every annotation that can have one leads to an event with its name, and creates nothing in the
//! cloud.

use std::collections::BTreeSet;

use serde_json::json;

use crate::services::world;

const NOWHERE: &str = "8d1c1a94-0000-4000-8000-000000000000";

/// Annotation, value, and words of the event; annotations with a prefix are given without it.
const WRONG: &[(&str, &str, &str)] = &[
    ("proxy-protocol", "v3", "write true, false, v1 or v2"),
    ("x-forwarded-for", "1", "write true or false"),
    ("keep-floatingip", "yes", "write true or false"),
    ("enable-health-monitor", "True", "write true or false"),
    (
        "service.beta.kubernetes.io/openstack-internal-load-balancer",
        "yes",
        "write true or false",
    ),
    ("timeout-client-data", "50s", "write a number of at least 0"),
    (
        "timeout-member-connect",
        "-1",
        "write a number of at least 0",
    ),
    ("timeout-member-data", "1.5", "write a number of at least 0"),
    (
        "timeout-tcp-inspect",
        "31536000001",
        "write a number of at least 0 and at most",
    ),
    ("connection-limit", "-2", "write a number of at least -1"),
    ("health-monitor-delay", "0", "write a number of 1 or more"),
    (
        "health-monitor-timeout",
        "3s",
        "write a number of 1 or more",
    ),
    (
        "health-monitor-timeout",
        "6",
        "the timeout is longer than the delay",
    ),
    (
        "health-monitor-max-retries",
        "-1",
        "write a number of 1 or more",
    ),
    (
        "health-monitor-max-retries-down",
        "many",
        "write a number of 1 or more",
    ),
    ("lb-method", "FAST", "write one of ROUND_ROBIN"),
    ("node-selector", "=x", "write key=value"),
    ("node-selector", "a b=c", "write key=value"),
    ("node-selector", "pool=a b", "write key=value"),
    ("node-selector", "pool!=slow", "write key=value"),
    ("member-weights", "true", "write ready-endpoints, or remove"),
    ("port-protocols", "80=FTP", "write app-protocol, or a list"),
    (
        "default-tls-container-ref",
        "web",
        "write the URL of a container",
    ),
    (
        "class",
        "fast",
        "cloud.conf has no [LoadBalancerClass \"fast\"]",
    ),
    ("floating-subnet", "~[", "floating-subnet"),
    (
        "floating-subnet",
        "nowhere-*",
        "no subnet of the external network",
    ),
    ("floating-subnet-tags", ",", "the list has no tags"),
    (
        "floating-network-id",
        NOWHERE,
        "the project sees no network",
    ),
    ("network-id", NOWHERE, "the project sees no network"),
    ("subnet-id", NOWHERE, "the project sees no subnet"),
    ("member-subnet-id", NOWHERE, "the project sees no subnet"),
    ("port-id", NOWHERE, "the project has no port with this id"),
    ("subnet_id", "x", "is unknown"),
];

/// Annotations without wrong values: written back, free texts, or judged by Octavia and Neutron, whose answer is the
/// event (`what_the_cloud_rejects_is_an_event_with_its_words`).
const ANY: &[&str] = &["load-balancer-id", "load-balancer-address", "hostname"];
const JUDGED: &[(&str, &str, &str)] = &[
    (
        "flavor-id",
        NOWHERE,
        "flavor-id `8d1c1a94-0000-4000-8000-000000000000`: Octavia refuses it (Validation failure: Invalid flavor_id): \
         correct the annotation loadbalancer.openstack.org/flavor-id, or flavor-id in cloud.conf",
    ),
    (
        "availability-zone",
        "nowhere",
        "availability-zone `nowhere`: Octavia refuses it (",
    ),
    (
        "floating-subnet-id",
        NOWHERE,
        "POST /network/v2.0/floatingips: 4",
    ),
];

/// API servers refuse a Service with a wrong value of these.
const REFUSED: &[&str] = &["service.beta.kubernetes.io/load-balancer-source-ranges"];

fn full(name: &str) -> String {
    match name.contains('/') {
        true => name.to_owned(),
        false => format!("loadbalancer.openstack.org/{name}"),
    }
}

#[test]
fn every_annotation_is_in_one_of_the_tables() {
    let listed = WRONG.iter().chain(JUDGED).map(|(name, ..)| *name);
    let listed: BTreeSet<_> = listed
        .chain(ANY.iter().chain(REFUSED).copied())
        .map(full)
        .collect();
    for annotation in ccm::ANNOTATIONS {
        assert!(listed.contains(annotation.name), "{}", annotation.name);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wrong_value_is_an_event_that_names_it() {
    let world = world(&["worker-1"]).await;
    for (number, (name, value, _)) in WRONG.iter().enumerate() {
        let annotations = json!({"metadata": {"annotations": {full(name): value}}});
        world
            .service(&format!("web-{number}"), &[("TCP", 80)], annotations)
            .await;
    }
    for (number, (name, value, words)) in WRONG.iter().enumerate() {
        let note = world
            .event(&format!("web-{number}"), "SyncLoadBalancerFailed")
            .await;
        assert!(note.contains(words), "{name}: {note}");
        let names = note.contains(name) || note.contains("range");
        let has_value = note.contains(&format!("`{value}`"))
            || *name == "subnet_id"
            || note.contains("regular expression");
        assert!(names && has_value, "{name}: {note}");
    }
    assert!(world.octavia("loadbalancers").await.is_empty());
    assert!(world.floating_ips().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn the_proxy_protocol_and_the_header_together_are_rejected() {
    let world = world(&["worker-1"]).await;
    let both = json!({"metadata": {"annotations": {full("proxy-protocol"): "v2", full("x-forwarded-for"): "true"}}});
    world.service("web", &[("TCP", 80)], both).await;
    let note = world.event("web", "SyncLoadBalancerFailed").await;
    assert!(note.contains("x-forwarded-for is set, too"), "{note}");
    assert!(world.octavia("loadbalancers").await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_the_cloud_rejects_is_an_event_with_its_words() {
    let world = world(&["worker-1"]).await;
    for (name, value, words) in JUDGED {
        let annotations = json!({"metadata": {"annotations": {full(name): value}}});
        world.service(name, &[("TCP", 80)], annotations).await;
        world
            .event_with(name, "SyncLoadBalancerFailed", words)
            .await;
        world.delete_service(name).await;
    }
    assert!(world.octavia("loadbalancers").await.is_empty());
}
