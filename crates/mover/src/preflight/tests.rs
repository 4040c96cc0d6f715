use serde_json::json;

use super::*;
use crate::graph::select;
use crate::graph::tests::object;

fn ready() -> Value {
    json!({"status": {"initialization": {"infrastructureProvisioned": true, "controlPlaneInitialized": true}}})
}

fn problems(objects: Vec<Object>) -> Vec<String> {
    source(&select(objects), None)
}

#[test]
fn only_clusters_that_are_complete_move() {
    assert!(problems(vec![object("Cluster", "c", &[], ready())]).is_empty());
    let old = json!({"status": {"infrastructureReady": true, "conditions": [{"type": "ControlPlaneInitialized", "status": "True"}]}});
    assert!(problems(vec![object("Cluster", "c", &[], old)]).is_empty());
    let with = |field: &str, value: Value| {
        let mut more = ready();
        more[field] = value;
        problems(vec![object("Cluster", "c", &[], more)])
    };
    assert!(with("status", json!({}))[0].contains("its infrastructure is not ready"));
    let half = json!({"initialization": {"infrastructureProvisioned": true}});
    assert!(with("status", half)[0].contains("its control plane is not initialized"));
    assert!(with("spec", json!({"paused": true}))[0].contains("is paused"));
    assert!(with("annotations", json!({PAUSED_ANNOTATION: ""}))[0].contains("is paused"));
    let deleting = with("deletionTimestamp", json!("2026-01-01T00:00:00Z"));
    assert_eq!(
        deleting,
        ["Cluster/c is being deleted: wait until it is gone"]
    );
    let machine = object("Machine", "m", &["Cluster/c"], json!({}));
    let found = problems(vec![object("Cluster", "c", &[], ready()), machine]);
    assert_eq!(
        found,
        ["Machine/m has no Node yet: wait until it runs, or delete it"]
    );
}

#[test]
fn a_cluster_that_the_same_move_has_paused_is_in_nobodys_way() {
    let mut more = ready();
    more["spec"] = json!({"paused": true});
    more["annotations"] = json!({MOVE_ANNOTATION: "1"});
    let selection = select(vec![object("Cluster", "c", &[], more)]);
    assert!(source(&selection, Some("1")).is_empty());
    assert_eq!(source(&selection, Some("2")).len(), 1);
    assert_eq!(source(&selection, None).len(), 1);
}

#[test]
fn the_source_is_quiet_when_all_who_report_it_are_paused_and_nobody_blocks() {
    let reported =
        |status: &str| json!({"status": {"conditions": [{"type": "Paused", "status": status}]}});
    let waits = |more: Value| unquiet(&select(vec![object("Cluster", "c", &[], more)])).len();
    assert_eq!(waits(reported("True")), 0);
    assert_eq!(waits(reported("False")), 1);
    let topology = |reason: &str| json!({"status": {"conditions": [{"type": "TopologyReconciled", "status": "False", "reason": reason}]}});
    assert_eq!(waits(topology("Paused")), 0);
    assert_eq!(waits(topology("ClusterUpgrading")), 1);
    // A controller that reports nothing cannot confirm anything.
    assert_eq!(waits(json!({})), 0);
    assert_eq!(
        waits(json!({"annotations": {BLOCK_MOVE_ANNOTATION: "true"}})),
        1
    );
}

#[test]
fn identities_of_the_whole_cluster_are_found() {
    let spec =
        json!({"spec": {"template": {"identityRef": {"type": "ClusterIdentity", "name": "prod"}}}});
    let selection = select(vec![
        object("Cluster", "c", &[], ready()),
        object("OpenStackMachineTemplate", "t", &["Cluster/c"], spec),
    ]);
    assert_eq!(
        shared_identities(&selection)
            .into_iter()
            .collect::<Vec<_>>(),
        ["prod"]
    );
}

#[test]
fn the_classes_of_other_namespaces_are_found_in_both_versions() {
    let of = |name: &str, topology: Value| {
        let mut more = ready();
        more["spec"] = json!({"topology": topology});
        object("Cluster", name, &[], more)
    };
    let selection = select(vec![
        of(
            "a",
            json!({"classRef": {"name": "small", "namespace": "classes"}}),
        ),
        of("b", json!({"class": "large", "classNamespace": "classes"})),
        of("c", json!({"classRef": {"name": "here"}})),
        of(
            "d",
            json!({"classRef": {"name": "same", "namespace": "default"}}),
        ),
    ]);
    let class = |name: &str| ("classes".to_owned(), name.to_owned());
    let wanted = BTreeSet::from([class("large"), class("small")]);
    assert_eq!(shared_classes(&selection), wanted);
}
