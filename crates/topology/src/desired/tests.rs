use std::collections::BTreeMap;

use api::core::v1beta2::{Cluster, ClusterClass, MachineDeployment, MachineHealthCheck};
use serde_json::{Value, json};

use super::{Desired, Input, Templates, desired, key};
use crate::upgrade::{Decisions, decide};

mod upstream;

const INFRA: &str = "infrastructure.cluster.x-k8s.io/v1beta2";
const PLANE: &str = "controlplane.cluster.x-k8s.io/v1beta2";
const BOOT: &str = "bootstrap.cluster.x-k8s.io/v1beta2";

fn reference(version: &str, kind: &str) -> Value {
    json!({ "templateRef": { "apiVersion": version, "kind": kind, "name": "small" } })
}

fn class() -> ClusterClass {
    let mut plane = reference(PLANE, "KubeadmControlPlaneTemplate");
    plane["machineInfrastructure"] = reference(INFRA, "OpenStackMachineTemplate");
    plane["metadata"] = json!({ "labels": { "tier": "class", "of": "class" } });
    plane["healthCheck"] = json!({ "checks": { "nodeStartupTimeoutSeconds": 900 } });
    plane["deletion"] = json!({ "nodeDrainTimeoutSeconds": 60 });
    serde_json::from_value(json!({
        "metadata": { "name": "small", "namespace": "default" },
        "spec": {
            "infrastructure": reference(INFRA, "OpenStackClusterTemplate"),
            "controlPlane": plane,
            "workers": { "machineDeployments": [{
                "class": "default-worker",
                "bootstrap": reference(BOOT, "KubeadmConfigTemplate"),
                "infrastructure": reference(INFRA, "OpenStackMachineTemplate"),
                "failureDomain": "a",
                "healthCheck": { "checks": { "nodeStartupTimeoutSeconds": 600 }, "remediation": { "maxInFlight": 1 } },
            }] },
            "variables": [],
            "patches": [{
                "name": "image",
                "definitions": [{
                    "selector": { "apiVersion": INFRA, "kind": "OpenStackMachineTemplate", "matchResources": {
                        "machineDeploymentClass": { "names": ["*"] },
                    } },
                    "jsonPatches": [{ "op": "add", "path": "/spec/template/spec/image", "valueFrom": {
                        "template": "{{ .builtin.machineDeployment.topologyName }}-{{ .builtin.machineDeployment.version }}",
                    } }],
                }],
            }],
        },
    }))
    .unwrap()
}

fn cluster(more: Value) -> Cluster {
    let mut topology = json!({
        "classRef": { "name": "small" }, "version": "v1.34.1",
        "controlPlane": { "replicas": 3, "metadata": { "labels": { "tier": "own" }, "annotations": { "note": "x" } } },
        "workers": { "machineDeployments": [
            { "class": "default-worker", "name": "md-0", "replicas": 2 },
            {
                "class": "default-worker", "name": "md-1", "failureDomain": "b", "healthCheck": { "enabled": false },
                "metadata": { "annotations": { "topology.cluster.x-k8s.io/defer-upgrade": "", "kept": "y" } },
            },
        ] },
    });
    for (name, value) in more.as_object().unwrap() {
        topology[name] = value.clone();
    }
    serde_json::from_value(json!({
        "metadata": { "name": "demo", "namespace": "default", "uid": "uid-1" }, "spec": { "topology": topology },
    }))
    .unwrap()
}

fn templates() -> Templates {
    let class = class();
    let body = |kind: &str| match kind {
        "KubeadmControlPlaneTemplate" => {
            json!({ "spec": { "kubeadmConfigSpec": { "format": "cloud-config" } } })
        }
        "OpenStackClusterTemplate" => json!({
            "metadata": { "labels": { "from": "template" } },
            "spec": { "identityRef": { "name": "s" }, "controlPlaneEndpoint": { "host": "h" } },
        }),
        _ => json!({ "spec": { "flavor": "m1" } }),
    };
    class
        .templates()
        .into_iter()
        .map(|(_, reference)| {
            let template = json!({
                "apiVersion": reference.api_version, "kind": reference.kind,
                "metadata": { "name": reference.name, "labels": { "shelf": "1" } },
                "spec": { "template": body(&reference.kind) },
            });
            (key(reference), template)
        })
        .collect()
}

