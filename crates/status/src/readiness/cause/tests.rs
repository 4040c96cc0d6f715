use serde_json::{Value, json};

use super::*;
use crate::snapshot::tests::item;

/// An object of the cluster `demo`, owned by `owner`.
pub(crate) fn of_demo(kind: Kind, name: &str, owner: &str, rest: Value) -> Item {
    let mut object = json!({"metadata": {
        "name": name, "namespace": "default", "uid": name,
        "labels": {"cluster.x-k8s.io/cluster-name": "demo"},
        "ownerReferences": [{"apiVersion": "x/v1", "kind": "X", "name": owner, "uid": owner}],
    }});
    for (key, value) in rest.as_object().cloned().unwrap_or_default() {
        object[key] = value;
    }
    item(kind, object)
}

pub(crate) fn condition(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({"type": type_, "status": status, "reason": reason, "message": message,
           "lastTransitionTime": "2026-01-01T00:00:00Z"})
}

fn waiting_for(snapshot: &Snapshot, name: &str) -> Option<String> {
    let item = snapshot
        .items
        .iter()
        .find(|item| item.label() == name)
        .unwrap();
    cause(snapshot, item).map(|cause| cause.text)
}

#[test]
fn a_quota_that_is_used_up_is_told_in_few_words() {
    let words = |text: &str| in_users_words(text);
    assert_eq!(
        words("Quota exceeded for instances: Requested 1, but already used 10 of 10 instances"),
        "quota of instances: 10 of 10 used"
    );
    assert_eq!(
        words(
            "Quota exceeded for cores, instances: Requested 2, 1, but already used 20, 10 of 20, 10 cores, instances \
             (create the server: compute POST /servers: 403). Free some"
        ),
        "quota of cores: 20 of 20 used, instances: 10 of 10 used (create the server: compute POST /servers: 403). Free some"
    );
    let other = "Quota exceeded for resources: ['network']";
    assert_eq!(words(other), "quota exceeded for resources: ['network']");
}

#[test]
fn while_the_network_is_built_nothing_speaks_of_kubeadm() {
    let status = |conditions: Value| json!({"status": {"conditions": conditions}});
    let snapshot = Snapshot::from(vec![
        of_demo(
            Kind::Cluster,
            "demo",
            "",
            status(json!([condition(
                "InfrastructureReady",
                "False",
                "R",
                "Waiting for OpenStackCluster to create the infrastructure"
            )])),
        ),
        of_demo(
            Kind::OpenStackCluster,
            "demo",
            "demo",
            status(json!([condition(
                "Ready",
                "False",
                "WaitingForCloud",
                "APIEndpointReady: creating load balancer x"
            )])),
        ),
        of_demo(
            Kind::KubeadmControlPlane,
            "cp",
            "demo",
            status(json!([condition(
                "Initialized",
                "False",
                "R",
                "Waiting for the Cluster's infrastructure"
            )])),
        ),
        of_demo(Kind::Machine, "w", "ms", json!({})),
    ]);
    for (name, expected) in [
        ("Cluster/demo", "creating the load balancer"),
        ("OpenStackCluster/demo", "creating the load balancer"),
        (
            "KubeadmControlPlane/cp",
            "waiting for the network and the load balancer",
        ),
        ("Machine/w", "waiting for the first control plane node"),
    ] {
        assert_eq!(
            waiting_for(&snapshot, name).as_deref(),
            Some(expected),
            "{name}"
        );
    }
}

#[test]
fn a_blocked_rollout_is_the_cause_of_its_machine_deployment() {
    let message = "Scaling up from 0 to 1 replicas is blocked because:\n* version v1.35.0 does not fit\n* another";
    let available = json!({"spec": {"replicas": 0}, "status": {"conditions": [condition("Available", "True", "A", "")]}});
    let snapshot = Snapshot::from(vec![
        of_demo(Kind::MachineDeployment, "md", "demo", available),
        of_demo(
            Kind::MachineSet,
            "ms",
            "md",
            json!({"status": {"conditions": [condition("ScalingUp", "True", "ScalingUp", message)]}}),
        ),
    ]);
    assert_eq!(
        waiting_for(&snapshot, "MachineDeployment/md").unwrap(),
        "blocked: version v1.35.0 does not fit; another"
    );
}

#[test]
fn what_waiting_does_not_mend_is_a_failure() {
    for reason in [
        "InstanceCreateFailed",
        "OpenStackError",
        "InvalidMachineSpec",
        "InstanceDeleted",
    ] {
        assert!(is_failure(reason), "{reason}");
    }
    for reason in [
        "WaitingForCloud",
        "NotReady",
        "Creating",
        "InstanceNotReady",
    ] {
        assert!(!is_failure(reason), "{reason}");
    }
}

#[test]
fn an_upgrade_that_waits_for_the_control_plane_is_no_failure() {
    let message = "Rolling out 3 not up-to-date replicas\n* Version v1.34.2, v1.35.0 required\n\
        The roll-out is blocked because:\n* Waiting for KubeadmControlPlane cp, which is being upgraded from v1.34.2 to v1.35.0";
    let status = json!({"conditions": [condition("RollingOut", "True", "RollingOut", message)]});
    let snapshot = Snapshot::from(vec![of_demo(
        Kind::MachineDeployment,
        "md",
        "demo",
        json!({"status": status}),
    )]);
    let found = cause(&snapshot, &snapshot.items[0]).unwrap();
    assert!(!found.failing);
    assert_eq!(
        found.text,
        "waiting for KubeadmControlPlane cp, which is being upgraded from v1.34.2 to v1.35.0"
    );
}

#[test]
fn every_line_begins_alike_and_names_keep_their_capitals() {
    for (condition, line) in [
        ("Creating server 8d29", "creating the server"),
        ("Deleting server 8d29", "deleting the server"),
        (
            "OpenStackMachine is being deleted: InstanceReady: Deleting server 8d29",
            "deleting the server",
        ),
        (
            "Waiting for the node to join the cluster (spec.providerID x)",
            "waiting for the node to join",
        ),
        ("Quota exceeded", "quota exceeded"),
        (
            "Server 72c5110d-7f43-48d4-994a-d8d9183030a0 was deleted by somebody else",
            "the server was deleted by somebody else",
        ),
        ("server a is BUILD", "server a is BUILD"),
        ("Machine a is being deleted", "Machine a is being deleted"),
        (
            "OpenStackMachine is being deleted",
            "OpenStackMachine is being deleted",
        ),
        ("etcd would lose its quorum", "etcd would lose its quorum"),
        (
            "failureDomain `mars` is not a zone",
            "failureDomain `mars` is not a zone",
        ),
    ] {
        assert_eq!(in_users_words(condition), line);
    }
}

#[test]
fn a_cluster_that_is_deleted_says_what_it_waits_for() {
    for (message, expected) in [
        (
            "* MachineDeployments: demo-md-0\n* Machines: a, b",
            "waiting for the deletion of MachineDeployments demo-md-0",
        ),
        (
            "* OpenStackCluster demo",
            "waiting for the deletion of OpenStackCluster demo",
        ),
        ("", "being deleted"),
        (
            "The API server does not answer",
            "the API server does not answer",
        ),
    ] {
        let object = json!({
            "metadata": {"name": "demo", "deletionTimestamp": "2026-01-01T00:00:00Z"},
            "status": {"conditions": [condition("Deleting", "True", "R", message)]}});
        let cluster = item(Kind::Cluster, object);
        let found = cause(&Snapshot::default(), &cluster).unwrap();
        assert_eq!(found.text, expected);
    }
}
