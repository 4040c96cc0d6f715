mod convergence;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn node(taints: &[&str], ready: &str, labels: Value) -> Node {
    let taints: Vec<_> = taints
        .iter()
        .map(|key| json!({"key": key, "effect": "NoSchedule"}))
        .collect();
    serde_json::from_value(json!({
        "metadata": {"name": "n", "labels": labels},
        "spec": {"taints": taints},
        "status": {
            "conditions": [{"type": "Ready", "status": ready}],
            "addresses": [{"type": "Hostname", "address": "n"}],
        },
    }))
    .unwrap()
}

fn instance(status: &str) -> Instance {
    Instance {
        provider_id: "openstack:///s".to_owned(),
        status: status.to_owned(),
        addresses: vec![NodeAddress {
            type_: "InternalIP".to_owned(),
            address: "10.0.0.5".to_owned(),
        }],
        address_problem: None,
        instance_type: "m1.small".to_owned(),
        zone: "az1".to_owned(),
        region: "R".to_owned(),
    }
}

fn taints(node: &Node) -> Vec<&str> {
    let taints = node.spec.as_ref().unwrap().taints.as_ref();
    taints.map_or(Vec::new(), |taints| {
        taints.iter().map(|taint| taint.key.as_str()).collect()
    })
}

#[test]
fn a_new_node_gets_all_that_the_cloud_knows_and_loses_its_taint() {
    let before = node(
        &[UNINITIALIZED, "mine"],
        "False",
        json!({"a": "b", ZONE[0]: "wrong"}),
    );
    let after = initialised(&before, &instance("ACTIVE")).unwrap();
    assert_eq!(
        after.spec.as_ref().unwrap().provider_id.as_deref(),
        Some("openstack:///s")
    );
    assert_eq!(taints(&after), ["mine"]);
    let labels = serde_json::to_value(after.labels()).unwrap();
    assert_eq!(
        labels,
        json!({"a": "b", INSTANCE_TYPE[0]: "m1.small", INSTANCE_TYPE[1]: "m1.small",
            ZONE[0]: "az1", ZONE[1]: "az1", REGION[0]: "R", REGION[1]: "R"})
    );
    let addresses = after.status.as_ref().unwrap().addresses.as_ref().unwrap();
    assert_eq!(addresses.len(), 2);
    assert_eq!(initialised(&after, &instance("ACTIVE")).unwrap(), after);
}

#[test]
fn a_node_that_is_initialised_follows_its_flavor_but_keeps_zone_and_provider_id() {
    let mut before = node(
        &[],
        "True",
        json!({ZONE[0]: "by-hand", INSTANCE_TYPE[0]: "m1.tiny"}),
    );
    before.spec.as_mut().unwrap().provider_id = Some("openstack://other/x".to_owned());
    let after = initialised(&before, &instance("ACTIVE")).unwrap();
    assert_eq!(
        after.spec.as_ref().unwrap().provider_id.as_deref(),
        Some("openstack://other/x")
    );
    assert_eq!(after.labels()[INSTANCE_TYPE[0]], "m1.small");
    assert_eq!(
        (
            after.labels()[ZONE[0]].as_str(),
            after.labels()[ZONE[1]].as_str()
        ),
        ("by-hand", "by-hand")
    );
}

#[test]
fn what_the_cloud_does_not_know_is_left_alone() {
    let before = node(&[], "True", json!({}));
    let unknown = Instance {
        provider_id: "openstack:///s".to_owned(),
        ..Instance::default()
    };
    let after = initialised(&before, &unknown).unwrap();
    assert!(after.labels().is_empty());
    let addresses = after.status.unwrap().addresses.unwrap();
    assert_eq!(addresses.len(), 1);
    // An empty map or list would be written again and again, since the API server stores none.
    let bare = initialised(&Node::default(), &unknown).unwrap();
    assert_eq!((bare.metadata.labels, bare.status), (None, None));
}

#[test]
fn without_an_address_a_node_is_not_initialised_and_loses_none_that_it_has() {
    let lacking = Instance {
        address_problem: Some("server s has no address".to_owned()),
        addresses: Vec::new(),
        ..instance("ACTIVE")
    };
    for (taints, effect) in [
        (&[UNINITIALIZED][..], "the node is not initialised"),
        (&[], "the Node keeps the addresses"),
    ] {
        let error = initialised(&node(taints, "False", json!({})), &lacking).unwrap_err();
        assert!(error.starts_with("server s has no address"), "{error}");
        assert!(error.contains(effect), "{error}");
    }
}

#[test]
fn only_a_server_that_is_shut_off_taints_a_node_that_is_not_ready() {
    let cases: &[(&str, &str, &[&str], &[&str])] = &[
        ("False", "SHUTOFF", &[], &[SHUTDOWN]),
        ("Unknown", "SHUTOFF", &["mine"], &["mine", SHUTDOWN]),
        ("True", "SHUTOFF", &[], &[]),
        ("True", "ACTIVE", &[SHUTDOWN, "mine"], &["mine"]),
        ("False", "ACTIVE", &[SHUTDOWN], &[SHUTDOWN]),
        ("False", "PAUSED", &[], &[]),
        ("False", "SHELVED_OFFLOADED", &[], &[]),
    ];
    for (ready, status, before, after) in cases {
        let tainted = tainted(node(before, ready, json!({})), Some(&instance(status)));
        assert_eq!(taints(&tainted), *after, "{ready} {status}");
    }
}

#[test]
fn zones_become_labels_as_in_the_go_manager() {
    for (zone, label) in [
        ("nova", "nova"),
        ("Zone 1", "Zone-1"),
        ("a  //  b", "a-b"),
        (" -edge_. ", "edge"),
        ("ä", ""),
        ("", ""),
    ] {
        assert_eq!(sanitised(zone), label, "{zone}");
    }
}

proptest! {
    #[test]
    fn a_sanitised_text_is_a_label_or_empty(text in "\\PC*") {
        let label = sanitised(&text);
        prop_assert!(label.len() <= 63);
        prop_assert!(label.is_empty() || is_label(&label), "{label}");
    }
}

#[test]
fn a_node_without_a_server_in_the_project_is_told_what_was_looked_for() {
    let named = |spec: Value| -> Node {
        let node = json!({"metadata": {"name": "stranger"}, "spec": spec});
        serde_json::from_value(node).unwrap()
    };
    let by_name = unfound(&named(json!({})));
    assert!(
        by_name.contains("no server of the name stranger"),
        "{by_name}"
    );
    let by_id = unfound(&named(json!({"providerID": "openstack:///x"})));
    assert!(
        by_id.contains("no server with the providerID openstack:///x"),
        "{by_id}"
    );
    assert!(!by_id.contains("give the server"), "{by_id}");
}

#[test]
fn a_node_is_new_for_a_minute() {
    let mut node = Node::default();
    let now: Timestamp = "2026-01-01T00:02:00Z".parse().unwrap();
    assert!(!is_new(&node, now));
    for (registered, expected) in [
        ("2026-01-01T00:02:01Z", true),
        ("2026-01-01T00:01:01Z", true),
        ("2026-01-01T00:01:00Z", false),
    ] {
        let at = registered.parse().unwrap();
        node.metadata.creation_timestamp = Some(
            api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at),
        );
        assert_eq!(is_new(&node, now), expected, "{registered}");
    }
}
