mod page;

use api::conditions::Reason;
use serde_json::json;

use super::*;
use crate::readiness::cause::is_failure;
use crate::readiness::cause::tests::{condition, of_demo};

fn next_for(reason: &str, message: &str) -> String {
    let status = |conditions: serde_json::Value| json!({"status": {"conditions": conditions}});
    let mut machine = json!({"spec": {"infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io",
        "kind": "OpenStackMachine", "name": "m"}, "providerID": "openstack:///4f1e"}});
    machine["status"] = status(json!([condition(
        "InfrastructureReady",
        "False",
        reason,
        message
    )]))["status"]
        .clone();
    let snapshot = Snapshot::from(vec![
        of_demo(Kind::Cluster, "demo", "", json!({})),
        of_demo(Kind::MachineSet, "set", "md", json!({})),
        of_demo(Kind::Machine, "m", "set", machine),
        of_demo(
            Kind::OpenStackMachine,
            "m",
            "m",
            status(json!([
                condition("InstanceReady", "False", reason, message),
                condition("Ready", "False", reason, message)
            ])),
        ),
    ]);
    let chain = Chain::new(&snapshot, &snapshot.items[3]).unwrap();
    let commands = Commands {
        program: "ferrostack",
        flags: " --data-dir d",
        kubectl: " --kubeconfig d/kubeconfig",
    };
    next(&snapshot, &chain, &chain.finding(), &commands)
}

#[test]
fn the_next_step_follows_from_the_words_of_the_cloud_and_the_reason() {
    let delete = "kubectl --kubeconfig d/kubeconfig -n default delete machine m";
    for (reason, message, expected) in [
        (
            "InstanceCreateFailed",
            "Quota exceeded for instances",
            "raise the quota",
        ),
        ("InstanceStateError", "No valid host was found.", delete),
        (
            "InstanceDeleted",
            "server x was deleted by somebody else",
            delete,
        ),
        (
            "BootstrapFailed",
            "kubeadm: x",
            "openstack console log show 4f1e",
        ),
        ("InvalidMachineSpec", "spec.ports: x", "name it in X/set"),
        (
            "OpenStackAuthenticationFailed",
            "401",
            "correct the credentials",
        ),
        ("OpenStackError", "503", "openstack catalog list"),
        (
            "IdentityShared",
            "OpenStackMachine a/m and OpenStackMachine b/m have the same identity",
            "patch openstackmachine m --type merge -p '{\"metadata\":{\"finalizers\":null}}'",
        ),
        ("SomethingFailed", "x", "describe openstackmachine m"),
        (
            "Creating",
            "creating server x",
            "describe cluster --data-dir d -n default demo --watch",
        ),
    ] {
        let advice = next_for(reason, message);
        assert!(advice.contains(expected), "{reason}: {advice}");
    }
}

/// Reasons of conditions that are as they should be, and of a pause, which is no condition's matter.
const GOOD: [Reason; 32] = [
    Reason::Applied,
    Reason::Available,
    Reason::DataSecretProvided,
    Reason::HealthCheckSucceeded,
    Reason::Healthy,
    Reason::Initialized,
    Reason::NoInfrastructure,
    Reason::NoReplicas,
    Reason::NoWorkers,
    Reason::NodeHealthy,
    Reason::NodeReady,
    Reason::NotDeleting,
    Reason::NotPaused,
    Reason::NotRemediating,
    Reason::NotRollingOut,
    Reason::NotScalingDown,
    Reason::NotScalingUp,
    Reason::NotUpdating,
    Reason::OpenStackAuthenticationSucceeded,
    Reason::Paused,
    Reason::ProbeSucceeded,
    Reason::Ready,
    Reason::ReconcileSucceeded,
    Reason::Reconciled,
    Reason::Recovered,
    Reason::RefVersionsUpToDate,
    Reason::RemediationAllowed,
    Reason::Running,
    Reason::Set,
    Reason::Skipped,
    Reason::UpToDate,
    Reason::VariablesReady,
];

/// Every reason that a controller of this program gives to a condition that is not as it should be.
fn all_reasons() -> impl Iterator<Item = Reason> {
    let all = Reason::ALL.iter().copied();
    all.filter(|reason| !GOOD.contains(reason))
}

/// The advice about a reason in a condition of an object of this kind.
fn advice_of(kind: Kind, reason: &str, detail: &str) -> String {
    advice_about("it", "set", kind, reason, detail)
}

/// The advice about an object `name` of the MachineSet `owner`.
fn advice_about(name: &str, owner: &str, kind: Kind, reason: &str, detail: &str) -> String {
    let plane = json!({"status": {"conditions": [
        condition("EtcdRecovered", "False", "QuorumLost", "lost\n1. restart etcd\n2. kubectl annotate x"),
    ]}});
    let snapshot = Snapshot::from(vec![
        of_demo(Kind::Cluster, "demo", "", json!({})),
        of_demo(Kind::MachineSet, owner, "md", json!({})),
        of_demo(kind, name, owner, plane),
    ]);
    let commands = Commands {
        program: "ferrostack",
        flags: "",
        kubectl: "",
    };
    let last = snapshot.items.iter().find(|it| it.name() == name).unwrap();
    let finding = Finding {
        of: last.label(),
        problem: "is not ready",
        since: None,
        detail: Some(detail.to_owned()),
        reason: reason.to_owned(),
        failing: is_failure(reason) || (reason == "RemediationDeferred" && !passes(detail)),
    };
    let case = Case {
        snapshot: &snapshot,
        last,
        finding: &finding,
        commands: &commands,
        namespace: "default",
    };
    case.of_condition()
}

