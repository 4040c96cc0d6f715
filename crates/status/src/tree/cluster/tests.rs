use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use super::*;
use crate::snapshot::tests::{item, other};
use crate::tree::{Colors, Layout, table};

const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io/v1beta1";

/// The metadata of an object of the cluster `a`, owned by `owner`.
fn metadata(name: &str, owner: &str) -> Value {
    let mut metadata = json!({"name": name, "namespace": "default", "uid": name,
        "labels": {"cluster.x-k8s.io/cluster-name": "a"}});
    if !owner.is_empty() {
        metadata["ownerReferences"] =
            json!([{"apiVersion": "x/v1", "kind": "X", "name": owner, "uid": owner}]);
    }
    metadata
}

fn reference(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "name": name})
}

fn conditions(type_: &str, status: &str, reason: &str, message: &str) -> Value {
    json!([{"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
}

fn machine(name: &str, owner: &str) -> Item {
    let spec = json!({
        "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachine", name),
        "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfig", name)},
    });
    let status = json!({"nodeRef": {"name": name}, "phase": "Running", "conditions": conditions("Ready", "True", "Ready", "")});
    item(
        Kind::Machine,
        json!({"metadata": metadata(name, owner), "spec": spec, "status": status}),
    )
}

/// A cluster of another provider, with workers of every kind.
fn foreign() -> Snapshot {
    let plane = "controlplane.cluster.x-k8s.io/v1";
    let spec = json!({
        "infrastructureRef": reference(INFRASTRUCTURE, "DockerCluster", "a"),
        "controlPlaneRef": reference(plane, "OtherControlPlane", "a-cp"),
    });
    let ready = |status: &str| json!({"conditions": conditions("Ready", status, "R", "")});
    let template = json!({"template": {"spec": {
        "infrastructureRef": reference(INFRASTRUCTURE, "DockerMachineTemplate", "md"),
        "bootstrap": {"configRef": reference("bootstrap.cluster.x-k8s.io/v1beta2", "KubeadmConfigTemplate", "md")},
    }}, "replicas": 1});
    let mut items = vec![
        item(
            Kind::Cluster,
            json!({"metadata": metadata("a", ""), "spec": spec, "status": {"conditions": conditions("Available", "True", "Available", "")}}),
        ),
        other(
            INFRASTRUCTURE,
            "DockerCluster",
            json!({"metadata": metadata("a", "a"), "status": ready("True")}),
        ),
        other(
            plane,
            "OtherControlPlane",
            json!({"metadata": metadata("a-cp", "a"), "spec": {"replicas": 1}, "status": {"replicas": 1, "conditions": conditions("Ready", "True", "Ready", "")}}),
        ),
        item(
            Kind::MachineDeployment,
            json!({"metadata": metadata("md", "a"), "spec": template}),
        ),
        item(
            Kind::MachineSet,
            json!({"metadata": metadata("md-1", "md"), "spec": {"replicas": 1}}),
        ),
        item(
            Kind::MachineSet,
            json!({"metadata": metadata("alone", "a"), "spec": {"replicas": 1}}),
        ),
        other(
            "cluster.x-k8s.io/v1beta2",
            "MachinePool",
            json!({"metadata": metadata("pool", "a"), "spec": {"replicas": 3}}),
        ),
        machine("cp-1", "a-cp"),
        machine("w-1", "md-1"),
        machine("s-1", "alone"),
        machine("pet", "a"),
        other(
            INFRASTRUCTURE,
            "DockerMachineTemplate",
            json!({"metadata": metadata("md", "a")}),
        ),
        other(
            "bootstrap.cluster.x-k8s.io/v1beta2",
            "KubeadmConfigTemplate",
            json!({"metadata": metadata("md", "a")}),
        ),
        other(
            "addons.cluster.x-k8s.io/v1beta2",
            "ClusterResourceSetBinding",
            json!({"metadata": metadata("a", "a"), "spec": {"bindings": [{"clusterResourceSetName": "cni"}]}}),
        ),
        other(
            "addons.cluster.x-k8s.io/v1beta2",
            "ClusterResourceSet",
            json!({"metadata": metadata("cni", "")}),
        ),
        other(
            "addons.cluster.x-k8s.io/v1beta2",
            "ClusterResourceSet",
            json!({"metadata": metadata("csi", "")}),
        ),
    ];
    for (name, status, message) in [("cp-1", "True", ""), ("w-1", "False", "disk is full")] {
        let reason = if status == "True" {
            "Ready"
        } else {
            "DiskFailed"
        };
        items.push(other(
            INFRASTRUCTURE,
            "DockerMachine",
            json!({"metadata": metadata(name, name), "status": {"conditions": conditions("Ready", status, reason, message)}}),
        ));
        items.push(other(
            "bootstrap.cluster.x-k8s.io/v1beta2",
            "KubeadmConfig",
            json!({"metadata": metadata(name, name), "status": ready("True")}),
        ));
    }
    Snapshot::from(items)
}

