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
    insta::assert_snapshot!(text(&asked(&refused(), "Cluster/demo"), now(), Layout::Full), @"
    Cluster/demo waits for OpenStackMachine/w-a, which has been failing for 40 s: Quota exceeded for instances: Requested 1, but already used 4 of 4 instances
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
    assert_eq!(
        text(&answer, now(), Layout::Full),
        "OpenStackCluster/demo is ready\n"
    );
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
    let text = text(&answer, now(), Layout::Full);
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
fn a_control_plane_whose_nodes_have_no_address_lacks_a_cloud_controller_manager() {
    let lookup = "port 2379 of Pod kube-system/etcd-cp-a cannot be forwarded: error dialing backend: dial tcp: lookup cp-a: no such host";
    let blocked = "Machine cp-a is not healthy: EtcdMemberHealthy";
    let snapshot = Snapshot::from(vec![
        demo_cluster(json!([
            condition("InfrastructureReady", "True", "Ready", ""),
            condition("ControlPlaneInitialized", "True", "Initialized", ""),
            condition("Available", "False", "NotAvailable", ""),
        ])),
        object(
            Kind::KubeadmControlPlane,
            "demo-cp",
            "demo",
            json!([
                condition("EtcdClusterHealthy", "Unknown", "HealthUnknown", blocked),
                condition("Available", "False", "NotAvailable", ""),
            ]),
            json!({"replicas": 3}),
        ),
        object(
            Kind::Machine,
            "cp-a",
            "demo-cp",
            json!([condition(
                "EtcdMemberHealthy",
                "Unknown",
                "InspectionFailed",
                lookup
            )]),
            json!({}),
        ),
    ]);
    let next = asked(&snapshot, "Cluster/demo").next.unwrap();
    assert!(next.contains("up --cloud NAME --install-ccm"), "{next}");
}

#[test]
fn a_lost_quorum_is_the_cause_for_the_machines_that_are_lost_with_the_steps_that_are_next() {
    let message = "etcd has lost its quorum: 1 of 3 voting members answers, and 2 are needed; no machine is created or deleted meanwhile\n\
        * Machine cp-a works\n\
        * Machine cp-b is lost: it does not answer: no answer within 5 s\n\
        If enough of them come back, nothing has to be done. If they are gone for good (ferrostack docs recovery):\n\
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
    let text = text(&answer, now(), Layout::Full);
    let first = "Cluster/demo waits for KubeadmControlPlane/demo-cp, which has been failing for 40 s: etcd has lost its quorum: 1 of 3";
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

const SKEW: &str = "Version v1.35.0 is newer than that of KubeadmControlPlane demo-cp, v1.34.0: upgrade KubeadmControlPlane demo-cp first";

/// A worker that has failed its health check, whose MachineSet may not create another one.
fn unreplaced(remediation: &str, message: &str) -> Snapshot {
    let mut snapshot = refused();
    let mut items: Vec<Item> = snapshot.items.iter().cloned().collect();
    for item in &mut items {
        let object = std::sync::Arc::make_mut(&mut item.object);
        match item.kind {
            Kind::MachineSet => {
                let blocked =
                    format!("Scaling up from 1 to 2 replicas is blocked because:\n* {SKEW}");
                object.data["status"]["conditions"] = json!([
                    condition("MachinesReady", "False", "NotReady", "* Machine w-a"),
                    condition("ScalingUp", "True", "ScalingUp", &blocked),
                ]);
            }
            Kind::Machine => {
                object.data["status"]["conditions"] = json!([
                    condition(
                        "HealthCheckSucceeded",
                        "False",
                        "UnhealthyNode",
                        "Condition Ready on Node is reporting status False"
                    ),
                    condition(
                        "InfrastructureReady",
                        "False",
                        "InstanceDeleted",
                        "InstanceReady: server was deleted"
                    ),
                    condition("OwnerRemediated", "False", remediation, message),
                    condition("Ready", "False", "NotReady", ""),
                ]);
            }
            _ => {}
        }
    }
    snapshot.items = items.into();
    snapshot
}

#[test]
fn the_preflight_check_that_holds_a_health_check_back_is_the_cause() {
    let snapshot = unreplaced("WaitingForRemediation", "Waiting for remediation");
    for asked_about in ["Machine/w-a", "Cluster/demo", "MachineDeployment/md"] {
        let answer = asked(&snapshot, asked_about);
        assert_eq!(
            labels(&answer).last(),
            Some(&"MachineSet/set"),
            "{answer:?}"
        );
        let cause = answer.cause.unwrap();
        assert!(cause.failing);
        let detail = cause.detail.unwrap();
        assert!(
            detail.contains("v1.35.0 is newer than that of KubeadmControlPlane demo-cp"),
            "{detail}"
        );
        let next = answer.next.unwrap();
        assert!(
            next.starts_with("the preflight check KubernetesVersionSkew of the MachineSet fails"),
            "{next}"
        );
        let skip = "annotate machineset set machineset.cluster.x-k8s.io/skip-preflight-checks=KubernetesVersionSkew";
        assert!(
            next.ends_with(skip) && !next.contains("delete machine"),
            "{next}"
        );
    }
    let row = crate::tree::of_cluster(
        &snapshot,
        &snapshot.items[0],
        crate::tree::Selection::default(),
    );
    let text = serde_json::to_string(&row).unwrap();
    let expected = "failed its health check (condition Ready on Node is reporting status False), and is not replaced: blocked: version v1.35.0 is newer";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn a_machine_that_says_why_it_is_not_replaced_is_the_cause_itself() {
    let snapshot = unreplaced("RemediationDeferred", SKEW);
    let answer = asked(&snapshot, "Machine/w-a");
    assert_eq!(labels(&answer), ["Machine/w-a"]);
    assert_eq!(answer.chain[0].condition, "OwnerRemediated");
    let next = answer.next.unwrap();
    assert!(
        next.contains("annotate machineset set ") && next.contains("=KubernetesVersionSkew"),
        "{next}"
    );
}

#[test]
fn a_machine_that_is_being_replaced_needs_nobody() {
    let mut snapshot = unreplaced("WaitingForRemediation", "Waiting for remediation");
    snapshot.items = snapshot
        .items
        .iter()
        .filter(|it| it.kind != Kind::MachineSet)
        .cloned()
        .collect::<Vec<_>>()
        .into();
    let answer = asked(&snapshot, "Machine/w-a");
    let cause = answer.cause.unwrap();
    assert!(!cause.failing, "{cause:?}");
    assert_eq!(
        cause.detail.as_deref(),
        Some("failed its health check, and is being replaced")
    );
    assert!(
        answer
            .next
            .unwrap()
            .starts_with("nothing, it goes on by itself")
    );
}

#[test]
fn the_chain_fits_into_a_narrow_terminal() {
    let answer = asked(&refused(), "Cluster/demo");
    let chain = |width| {
        let text = text(&answer, now(), Layout::Terminal(width));
        let rows = text.lines().filter(|line| line.starts_with("    "));
        rows.map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(chain(160)[0].ends_with(" 40s"), "{:?}", chain(160));
    let narrow = chain(60);
    assert!(
        narrow.iter().all(|row| row.chars().count() <= 60),
        "{narrow:?}"
    );
    assert!(
        narrow
            .iter()
            .any(|row| row.contains("OpenStackMachine/w-a")),
        "{narrow:?}"
    );
}

#[test]
fn a_paused_rollout_shows_on_a_machine_deployment_that_is_available() {
    let deployment = json!({
        "metadata": {"name": "md", "namespace": "default", "uid": "md"}, "spec": {"paused": true, "replicas": 0},
        "status": {"conditions": [condition("Available", "True", "Available", "")]},
    });
    let snapshot = Snapshot::from(vec![item(Kind::MachineDeployment, deployment)]);
    let answer = asked(&snapshot, "MachineDeployment/md");
    assert_eq!(answer.cause.unwrap().problem, "is paused");
    let next = answer.next.unwrap();
    let resume = "kubectl -n default patch machinedeployment md --type merge -p '{\"spec\":{\"paused\":false}}'";
    assert!(next.contains(resume), "{next}");
}

#[test]
fn a_pause_shows_on_a_cluster_that_is_ready_with_what_ends_it() {
    for (pause, words, resume) in [
        (
            json!({"spec": {"paused": true}}),
            "paused by spec.paused: set it to false to resume",
            "kubectl -n default patch cluster demo --type merge -p",
        ),
        (
            json!({"metadata": {"annotations": {"cluster.x-k8s.io/paused": ""}}}),
            "paused by the annotation cluster.x-k8s.io/paused: remove it to resume",
            "kubectl -n default annotate cluster demo cluster.x-k8s.io/paused-",
        ),
    ] {
        let mut cluster = json!({
            "metadata": {"name": "demo", "namespace": "default", "uid": "demo"},
            "status": {"conditions": [condition("Available", "True", "Available", "")]},
        });
        let mut ready = cluster.clone();
        for (field, value) in pause.as_object().unwrap() {
            for (name, value) in value.as_object().unwrap() {
                cluster[field][name] = value.clone();
            }
        }
        let snapshot = Snapshot::from(vec![item(Kind::Cluster, cluster)]);
        let answer = asked(&snapshot, "Cluster/demo");
        assert!(!answer.ready);
        assert_eq!(answer.cause.unwrap().problem, "is paused");
        let next = answer.next.unwrap();
        assert!(next.contains(resume), "{next}");
        let tree = crate::tree::of_cluster(
            &snapshot,
            &snapshot.items[0],
            crate::tree::Selection::default(),
        );
        assert_eq!(tree.message, words);
        assert!(!tree.is_ready());
        // The control: without the pause it is ready.
        ready["spec"] = json!({});
        let snapshot = Snapshot::from(vec![item(Kind::Cluster, ready)]);
        assert!(asked(&snapshot, "Cluster/demo").ready);
    }
}

#[test]
fn an_api_server_inside_of_the_cloud_is_the_cause_for_all_that_waits_for_it() {
    let snapshot = crate::readiness::reach::tests::silent();
    for (label, chain) in [
        ("Cluster/demo", &["Cluster/demo"][..]),
        (
            "KubeadmControlPlane/cp",
            &["KubeadmControlPlane/cp", "Machine/cp-a", "Cluster/demo"],
        ),
        ("Machine/cp-a", &["Machine/cp-a", "Cluster/demo"]),
    ] {
        let answer = asked(&snapshot, label);
        assert_eq!(labels(&answer), chain);
        let cause = answer.cause.unwrap();
        assert!(cause.failing && cause.detail.unwrap().contains("10.6.0.4"));
        let next = answer.next.unwrap();
        assert!(next.starts_with("have a floating IP"), "{next}");
    }
}

#[test]
fn a_bastion_that_is_not_created_shows_although_all_else_is_ready() {
    let mut snapshot = refused();
    let mut items: Vec<Item> = snapshot
        .items
        .iter()
        .filter(|it| [Kind::Cluster, Kind::OpenStackCluster].contains(&it.kind))
        .cloned()
        .collect();
    for item in &mut items {
        let object = std::sync::Arc::make_mut(&mut item.object);
        object.data["status"]["conditions"] = match item.kind {
            Kind::Cluster => json!([
                condition("InfrastructureReady", "True", "Ready", ""),
                condition("ControlPlaneInitialized", "True", "Initialized", ""),
                condition("Available", "True", "Available", "")
            ]),
            _ => json!([
                condition(
                    "BastionReady",
                    "False",
                    "DependencyFailed",
                    "bastion.spec.flavor: flavor m1.huge does not exist"
                ),
                condition("Ready", "True", "Ready", "")
            ]),
        };
    }
    snapshot.items = items.into();
    let answer = asked(&snapshot, "Cluster/demo");
    assert_eq!(labels(&answer), ["Cluster/demo", "OpenStackCluster/demo"]);
    assert!(
        answer
            .next
            .unwrap()
            .contains("another in the spec of OpenStackCluster/demo")
    );
    let tree = crate::tree::of_cluster(
        &snapshot,
        &snapshot.items[0],
        crate::tree::Selection::default(),
    );
    assert!(
        tree.children[0]
            .message
            .contains("flavor m1.huge does not exist"),
        "{tree:?}"
    );
}
