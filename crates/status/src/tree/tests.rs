use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::snapshot::tests::item;

const GROUPED: Selection = Selection {
    grouping: true,
    machine_sets: false,
    resource_sets: false,
    templates: false,
    parts: Parts::None,
};

pub(super) fn owned(kind: Kind, name: &str, owner: &str, ready: &str) -> Item {
    let type_ = if kind == Kind::Machine || kind == Kind::OpenStackCluster {
        "Ready"
    } else {
        "Available"
    };
    item(
        kind,
        json!({
            "metadata": {
                "name": name, "namespace": "default", "uid": name,
                "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
                "ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": owner, "uid": owner}],
            },
            "spec": {"replicas": 2},
            "status": {
                "replicas": 2, "readyReplicas": 1, "phase": "Running", "nodeRef": {"name": "n"},
                "conditions": [{
                    "type": type_, "status": ready, "reason": "Because",
                    "message": "* Server is BUILD\n* more", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        }),
    )
}

pub(super) fn demo() -> Snapshot {
    let cluster = owned(Kind::Cluster, "demo", "", "True");
    let mut first = owned(Kind::Machine, "cp-a", "demo-cp", "False");
    let label = "cluster.x-k8s.io/control-plane".to_owned();
    let labels = Arc::make_mut(&mut first.object)
        .metadata
        .labels
        .get_or_insert_default();
    labels.insert(label, String::new());
    Snapshot::from(vec![
        cluster,
        owned(Kind::OpenStackCluster, "demo", "demo", "True"),
        owned(Kind::KubeadmControlPlane, "demo-cp", "demo", "False"),
        owned(Kind::MachineDeployment, "md", "demo", "True"),
        owned(Kind::MachineSet, "ms", "md", "True"),
        first,
        owned(Kind::Machine, "w-a", "ms", "True"),
        owned(Kind::Machine, "w-b", "ms", "True"),
    ])
}

pub(super) fn now() -> Timestamp {
    "2026-01-01T00:01:05Z".parse().unwrap()
}

#[test]
fn the_tree_shows_every_object_below_its_owner() {
    let snapshot = demo();
    let text = table(
        &[of_cluster(&snapshot, &snapshot.items[0], GROUPED)],
        now(),
        Layout::Full,
        Colors::Off,
    );
    insta::assert_snapshot!(text, @"
    NAME                                             REPLICAS  AVAILABLE  READY  UP TO DATE  STATUS            REASON   SINCE  MESSAGE
    Cluster/demo                                                          1                  Available: True   Because  65s
    ├─ClusterInfrastructure - OpenStackCluster/demo                       1                  Ready: True       Because  65s
    ├─ControlPlane - KubeadmControlPlane/demo-cp     2/2                  1                  Available: False  Because  65s    waiting for the first control plane node
    │ └─Machine/cp-a                                                      1                  Ready: False      Because  65s    server is BUILD
    └─Workers
      └─MachineDeployment/md                         2/2                  1                  Available: True   Because  65s    1 of 2 machines are ready
        └─2 Machines...                                                   1                  Ready: True       Because  65s    See w-a, w-b
    ");
}

/// Two workers in the same state with `causes`; `nodes` is whether they have been Nodes.
fn failing(causes: [&str; 2], nodes: bool) -> Branch {
    let mut snapshot = demo();
    for (machine, cause) in snapshot.items.iter_mut().skip(6).zip(causes) {
        Arc::make_mut(&mut machine.object).data["status"]["conditions"] = json!([
            {"type": "Ready", "status": "False", "reason": "NotReady", "message": ""},
            {"type": "InfrastructureReady", "status": "False", "reason": "InstanceCreateFailed", "message": cause}]);
        if !nodes {
            Arc::make_mut(&mut machine.object).data["status"]["nodeRef"] = json!(null);
        }
    }
    of_cluster(&snapshot, &snapshot.items[0], GROUPED)
}

#[test]
fn machines_share_a_row_when_they_share_the_cause_and_have_been_nodes() {
    let rows = |root: Branch| root.children[2].children[0].children.clone();
    let shared = rows(failing(["quota is used up", "quota is used up"], true));
    assert_eq!(shared.len(), 1);
    assert_eq!(shared[0].message, "quota is used up (see w-a, w-b)");
    assert_eq!(
        rows(failing(["quota is used up", "no host"], true)).len(),
        2
    );
    assert_eq!(
        rows(failing(["quota is used up", "quota is used up"], false)).len(),
        2
    );
}

#[test]
fn programs_read_numbers_and_whether_something_fails() {
    let root = serde_json::to_value(failing(["a", "b"], true)).unwrap();
    let deployment = &root["children"][2]["children"][0];
    assert_eq!(deployment["desiredReplicas"], 2);
    assert_eq!(deployment["readyReplicas"], 1);
    assert_eq!(deployment["failing"], true);
    assert_eq!(deployment["message"], "a");
}

#[test]
fn ages_are_written_as_kubectl_writes_them() {
    for (since, expected) in [
        ("2026-01-01T00:00:00Z", "65s"),
        ("2025-12-31T23:59:00Z", "2m5s"),
        ("2025-12-31T20:40:00Z", "3h21m"),
        ("2025-12-31T23:00:00Z", "61m"),
        ("2025-12-31T01:00:00Z", "23h"),
        ("2025-12-01T00:00:00Z", "31d"),
        ("2027-01-01T00:00:00Z", "0s"),
        ("", ""),
    ] {
        assert_eq!(age(since, now()), expected);
    }
}

#[test]
fn a_terminal_that_is_too_narrow_shows_names_without_their_roles() {
    let snapshot = demo();
    let root = of_cluster(&snapshot, &snapshot.items[0], GROUPED);
    let now = "2026-01-01T00:01:00Z".parse().unwrap();
    let printed = |width| {
        table(
            std::slice::from_ref(&root),
            now,
            Layout::Terminal(width),
            Colors::Off,
        )
    };
    assert!(printed(160).contains("ControlPlane - "), "{}", printed(160));
    let narrow = printed(60);
    assert!(!narrow.contains(" - "), "{narrow}");
    assert_eq!(
        without_role("│ └─MachineInfrastructure - OpenStackMachine/a"),
        "│ └─OpenStackMachine/a"
    );
    assert_eq!(without_role("└─3 Machines..."), "└─3 Machines...");
}