/// The names of the tree, with what each waits for.
fn names(selection: Selection) -> String {
    let snapshot = foreign();
    let root = of_cluster(&snapshot, &snapshot.items[0], selection);
    let now: Timestamp = "2026-01-01T00:00:05Z".parse().unwrap();
    let text = table(&[root], now, Layout::Full, Colors::Off);
    let first = |line: &str| line.split("  ").next().unwrap_or_default().to_owned();
    let lines: Vec<String> = text
        .lines()
        .skip(1)
        .map(|line| {
            // Branches have blanks of their own.
            let start = line.find(|c: char| c.is_ascii_alphanumeric()).unwrap();
            format!("{}{}", &line[..start], first(&line[start..]))
        })
        .collect();
    lines.join("\n")
}

#[test]
fn every_worker_is_shown_whatever_the_provider_and_whoever_made_it() {
    insta::assert_snapshot!(names(Selection::default()), @"
    Cluster/a
    ├─ClusterInfrastructure - DockerCluster/a
    ├─ControlPlane - OtherControlPlane/a-cp
    │ └─Machine/cp-1
    └─Workers
      ├─MachineDeployment/md
      │ └─Machine/w-1
      ├─MachinePool/pool
      ├─MachineSet/alone
      │ └─Machine/s-1
      └─Other
        └─Machine/pet
    ");
}

#[test]
fn what_is_asked_for_is_shown_as_well() {
    let selection = Selection {
        machine_sets: true,
        resource_sets: true,
        templates: true,
        parts: Parts::All,
        grouping: true,
    };
    insta::assert_snapshot!(names(selection), @"
    Cluster/a
    ├─ClusterInfrastructure - DockerCluster/a
    ├─ControlPlane - OtherControlPlane/a-cp
    │ └─Machine/cp-1
    │   ├─MachineInfrastructure - DockerMachine/cp-1
    │   └─BootstrapConfig - KubeadmConfig/cp-1
    ├─Workers
    │ ├─MachineDeployment/md
    │ │ ├─MachineInfrastructureTemplate - DockerMachineTemplate/md
    │ │ ├─BootstrapConfigTemplate - KubeadmConfigTemplate/md
    │ │ └─MachineSet/md-1
    │ │   └─Machine/w-1
    │ │     ├─MachineInfrastructure - DockerMachine/w-1
    │ │     └─BootstrapConfig - KubeadmConfig/w-1
    │ ├─MachinePool/pool
    │ ├─MachineSet/alone
    │ │ └─Machine/s-1
    │ └─Other
    │   └─Machine/pet
    └─ClusterResourceSets
      └─ClusterResourceSet/cni
    ");
}

#[test]
fn a_part_of_a_machine_that_tells_more_than_the_machine_is_shown_without_being_asked_for() {
    let selection = Selection {
        parts: Parts::Telling,
        ..Selection::default()
    };
    let text = names(selection);
    assert!(
        text.contains("MachineInfrastructure - DockerMachine/w-1"),
        "{text}"
    );
    assert!(
        !text.contains("DockerMachine/cp-1") && !text.contains("BootstrapConfig"),
        "{text}"
    );
}
