use serde_json::json;

use super::*;
use crate::readiness::cause::tests::{condition, of_demo};
use crate::snapshot::Kind;
use crate::snapshot::tests::{item, other};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";

fn now() -> Timestamp {
    "2026-01-01T00:00:40Z".parse().unwrap()
}

fn commands() -> Commands<'static> {
    Commands {
        program: "ferrostack",
        flags: "",
        kubectl: "",
    }
}

/// An object of the cluster `demo`; `more` is merged into it.
fn object(
    kind: Kind,
    name: &str,
    owner: &str,
    conditions: serde_json::Value,
    spec: serde_json::Value,
) -> Item {
    of_demo(
        kind,
        name,
        owner,
        json!({"spec": spec, "status": {"conditions": conditions}}),
    )
}

fn reference(group: &str, kind: &str, name: &str) -> serde_json::Value {
    json!({"apiGroup": group, "kind": kind, "name": name})
}

fn demo_cluster(conditions: serde_json::Value) -> Item {
    let spec = json!({
        "infrastructureRef": reference(INFRASTRUCTURE, "OpenStackCluster", "demo"),
        "controlPlaneRef": reference("controlplane.cluster.x-k8s.io", "KubeadmControlPlane", "demo-cp"),
    });
    object(Kind::Cluster, "demo", "", conditions, spec)
}

/// A machine of `owner` whose infrastructure has the condition InstanceReady with `reason` and `message`.
fn machine(name: &str, owner: &str, reason: &str, message: &str) -> [Item; 2] {
    let is = if reason == "Ready" { "True" } else { "False" };
    let spec = json!({
        "infrastructureRef": reference(INFRASTRUCTURE, "OpenStackMachine", name),
    });
    let mirrored = json!([
        condition("BootstrapConfigReady", "True", "Ready", ""),
        condition(
            "InfrastructureReady",
            is,
            reason,
            &format!("InstanceReady: {message}")
        ),
        condition("Ready", is, "NotReady", ""),
    ]);
    let conditions = json!([
        condition("InstanceReady", is, reason, message),
        condition("Ready", is, reason, &format!("InstanceReady: {message}")),
    ]);
    [
        object(Kind::Machine, name, owner, mirrored, spec),
        object(Kind::OpenStackMachine, name, name, conditions, json!({})),
    ]
}

const QUOTA: &str = "Quota exceeded for instances: Requested 1, but already used 4 of 4 instances";

/// A cluster whose last worker is refused by a quota.
fn refused() -> Snapshot {
    let ready = || json!([condition("Ready", "True", "Ready", "")]);
    let mut items = vec![
        demo_cluster(json!([
            condition("InfrastructureReady", "True", "Ready", ""),
            condition("ControlPlaneInitialized", "True", "Initialized", ""),
            condition(
                "Available",
                "False",
                "NotAvailable",
                "* WorkersAvailable: 0 available"
            ),
        ])),
        object(Kind::OpenStackCluster, "demo", "demo", ready(), json!({})),
        object(
            Kind::KubeadmControlPlane,
            "demo-cp",
            "demo",
            json!([condition("Available", "True", "Available", "")]),
            json!({}),
        ),
        object(
            Kind::MachineDeployment,
            "md",
            "demo",
            json!([condition(
                "Available",
                "False",
                "NotAvailable",
                "0 of 2 replicas"
            )]),
            json!({"replicas": 2}),
        ),
        object(
            Kind::MachineSet,
            "set",
            "md",
            json!([condition(
                "MachinesReady",
                "False",
                "NotReady",
                "* Machine w-a"
            )]),
            json!({}),
        ),
    ];
    items.extend(machine("w-a", "set", "InstanceCreateFailed", QUOTA));
    items.extend(machine("w-b", "set", "InstanceCreateFailed", QUOTA));
    Snapshot::from(items)
}

fn asked(snapshot: &Snapshot, label: &str) -> Answer {
    let item = snapshot.items.iter().find(|it| it.label() == label);
    answer(snapshot, item.unwrap(), &commands())
}

fn labels(answer: &Answer) -> Vec<&str> {
    answer.chain.iter().map(|it| it.object.as_str()).collect()
}

