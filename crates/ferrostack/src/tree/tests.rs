use serde_json::json;

use super::*;
use crate::snapshot::tests::item;

fn owned(kind: Kind, name: &str, owner: &str, ready: &str) -> Item {
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
                "replicas": 2, "readyReplicas": 1, "phase": "Running",
                "conditions": [{
                    "type": type_, "status": ready, "reason": "Because",
                    "message": "* Server is BUILD\n* more", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
            },
        }),
    )
}

fn demo() -> Snapshot {
    let cluster = owned(Kind::Cluster, "demo", "", "True");
    Snapshot {
        items: vec![
            cluster,
            owned(Kind::OpenStackCluster, "demo", "demo", "True"),
            owned(Kind::KubeadmControlPlane, "demo-cp", "demo", "False"),
            owned(Kind::MachineDeployment, "md", "demo", "True"),
            owned(Kind::MachineSet, "ms", "md", "True"),
            owned(Kind::Machine, "cp-a", "demo-cp", "False"),
            owned(Kind::Machine, "w-a", "ms", "True"),
            owned(Kind::Machine, "w-b", "ms", "True"),
        ],
    }
}

fn now() -> Timestamp {
    "2026-01-01T00:01:05Z".parse().unwrap()
}

#[test]
fn the_tree_shows_every_object_below_its_owner() {
    let snapshot = demo();
    let text = table(&of_cluster(&snapshot, &snapshot.items[0], true), now());
    insta::assert_snapshot!(text, @"
    NAME                                             REPLICAS  AVAILABLE  READY  UP TO DATE  STATUS            REASON   SINCE  MESSAGE
    Cluster/demo                                                          1                  Available: True   Because  65s
    ├─ClusterInfrastructure - OpenStackCluster/demo                       1                  Ready: True       Because  65s
    ├─ControlPlane - KubeadmControlPlane/demo-cp     2/2                  1                  Available: False  Because  65s    Server is BUILD
    │ └─Machine/cp-a                                                      1                  Ready: False      Because  65s    Server is BUILD
    └─Workers
      └─MachineDeployment/md                         2/2                  1                  Available: True   Because  65s
        └─2 Machines...                                                   1                  Ready: True       Because  65s    See w-a, w-b
    ");
}

#[test]
fn ages_are_written_as_kubectl_writes_them() {
    for (since, expected) in [
        ("2026-01-01T00:00:00Z", "65s"),
        ("2025-12-31T23:00:00Z", "61m"),
        ("2025-12-31T01:00:00Z", "23h"),
        ("2025-12-01T00:00:00Z", "31d"),
        ("2027-01-01T00:00:00Z", "0s"),
        ("", ""),
    ] {
        assert_eq!(age(since, now()), expected);
    }
}
