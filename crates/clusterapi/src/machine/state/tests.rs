use std::sync::Arc;

use api::core::v1beta2::{Cluster, ContractReference, MachineSpec};
use api::k8s_openapi::api::core::v1::{NodeCondition, NodeSpec, NodeStatus};
use api::kube::api::{DynamicObject, TypeMeta};
use serde_json::{Value, json};

use super::*;
use crate::external::Contract;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn machine() -> Machine {
    let mut spec = MachineSpec {
        cluster_name: "demo".to_owned(),
        ..MachineSpec::default()
    };
    spec.bootstrap.config_ref = Some(ContractReference::new("b", "KubeadmConfig", "m"));
    spec.infrastructure_ref = ContractReference::new("i", "OpenStackMachine", "m");
    Machine::new("m", spec)
}

fn there(kind: &str, data: Value) -> Referenced {
    let types = TypeMeta {
        api_version: "g/v1".to_owned(),
        kind: kind.to_owned(),
    };
    let object = DynamicObject {
        types: Some(types),
        metadata: Default::default(),
        data,
    };
    Referenced::There(Arc::new(object), Contract::V1Beta2)
}

fn facts(bootstrap: Referenced, infrastructure: Referenced, node: Seen) -> Facts {
    let cluster = Arc::new(Cluster::new("demo", Default::default()));
    Facts {
        cluster,
        bootstrap,
        infrastructure,
        node,
    }
}

fn booted() -> Referenced {
    let data = json!({ "status": {
        "dataSecretName": "m", "initialization": { "dataSecretCreated": true },
    }});
    there("KubeadmConfig", data)
}

fn built(ready: &str) -> Referenced {
    let data = json!({
        "spec": { "providerID": "openstack:///1" },
        "status": {
            "failureDomain": "nova", "initialization": { "provisioned": true },
            "addresses": [{ "type": "InternalIP", "address": "10.0.0.4" }, { "type": "Odd" }],
            "conditions": [
                { "type": "Ready", "status": ready, "reason": "Seen", "message": "as seen" },
            ],
        },
    });
    there("OpenStackMachine", data)
}

fn node(ready: &str) -> Seen {
    let condition = NodeCondition {
        type_: "Ready".to_owned(),
        status: ready.to_owned(),
        message: Some("kubelet says so".to_owned()),
        ..NodeCondition::default()
    };
    let mut node = Node {
        spec: Some(NodeSpec::default()),
        status: Some(NodeStatus {
            conditions: Some(vec![condition]),
            ..NodeStatus::default()
        }),
        ..Node::default()
    };
    node.metadata.name = Some("m-node".to_owned());
    Seen::Found(Arc::new(node))
}

fn verdict(machine: &Machine, type_: &str) -> (String, String, String) {
    let found = conditions::find(machine.conditions(), type_).unwrap();
    (
        found.status.clone(),
        found.reason.clone(),
        found.message.clone(),
    )
}

fn now_phase(machine: &Machine) -> MachinePhase {
    machine.status.as_ref().unwrap().phase.unwrap()
}

#[test]
fn a_machine_climbs_the_ladder_of_phases() {
    let waiting = || there("OpenStackMachine", json!({}));
    let first = desired(
        &machine(),
        &facts(Referenced::Missing, waiting(), Seen::NotLooked),
        at(1),
    );
    assert_eq!(now_phase(&first), MachinePhase::Pending);
    let second = desired(&first, &facts(booted(), waiting(), Seen::NotLooked), at(2));
    assert_eq!(now_phase(&second), MachinePhase::Provisioning);
    assert_eq!(second.spec.bootstrap.data_secret_name.as_deref(), Some("m"));
    let third = desired(
        &second,
        &facts(booted(), built("True"), Seen::Absent),
        at(3),
    );
    assert_eq!(now_phase(&third), MachinePhase::Provisioned);
    assert_eq!(third.spec.provider_id.as_deref(), Some("openstack:///1"));
    let (status, _, message) = verdict(&third, "NodeHealthy");
    assert_eq!(status, "Unknown");
    assert_eq!(
        message,
        "Waiting for the node to join the cluster (spec.providerID openstack:///1)"
    );
    let fourth = desired(&third, &facts(booted(), built("True"), node("True")), at(4));
    assert_eq!(now_phase(&fourth), MachinePhase::Running);
    assert_eq!(fourth.node_name(), Some("m-node"));
    assert_eq!(verdict(&fourth, "Ready").0, "True");
    assert_eq!(verdict(&fourth, "Available").0, "True");
    let status = fourth.status.clone().unwrap();
    assert_eq!(status.failure_domain.as_deref(), Some("nova"));
    assert_eq!(
        status.addresses.unwrap().len(),
        1,
        "unknown types of addresses are left out"
    );
    assert_eq!(status.last_updated, Some(Time(at(4))));
    let again = desired(
        &fourth,
        &facts(booted(), built("True"), node("True")),
        at(5),
    );
    assert_eq!(again, fourth, "nothing changes while nothing happens");
}