#[test]
fn a_chain_leads_from_the_cluster_to_the_words_of_the_cloud() {
    insta::assert_snapshot!(text(&asked(&refused(), "Cluster/demo"), now()), @"
    Cluster/demo waits for OpenStackMachine/w-a, which fails since 40 s: Quota exceeded for instances: Requested 1, but already used 4 of 4 instances
        Cluster/demo                  Available: False            NotAvailable          40s
        └─MachineDeployment/md        Available: False            NotAvailable          40s
          └─MachineSet/set            MachinesReady: False        NotReady              40s
            └─Machine/w-a             InfrastructureReady: False  InstanceCreateFailed  40s
              └─OpenStackMachine/w-a  InstanceReady: False        InstanceCreateFailed  40s
        1 other Machine is not ready for the same reason
    next: raise the quota of the project (`openstack quota set`), or free some of it; it is then tried again by itself
    ");
}

#[test]
fn programs_read_the_same_chain() {
    let answer = serde_json::to_value(asked(&refused(), "Machine/w-b")).unwrap();
    assert_eq!(answer["ready"], false);
    assert_eq!(answer["chain"][1]["object"], "OpenStackMachine/w-b");
    assert_eq!(answer["chain"][1]["reason"], "InstanceCreateFailed");
    assert_eq!(answer["cause"]["of"], "OpenStackMachine/w-b");
    assert_eq!(answer["cause"]["failing"], true);
    assert_eq!(answer["others"], 1);
}

#[test]
fn an_object_that_is_ready_waits_for_nothing() {
    let answer = asked(&refused(), "OpenStackCluster/demo");
    assert!(answer.ready && answer.chain.is_empty());
    assert_eq!(text(&answer, now()), "OpenStackCluster/demo is ready\n");
}

/// A worker without bootstrap data, as the control plane has no Node.
fn joining() -> Snapshot {
    let mut items = vec![
        demo_cluster(json!([
            condition("InfrastructureReady", "True", "Ready", ""),
            condition(
                "ControlPlaneInitialized",
                "False",
                "NotInitialized",
                "no node"
            ),
            condition("Available", "False", "NotAvailable", ""),
        ])),
        object(
            Kind::KubeadmControlPlane,
            "demo-cp",
            "demo",
            json!([
                condition("Initialized", "False", "NotInitialized", ""),
                condition("Available", "False", "NotAvailable", "")
            ]),
            json!({}),
        ),
    ];
    items.extend(machine(
        "cp-a",
        "demo-cp",
        "InstanceNotReady",
        "server is BUILD",
    ));
    let spec = json!({
        "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io", "KubeadmConfig", "w")},
        "infrastructureRef": reference(INFRASTRUCTURE, "OpenStackMachine", "w"),
    });
    let waits = json!([
        condition("BootstrapConfigReady", "False", "NotReady", ""),
        condition(
            "InfrastructureReady",
            "False",
            "WaitingForBootstrapData",
            ""
        ),
        condition("Ready", "False", "NotReady", ""),
    ]);
    items.push(object(Kind::Machine, "w", "set", waits, spec));
    let config = json!({
        "metadata": {"name": "w", "namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "demo"}},
        "status": {"conditions": [condition("Ready", "False", "NotReady", "waiting")]},
    });
    items.push(other(
        "bootstrap.cluster.x-k8s.io/v1beta2",
        "KubeadmConfig",
        config,
    ));
    let waits = json!([condition(
        "Ready",
        "False",
        "WaitingForBootstrapData",
        "waiting"
    )]);
    items.push(object(Kind::OpenStackMachine, "w", "w", waits, json!({})));
    Snapshot::from(items)
}

#[test]
fn a_worker_waits_through_its_cluster_for_the_first_control_plane_machine() {
    let snapshot = joining();
    let answer = asked(&snapshot, "OpenStackMachine/w");
    let expected = [
        "OpenStackMachine/w",
        "KubeadmConfig/w",
        "Cluster/demo",
        "KubeadmControlPlane/demo-cp",
        "Machine/cp-a",
        "OpenStackMachine/cp-a",
    ];
    assert_eq!(labels(&answer), expected);
    let cause = answer.cause.unwrap();
    assert!(!cause.failing);
    assert_eq!(cause.detail.as_deref(), Some("server is BUILD"));
    assert!(
        answer
            .next
            .unwrap()
            .starts_with("nothing, it goes on by itself")
    );
    assert_eq!(labels(&asked(&snapshot, "Machine/w"))[1..], expected[1..]);
}

#[test]
fn a_cluster_that_is_paused_is_the_cause_for_all_of_its_objects() {
    let mut snapshot = joining();
    let cluster = std::sync::Arc::make_mut(&mut snapshot.items[0].object);
    cluster.data["spec"]["paused"] = json!(true);
    let answer = asked(&snapshot, "Machine/w");
    assert_eq!(labels(&answer), ["Machine/w", "Cluster/demo"]);
    assert_eq!(answer.cause.unwrap().problem, "is paused");
    assert!(
        answer
            .next
            .unwrap()
            .contains("kubectl -n default patch cluster demo")
    );
}

#[test]
fn what_is_referred_to_and_does_not_exist_is_the_cause() {
    let mut snapshot = joining();
    snapshot
        .items
        .retain(|item| item.kind_name() != "KubeadmConfig");
    let answer = asked(&snapshot, "Machine/w");
    assert_eq!(labels(&answer), ["Machine/w"]);
    let text = text(&answer, now());
    assert!(
        text.starts_with(
            "Machine/w waits for KubeadmConfig/w, which does not exist: Machine/w refers to it\n"
        ),
        "{text}"
    );
}