fn compute(cluster: &Cluster, older_plane: bool) -> Desired {
    let class = class();
    let topology = cluster.spec.topology.clone().unwrap();
    let decisions: Decisions = decide(&topology, None, None, &[], 1).unwrap();
    let (templates, deployments) = (templates(), BTreeMap::new());
    desired(&Input {
        cluster,
        class: &class,
        topology: &topology,
        templates: &templates,
        deployments: &deployments,
        decisions: &decisions,
        older_plane,
    })
    .unwrap()
}

#[test]
fn the_infrastructure_and_the_control_plane_come_from_their_templates() {
    let desired = compute(&cluster(json!({})), false);
    let infrastructure = &desired.infrastructure;
    assert_eq!(infrastructure["kind"], "OpenStackCluster");
    assert_eq!(
        infrastructure["spec"],
        json!({ "identityRef": { "name": "s" } })
    );
    assert_eq!(
        infrastructure["metadata"]["labels"],
        json!({
            "from": "template", "cluster.x-k8s.io/cluster-name": "demo", "topology.cluster.x-k8s.io/owned": "",
        })
    );
    assert_eq!(
        infrastructure["metadata"]["annotations"],
        json!({
            "cluster.x-k8s.io/cloned-from-name": "small",
            "cluster.x-k8s.io/cloned-from-groupkind": "OpenStackClusterTemplate.infrastructure.cluster.x-k8s.io",
        })
    );
    assert_eq!(
        infrastructure["metadata"].get("ownerReferences"),
        None,
        "the Cluster becomes its owner when it refers to it"
    );
    let plane = &desired.control_plane;
    let machines = desired.control_plane_machines.as_ref().unwrap();
    assert_eq!(plane["kind"], "KubeadmControlPlane");
    assert_eq!(plane["metadata"]["labels"]["tier"], "own");
    assert_eq!(plane["metadata"]["annotations"]["note"], "x");
    assert_eq!(
        plane["spec"],
        json!({
            "kubeadmConfigSpec": { "format": "cloud-config" },
            "replicas": 3,
            "version": "v1.34.1",
            "machineTemplate": {
                "metadata": {
                    "labels": {
                        "tier": "own", "of": "class",
                        "cluster.x-k8s.io/cluster-name": "demo", "topology.cluster.x-k8s.io/owned": "",
                    },
                    "annotations": { "note": "x" },
                },
                "spec": {
                    "deletion": { "nodeDrainTimeoutSeconds": 60 },
                    "infrastructureRef": {
                        "apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "OpenStackMachineTemplate",
                        "name": machines["metadata"]["name"],
                    },
                },
            },
        })
    );
    assert_eq!(
        machines["metadata"]["ownerReferences"],
        json!([{
            "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "demo", "uid": "uid-1",
        }])
    );
}

#[test]
fn a_control_plane_of_the_former_contract_has_its_fields_elsewhere() {
    let plane = compute(&cluster(json!({})), true).control_plane;
    let machines = &plane["spec"]["machineTemplate"];
    assert_eq!(machines["nodeDrainTimeout"], "60s");
    assert_eq!(machines["infrastructureRef"]["apiVersion"], INFRA);
    assert_eq!(machines.get("spec"), None);
}

