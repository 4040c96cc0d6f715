use serde_json::json;

use super::*;
use crate::snapshot::tests::item;

fn cluster_item(available: &str) -> Item {
    item(
        Kind::Cluster,
        json!({"metadata": {"name": "demo", "namespace": "default", "uid": "c"},
               "status": {"conditions": [
                   {"type": "Available", "status": available, "reason": "NotAvailable",
                    "message": "* ControlPlaneAvailable: not yet"}]}}),
    )
}

fn machine_item(phase: &str) -> Item {
    item(
        Kind::Machine,
        json!({"metadata": {"name": "m", "namespace": "default"},
               "spec": {"infrastructureRef": {"name": "m"}},
               "status": {"phase": phase, "conditions": [
                   {"type": "NodeReady", "status": "Unknown", "reason": "X", "message": "no Node"}]}}),
    )
}

#[test]
fn nothing_at_all_is_not_ready() {
    assert_eq!(pending(&Snapshot::default())[0].why, "there is none");
}

#[test]
fn an_available_cluster_with_running_machines_is_ready() {
    let items = vec![cluster_item("True"), machine_item("Running")];
    assert_eq!(pending(&Snapshot::from(items)), []);
}

#[test]
fn what_is_missing_is_named_with_its_own_words() {
    let deployment = item(
        Kind::MachineDeployment,
        json!({"metadata": {"name": "d"}, "spec": {"replicas": 3}, "status": {"replicas": 3, "readyReplicas": 1}}),
    );
    let items = vec![
        cluster_item("False"),
        deployment,
        machine_item("Provisioned"),
    ];
    let found: Vec<_> = pending(&Snapshot::from(items))
        .into_iter()
        .map(|pending| format!("{}: {}", pending.object, pending.why))
        .collect();
    assert_eq!(
        found,
        [
            "Cluster/demo: ControlPlaneAvailable: not yet",
            "MachineDeployment/d: 1 of 3 machines are ready",
            "Machine/m: Provisioned: no Node",
        ]
    );
}

#[test]
fn a_change_that_nobody_has_looked_at_and_a_rollout_are_not_ready() {
    let deployment = |generation: i64, current: i64| {
        let object = json!({
            "metadata": {"name": "d", "generation": generation}, "spec": {"replicas": 3},
            "status": {"replicas": 3, "readyReplicas": 3, "upToDateReplicas": current, "observedGeneration": 1}});
        let items = vec![cluster_item("True"), item(Kind::MachineDeployment, object)];
        let found = pending(&Snapshot::from(items));
        found.into_iter().map(|pending| pending.why).next()
    };
    assert_eq!(deployment(1, 3), None);
    assert_eq!(
        deployment(1, 1).as_deref(),
        Some("1 of 3 machines are up to date")
    );
    assert_eq!(
        deployment(2, 3).as_deref(),
        Some("its change has not been reconciled yet")
    );
}

#[test]
fn what_fails_comes_before_what_an_object_itself_waits_for() {
    use crate::readiness::cause::tests::{condition, of_demo};
    let failing = |type_: &str, reason: &str, message: &str| {
        let conditions = [condition(type_, "False", reason, message)];
        json!({"spec": {"replicas": 1}, "status": {"phase": "Running", "conditions": conditions}})
    };
    let items = vec![
        of_demo(
            Kind::Cluster,
            "demo",
            "",
            failing("Available", "NotAvailable", "* etcd: No member"),
        ),
        of_demo(
            Kind::KubeadmControlPlane,
            "cp",
            "demo",
            failing("Available", "NotAvailable", "* etcd: No member"),
        ),
        of_demo(
            Kind::Machine,
            "m",
            "cp",
            failing(
                "InfrastructureReady",
                "InstanceDeleted",
                "Server x was deleted",
            ),
        ),
    ];
    let mut snapshot = Snapshot::from(items);
    let whys = |snapshot: &Snapshot| -> Vec<String> {
        let found = pending(snapshot).into_iter();
        found.map(|pending| pending.why).collect()
    };
    assert_eq!(
        whys(&snapshot),
        ["server x was deleted", "server x was deleted"]
    );
    snapshot.items.truncate(1);
    assert_eq!(whys(&snapshot), ["etcd: No member"]);
}

#[test]
fn a_cluster_of_a_class_is_ready_when_its_topology_has_come_to_its_objects() {
    let why = |observed: i64, status: &str, reason: &str| {
        let cluster = item(
            Kind::Cluster,
            json!({"metadata": {"name": "demo", "namespace": "default", "uid": "c", "generation": 3},
                   "spec": {"topology": {"version": "v1.34.3"}},
                   "status": {"conditions": [
                       {"type": "Available", "status": "True", "reason": "Available"},
                       {"type": "TopologyReconciled", "status": status, "reason": reason, "observedGeneration": observed,
                        "message": "md-0 waits for the control plane"}]}}),
        );
        let found = pending(&Snapshot::from(vec![cluster]));
        found.into_iter().map(|it| it.why).next()
    };
    assert_eq!(why(3, "True", "ReconcileSucceeded"), None);
    assert_eq!(
        why(2, "True", "ReconcileSucceeded").unwrap(),
        "its change has not been reconciled yet"
    );
    assert_eq!(
        why(3, "False", "ClusterUpgrading").unwrap(),
        "md-0 waits for the control plane"
    );
    for wanted in ["Paused", "MachineDeploymentsUpgradeDeferred"] {
        assert_eq!(why(3, "False", wanted), None, "{wanted}");
    }
}
