use api::k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;

fn conditions(list: &[(&str, &str, &str, &str)]) -> Value {
    let list = list.iter().map(|(type_, status, reason, message)| {
        json!({"type": type_, "status": status, "reason": reason, "message": message,
               "lastTransitionTime": Timestamp::UNIX_EPOCH.to_string()})
    });
    list.collect()
}

fn machine(status: Value) -> Machine {
    let object = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m"}, "spec": {"clusterName": "demo", "bootstrap": {},
            "infrastructureRef": {"apiGroup": "x", "kind": "OpenStackMachine", "name": "m"}},
        "status": status});
    serde_json::from_value(object).unwrap()
}

fn reasons(news: &[PendingEvent]) -> Vec<&str> {
    news.iter().map(|item| item.reason.as_str()).collect()
}

#[test]
fn a_machine_tells_of_its_node_once() {
    let (without, with) = (
        machine(json!({})),
        machine(json!({"nodeRef": {"name": "n"}})),
    );
    let news = of_machine(&without, &with, None);
    assert_eq!(reasons(&news), ["SuccessfulSetNodeRef"]);
    assert_eq!(news[0].note, "Node n has joined the cluster");
    assert_eq!(of_machine(&with, &with, None), []);
}

#[test]
fn a_failure_of_the_infrastructure_is_a_warning_when_it_is_new() {
    let message = "InstanceReady: server 8d29 was deleted by somebody else: delete the Machine";
    let with = |status: &str, reason: &str, message: &str| {
        let list = conditions(&[("InfrastructureReady", status, reason, message)]);
        machine(json!({ "conditions": list }))
    };
    let (was, is) = (
        with("True", "Ready", ""),
        with("False", "InstanceDeleted", message),
    );
    let news = of_machine(&was, &is, None);
    assert_eq!(reasons(&news), ["InstanceDeleted"]);
    assert_eq!(news[0].type_, events::Type::Warning);
    assert!(news[0].note.starts_with("server 8d29 was deleted"));
    assert_eq!(of_machine(&is, &is, None), []);
    let waits = with("False", "WaitingForCloud", "creating server 8d29");
    assert_eq!(of_machine(&was, &waits, None), []);
}

#[test]
fn a_drain_ends_with_an_event_and_a_held_pod_is_named() {
    let times = json!({"nodeDrainStartTime": Timestamp::UNIX_EPOCH.to_string()});
    let at = |reason: &str, message: &str| {
        let list = conditions(&[("Deleting", "True", reason, message)]);
        machine(json!({"nodeRef": {"name": "n"}, "deletion": times, "conditions": list}))
    };
    let held = at(
        "DrainingNode",
        "Drain not completed yet:\n* Pods default/web: cannot be evicted: the budget",
    );
    let draining = at(
        "DrainingNode",
        "Drain not completed yet:\n* Pods a: eviction requested",
    );
    let gone = at("WaitingForInfrastructureDeletion", "");
    let failed = at("Deleting", "reading Node n");
    assert_eq!(
        reasons(&of_machine(&draining, &held, None)),
        ["FailedDrainNode"]
    );
    assert_eq!(of_machine(&held, &held, None), []);
    assert_eq!(
        reasons(&of_machine(&draining, &gone, None)),
        ["SuccessfulDrainNode"]
    );
    assert_eq!(
        reasons(&of_machine(
            &draining,
            &gone,
            Some("nodeDrainTimeoutSeconds")
        )),
        ["FailedDrainNode"]
    );
    assert_eq!(of_machine(&draining, &failed, None), []);
    assert_eq!(of_machine(&gone, &gone, None), []);
}

fn deployment(list: &[(&str, &str, &str, &str)]) -> MachineDeployment {
    let mut object = MachineDeployment::new("md", Default::default());
    let status = json!({ "conditions": conditions(list) });
    object.status = Some(serde_json::from_value(status).unwrap());
    object
}

#[test]
fn a_rollout_begins_is_blocked_and_ends() {
    let waits = "Rolling out 1 not up-to-date replicas\n* Version v1, v2 required\nThe roll-out is blocked \
        because:\n* Waiting for KubeadmControlPlane cp, which is being upgraded from v1 to v2";
    let newer = "Rolling out 1 not up-to-date replicas\n* Version v1, v3 required\nThe roll-out is blocked \
        because:\n* Version v3 is newer than that of KubeadmControlPlane cp, v2";
    let rests = deployment(&[("RollingOut", "False", "NotRollingOut", "")]);
    let rolls = deployment(&[(
        "RollingOut",
        "True",
        "RollingOut",
        "Rolling out 1 not up-to-date replicas",
    )]);
    let waiting = deployment(&[("RollingOut", "True", "RollingOut", waits)]);
    let blocked = deployment(&[("RollingOut", "True", "RollingOut", newer)]);
    assert_eq!(reasons(&of_deployment(&rests, &rolls)), ["RolloutStarted"]);
    let news = of_deployment(&rolls, &waiting);
    assert_eq!(reasons(&news), ["RolloutBlocked"]);
    assert_eq!(news[0].type_, events::Type::Normal);
    let news = of_deployment(&rolls, &blocked);
    assert_eq!(news[0].type_, events::Type::Warning);
    assert_eq!(
        news[0].note,
        "Version v3 is newer than that of KubeadmControlPlane cp, v2"
    );
    assert_eq!(of_deployment(&blocked, &blocked), []);
    assert_eq!(
        reasons(&of_deployment(&rolls, &rests)),
        ["RolloutCompleted"]
    );
}