#[test]
fn deployments_have_their_templates_settings_and_checks() {
    let desired = compute(&cluster(json!({})), false);
    let [first, second] = &desired.deployments[..] else {
        panic!("{:?}", desired.deployments)
    };
    assert_eq!(
        first.machines["spec"]["template"]["spec"],
        json!({ "flavor": "m1", "image": "md-0-v1.34.1" })
    );
    assert_eq!(
        first.machines["metadata"]["labels"]["topology.cluster.x-k8s.io/deployment-name"],
        "md-0"
    );
    assert_eq!(first.machines["metadata"]["labels"]["shelf"], "1");
    let typed: MachineDeployment = serde_json::from_value(first.object.clone()).unwrap();
    let spec = &typed.spec;
    assert_eq!(spec.replicas, Some(2));
    assert_eq!(spec.template.spec.failure_domain.as_deref(), Some("a"));
    assert_eq!(
        spec.template.spec.infrastructure_ref.name,
        first.machines["metadata"]["name"]
    );
    let bootstrap = spec.template.spec.bootstrap.config_ref.as_ref().unwrap();
    assert_eq!(bootstrap.name, first.bootstrap["metadata"]["name"]);
    assert_eq!(
        first.object["spec"]["remediation"],
        json!({ "maxInFlight": 1 })
    );
    assert_eq!(
        first.object["spec"]["selector"]["matchLabels"],
        json!({
            "cluster.x-k8s.io/cluster-name": "demo", "topology.cluster.x-k8s.io/owned": "",
            "topology.cluster.x-k8s.io/deployment-name": "md-0",
        })
    );
    let check: MachineHealthCheck = serde_json::from_value(first.check.clone().unwrap()).unwrap();
    assert_eq!(check.metadata.name, typed.metadata.name);
    assert_eq!(
        check.spec.checks.unwrap().node_startup_timeout_seconds,
        Some(600)
    );
    assert_eq!(second.check, None);
    assert_eq!(
        second.object["spec"]["template"]["spec"]["failureDomain"],
        "b"
    );
    assert_eq!(
        second.object["metadata"]["annotations"],
        json!({ "kept": "y" }),
        "upgrades are the topology's business"
    );
    assert_eq!(
        second.object["spec"].get("replicas"),
        None,
        "an autoscaler's"
    );
    let of_plane: MachineHealthCheck =
        serde_json::from_value(desired.control_plane_check.unwrap()).unwrap();
    assert_eq!(
        of_plane.spec.selector.match_labels.unwrap(),
        [("cluster.x-k8s.io/control-plane".to_owned(), String::new())].into()
    );
}

#[test]
fn a_template_gets_another_name_when_it_changes_and_only_then() {
    let one = compute(&cluster(json!({})), false);
    assert_eq!(one, compute(&cluster(json!({})), false));
    let two = compute(&cluster(json!({ "version": "v1.35.0" })), false);
    let name = |template: &Value| template["metadata"]["name"].clone();
    assert_ne!(
        name(&one.deployments[0].machines),
        name(&two.deployments[0].machines),
        "its patch has the version"
    );
    assert_eq!(
        name(&one.deployments[0].bootstrap),
        name(&two.deployments[0].bootstrap)
    );
    let machines = |desired: &Desired| name(desired.control_plane_machines.as_ref().unwrap());
    assert_eq!(machines(&one), machines(&two));
    assert_eq!(name(&one.infrastructure), name(&two.infrastructure));
}

#[test]
fn a_missing_template_is_named() {
    let (class, cluster) = (class(), cluster(json!({})));
    let topology = cluster.spec.topology.clone().unwrap();
    let decisions = decide(&topology, None, None, &[], 1).unwrap();
    let (templates, deployments) = (Templates::new(), BTreeMap::new());
    let error = desired(&Input {
        cluster: &cluster,
        class: &class,
        topology: &topology,
        templates: &templates,
        deployments: &deployments,
        decisions: &decisions,
        older_plane: false,
    })
    .unwrap_err();
    assert_eq!(
        error.to_string(),
        "OpenStackClusterTemplate small of the ClusterClass does not exist"
    );
}