#[test]
fn every_reason_of_our_controllers_has_a_next_step() {
    for reason in all_reasons() {
        for kind in [
            Kind::Cluster,
            Kind::OpenStackCluster,
            Kind::KubeadmControlPlane,
            Kind::Machine,
        ] {
            let advice = advice_of(kind, reason.as_str(), "it is broken");
            assert!(
                !advice.contains("see its events"),
                "{reason} of a {kind:?}: {advice}"
            );
            assert!(!advice.trim().is_empty(), "{reason} of a {kind:?}");
            let is_idle = advice.starts_with("nothing, it goes on by itself");
            let ends =
                reasons::PASSING.contains(&reason) || reason == Reason::WaitingForRemediation;
            assert_eq!(is_idle, ends, "{reason} of a {kind:?}: {advice}");
        }
    }
}

#[test]
fn what_only_sums_up_goes_on_by_itself_when_its_message_waits() {
    for reason in reasons::SUMS {
        let waiting = advice_of(
            Kind::Machine,
            reason.as_str(),
            "Waiting for the Cluster's infrastructure",
        );
        assert!(waiting.starts_with("nothing"), "{reason}: {waiting}");
        let broken = advice_of(Kind::Machine, reason.as_str(), "no such thing");
        assert!(
            broken.contains("--show-conditions Machine/it"),
            "{reason}: {broken}"
        );
    }
}

#[test]
fn what_other_providers_say_leads_to_the_events_of_the_object() {
    let advice = advice_of(Kind::Machine, "VpcProvisioningStarted", "no subnet");
    assert_eq!(
        advice,
        "see its events: kubectl -n default describe machine it"
    );
}

#[test]
fn advice_names_what_the_message_is_about() {
    for (kind, reason, message, expected) in [
        (
            Kind::OpenStackMachine,
            "DependencyFailed",
            "image ubuntu does not exist",
            "openstack image list",
        ),
        (
            Kind::OpenStackMachine,
            "DependencyFailed",
            "flavor m1.x does not exist",
            "openstack flavor list",
        ),
        (
            Kind::OpenStackMachine,
            "DependencyFailed",
            "spec.sshKeyName: key pair k does not exist",
            "openstack keypair list",
        ),
        (
            Kind::OpenStackCluster,
            "DependencyFailed",
            "network n does not exist",
            "another in the spec of OpenStackCluster/it",
        ),
        (
            Kind::OpenStackCluster,
            "APIEndpointConfigFailed",
            "creating load balancer k8s-demo: this takes more than 15 minutes. Ask the cloud's operator",
            "openstack loadbalancer amphora list",
        ),
        (
            Kind::Machine,
            "NodeNotReady",
            "* Node.Ready: container runtime network not ready: cni plugin not initialized",
            "install a network plugin",
        ),
        (
            Kind::Machine,
            "NodeNotHealthy",
            "Node has the taint node.cloudprovider.kubernetes.io/uninitialized",
            "generate cloud-controller-manager",
        ),
        (
            Kind::Machine,
            "NodeDoesNotExist",
            "Waiting for the node to join the cluster (spec.providerID openstack:///4f1e)",
            "openstack console log show",
        ),
        (
            Kind::Machine,
            "NodeDoesNotExist",
            "Waiting for OpenStackMachine to create the machine",
            "nothing, it goes on by itself",
        ),
        (
            Kind::Machine,
            "RemediationDeferred",
            "kubeadm of version v1.34.1 joins only a control plane of the same minor version, and x has v1.33.0",
            "skip-preflight-checks=KubeadmVersionSkew",
        ),
        (
            Kind::Machine,
            "RemediationDeferred",
            "it is the only control plane machine: nothing would be left",
            "--replicas 3",
        ),
        (
            Kind::Machine,
            "RemediationDeferred",
            "Machine b is being provisioned",
            "nothing, it goes on by itself",
        ),
        (
            Kind::Machine,
            "WaitingForPreDrainHook",
            "pre-drain.delete.hook.machine.cluster.x-k8s.io/x",
            "annotate machine it pre-drain.delete.hook.machine.cluster.x-k8s.io/NAME-",
        ),
        (
            Kind::Cluster,
            "ReconcileFailed",
            "variable x is unknown",
            "ferrostack topology plan",
        ),
        (
            Kind::Cluster,
            "MachineDeploymentsUpgradeDeferred",
            "md-0 deferred",
            "defer-upgrade",
        ),
    ] {
        let advice = advice_of(kind, reason, message);
        assert!(advice.contains(expected), "{reason}: {message}: {advice}");
    }
}