#[test]
fn the_words_of_the_infrastructure_are_passed_on() {
    let after = desired(
        &machine(),
        &facts(booted(), built("False"), Seen::Absent),
        at(1),
    );
    let expected = ("False".to_owned(), "Seen".to_owned(), "As seen".to_owned());
    assert_eq!(verdict(&after, "InfrastructureReady"), expected);
    assert!(
        verdict(&after, "Ready")
            .2
            .contains("* InfrastructureReady: As seen")
    );
}

#[test]
fn steps_once_done_are_never_taken_back() {
    let done = desired(
        &machine(),
        &facts(booted(), built("True"), node("True")),
        at(1),
    );
    let gone = facts(Referenced::Missing, Referenced::Missing, Seen::Absent);
    let after = desired(&done, &gone, at(2));
    assert!(after.infrastructure_provisioned() && after.bootstrap_ready());
    assert_eq!(verdict(&after, "InfrastructureReady").1, "Deleted");
    assert_eq!(verdict(&after, "NodeHealthy").1, "NodeDeleted");
    assert_eq!(verdict(&after, "BootstrapConfigReady").0, "True");
}

#[test]
fn a_provisioned_machine_without_identity_is_not_provisioned() {
    let data = json!({ "status": { "initialization": { "provisioned": true } } });
    let seen = facts(booted(), there("OpenStackMachine", data), Seen::NotLooked);
    let after = desired(&machine(), &seen, at(1));
    assert!(!after.infrastructure_provisioned());
    assert!(
        verdict(&after, "InfrastructureReady")
            .2
            .contains("no spec.providerID")
    );
}

#[test]
fn a_silent_cluster_is_believed_for_five_minutes() {
    let done = desired(
        &machine(),
        &facts(booted(), built("True"), node("True")),
        at(0),
    );
    let silent = || {
        let health = Health {
            last_success: Some(at(0)),
            problem: Some("no answer".to_owned()),
            ..Health::default()
        };
        facts(booted(), built("True"), Seen::Unreachable(health))
    };
    let soon = desired(&done, &silent(), at(299));
    assert_eq!(verdict(&soon, "NodeHealthy").0, "True");
    let later = desired(&done, &silent(), at(301));
    assert_eq!(verdict(&later, "NodeHealthy").1, "ConnectionDown");
    assert_eq!(verdict(&later, "Ready").0, "Unknown");
}

#[test]
fn a_connection_that_is_being_established_changes_no_condition() {
    let connecting = || {
        let mut seen = facts(
            booted(),
            built("True"),
            Seen::Unreachable(Health::default()),
        );
        let mut cluster = Cluster::clone(&seen.cluster);
        cluster.spec.control_plane_endpoint =
            Some(serde_json::from_value(json!({"host": "203.0.113.5", "port": 6443})).unwrap());
        let status = json!({"initialization": {"infrastructureProvisioned": true}});
        cluster.status = Some(serde_json::from_value(status).unwrap());
        seen.cluster = Arc::new(cluster);
        seen
    };
    for seen in [node("True"), node("False"), Seen::Absent] {
        let before = desired(&machine(), &facts(booted(), built("True"), seen), at(0));
        assert_eq!(desired(&before, &connecting(), at(9)).status, before.status);
    }
    let fresh = desired(&machine(), &connecting(), at(0));
    assert_eq!(verdict(&fresh, "NodeHealthy").0, "Unknown");
}

#[test]
fn a_machine_is_available_after_it_has_been_ready_for_long_enough() {
    let mut machine = machine();
    machine.spec.min_ready_seconds = Some(30);
    let seen = || facts(booted(), built("True"), node("True"));
    let ready = desired(&machine, &seen(), at(100));
    assert_eq!(verdict(&ready, "Available").1, "WaitingForMinReadySeconds");
    assert_eq!(look_again(&ready, at(110)), Some(Duration::from_secs(20)));
    let available = desired(&ready, &seen(), at(130));
    assert_eq!(verdict(&available, "Available").0, "True");
}

#[test]
fn two_nodes_of_one_identity_are_told_apart_by_nobody() {
    let both = Seen::Ambiguous(vec!["a".to_owned(), "b".to_owned()]);
    let after = desired(&machine(), &facts(booted(), built("True"), both), at(1));
    assert_eq!(after.node_name(), None);
    assert!(verdict(&after, "NodeHealthy").2.contains("a, b"));
}

#[test]
fn a_node_that_is_not_ready_makes_the_machine_unready() {
    let after = desired(
        &machine(),
        &facts(booted(), built("True"), node("False")),
        at(1),
    );
    assert_eq!(verdict(&after, "NodeReady").1, "NodeNotReady");
    assert_eq!(
        verdict(&after, "NodeHealthy").2,
        "* Node.Ready: kubelet says so"
    );
    assert_eq!(verdict(&after, "Ready").0, "False");
}