#[test]
fn objects_of_other_providers_are_links_as_well() {
    let spec = json!({"infrastructureRef": {
        "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": "DockerCluster", "name": "d"}});
    let conditions = json!([
        condition("InfrastructureReady", "False", "NotReady", ""),
        condition("Available", "False", "NotAvailable", ""),
    ]);
    let docker = json!({
        "metadata": {"name": "d", "namespace": "default"},
        "status": {"conditions": [{"type": "LoadBalancerAvailable", "status": "False", "reason": "LoadBalancerProvisioningFailed",
            "message": "no image", "severity": "Error", "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Ready", "status": "False", "reason": "LoadBalancerProvisioningFailed"}]},
    });
    let cluster = item(
        Kind::Cluster,
        json!({"metadata": {"name": "demo", "namespace": "default", "uid": "demo"}, "spec": spec, "status": {"conditions": conditions}}),
    );
    let snapshot = Snapshot::from(vec![
        cluster,
        other(
            "infrastructure.cluster.x-k8s.io/v1beta1",
            "DockerCluster",
            docker,
        ),
    ]);
    let answer = asked(&snapshot, "Cluster/demo");
    assert_eq!(labels(&answer), ["Cluster/demo", "DockerCluster/d"]);
    assert_eq!(answer.cause.unwrap().detail.as_deref(), Some("no image"));
}

#[test]
fn what_is_being_deleted_names_what_it_waits_for() {
    let mut snapshot = refused();
    for item in &mut snapshot.items {
        if ["demo", "w-a"].contains(&item.name()) {
            let object = std::sync::Arc::make_mut(&mut item.object);
            object.metadata.deletion_timestamp =
                serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
            object.metadata.finalizers = Some(vec!["example.org/keep".to_owned()]);
        }
    }
    let answer = asked(&snapshot, "Cluster/demo");
    assert_eq!(
        labels(&answer),
        ["Cluster/demo", "Machine/w-a", "OpenStackMachine/w-a"]
    );
    let cause = answer.cause.unwrap();
    assert_eq!(cause.problem, "is being deleted");
    assert_eq!(
        cause.detail.as_deref(),
        Some("its finalizers are example.org/keep")
    );
}

#[test]
fn a_lost_quorum_is_the_cause_for_the_machines_that_are_lost_with_the_steps_that_are_next() {
    let message = "etcd has lost its quorum: 1 of 3 voting members answers, and 2 are needed; no machine is created or deleted meanwhile\n\
        * Machine cp-a works\n\
        * Machine cp-b is lost: it does not answer: no answer within 5 s\n\
        If enough of them come back, nothing has to be done. If they are gone for good (docs/recovery.md):\n\
        1. restart the etcd of Machine cp-a alone, with --force-new-cluster, or restore a snapshot there\n\
        2. have the others deleted and replaced: kubectl annotate --overwrite kubeadmcontrolplane demo-cp ferrostack.dev/etcd-survivor=cp-a";
    let plane = |reason: &str| {
        let conditions = json!([
            condition(
                "ControlPlaneComponentsHealthy",
                "Unknown",
                "HealthUnknown",
                ""
            ),
            condition("EtcdRecovered", "False", reason, message),
            condition("Available", "False", "NotAvailable", "* etcd: lost"),
        ]);
        let spec = json!({"replicas": 3});
        object(
            Kind::KubeadmControlPlane,
            "demo-cp",
            "demo",
            conditions,
            spec,
        )
    };
    let snapshot = |reason: &str| {
        let mut items = vec![
            demo_cluster(json!([
                condition("InfrastructureReady", "True", "Ready", ""),
                condition("ControlPlaneInitialized", "True", "Initialized", ""),
                condition("Available", "False", "NotAvailable", ""),
            ])),
            plane(reason),
        ];
        items.extend(machine("cp-b", "demo-cp", "InstanceDeleted", "deleted"));
        Snapshot::from(items)
    };
    let answer = asked(&snapshot("QuorumLost"), "Cluster/demo");
    assert_eq!(
        labels(&answer),
        ["Cluster/demo", "KubeadmControlPlane/demo-cp"]
    );
    let text = text(&answer, now());
    let first = "Cluster/demo waits for KubeadmControlPlane/demo-cp, which fails since 40 s: etcd has lost its quorum: 1 of 3";
    assert!(text.starts_with(first), "{text}");
    let next = "next: if the lost machines are gone for good, restart the etcd of Machine cp-a alone, with --force-new-cluster, \
        or restore a snapshot there; then have the others deleted and replaced: kubectl -n default annotate --overwrite \
        kubeadmcontrolplane demo-cp ferrostack.dev/etcd-survivor=cp-a\n";
    assert!(text.ends_with(next), "{text}");
    // The machines that are deleted then are what is waited for.
    let answer = asked(
        &snapshot("DeletingLostMachines"),
        "KubeadmControlPlane/demo-cp",
    );
    assert!(labels(&answer).contains(&"Machine/cp-b"), "{answer:?}");
}
