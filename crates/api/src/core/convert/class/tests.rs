use serde_json::{Value, json};

use crate::convert::convert;
use crate::core::v1beta2::ClusterClassSpec;

const OLD: &str = "cluster.x-k8s.io/v1beta1";
const NEW: &str = "cluster.x-k8s.io/v1beta2";

fn class(version: &str, spec: Value) -> Value {
    json!({ "apiVersion": version, "kind": "ClusterClass", "metadata": { "name": "demo" }, "spec": spec })
}

fn reference(kind: &str) -> Value {
    json!({ "apiVersion": "infrastructure.cluster.x-k8s.io/v1beta1", "kind": kind, "name": "demo" })
}

fn old() -> Value {
    json!({
        "infrastructure": { "ref": reference("OpenStackClusterTemplate") },
        "infrastructureNamingStrategy": { "template": "{{ .cluster.name }}" },
        "controlPlane": {
            "metadata": { "labels": { "a": "b" } },
            "ref": reference("KubeadmControlPlaneTemplate"),
            "machineInfrastructure": { "ref": reference("OpenStackMachineTemplate") },
            "machineHealthCheck": { "maxUnhealthy": "33%", "nodeStartupTimeout": "15m0s" },
            "namingStrategy": { "template": "{{ .cluster.name }}-cp" },
            "nodeDrainTimeout": "1m0s",
        },
        "workers": { "machineDeployments": [{
            "class": "default-worker",
            "failureDomain": "nova",
            "template": {
                "metadata": { "annotations": { "c": "d" } },
                "bootstrap": { "ref": reference("KubeadmConfigTemplate") },
                "infrastructure": { "ref": reference("OpenStackMachineTemplate") },
            },
            "machineHealthCheck": {
                "unhealthyConditions": [{ "type": "Ready", "status": "Unknown", "timeout": "5m0s" }],
            },
            "nodeDeletionTimeout": "10s",
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": { "maxSurge": 1, "deletePolicy": "Oldest" },
                "remediation": { "maxInFlight": 1 },
            },
        }] },
        "variables": [{
            "name": "ranges", "required": false, "metadata": { "labels": { "x": "y" } },
            "schema": { "openAPIV3Schema": { "type": "array", "items": { "type": "string" }, "default": [] } },
        }],
        "patches": [{
            "name": "p",
            "definitions": [{
                "selector": {
                    "apiVersion": OLD, "kind": "K", "matchResources": { "controlPlane": true },
                },
                "jsonPatches": [{ "op": "add", "path": "/spec/x", "value": null }],
            }],
        }, {
            "name": "q",
            "external": { "generateExtension": "g", "validateExtension": "v", "settings": { "a": "" } },
        }],
    })
}

fn new() -> Value {
    json!({
        "infrastructure": {
            "templateRef": reference("OpenStackClusterTemplate"),
            "naming": { "template": "{{ .cluster.name }}" },
        },
        "controlPlane": {
            "metadata": { "labels": { "a": "b" } },
            "templateRef": reference("KubeadmControlPlaneTemplate"),
            "machineInfrastructure": { "templateRef": reference("OpenStackMachineTemplate") },
            "healthCheck": {
                "checks": { "nodeStartupTimeoutSeconds": 900 },
                "remediation": { "triggerIf": { "unhealthyLessThanOrEqualTo": "33%" } },
            },
            "naming": { "template": "{{ .cluster.name }}-cp" },
            "deletion": { "nodeDrainTimeoutSeconds": 60 },
        },
        "workers": { "machineDeployments": [{
            "class": "default-worker",
            "failureDomain": "nova",
            "metadata": { "annotations": { "c": "d" } },
            "bootstrap": { "templateRef": reference("KubeadmConfigTemplate") },
            "infrastructure": { "templateRef": reference("OpenStackMachineTemplate") },
            "healthCheck": {
                "checks": { "unhealthyNodeConditions":
                    [{ "type": "Ready", "status": "Unknown", "timeoutSeconds": 300 }] },
                "remediation": { "maxInFlight": 1 },
            },
            "deletion": { "order": "Oldest", "nodeDeletionTimeoutSeconds": 10 },
            "rollout": { "strategy": { "type": "RollingUpdate", "rollingUpdate": { "maxSurge": 1 } } },
        }] },
        "variables": [{
            "name": "ranges", "required": false,
            "deprecatedV1Beta1Metadata": { "labels": { "x": "y" } },
            "schema": { "openAPIV3Schema": { "type": "array", "items": { "type": "string" }, "default": [] } },
        }],
        "patches": [{
            "name": "p",
            "definitions": [{
                "selector": {
                    "apiVersion": OLD, "kind": "K", "matchResources": { "controlPlane": true },
                },
                "jsonPatches": [{ "op": "add", "path": "/spec/x", "value": null }],
            }],
        }, {
            "name": "q",
            "external": {
                "generatePatchesExtension": "g", "validateTopologyExtension": "v", "settings": { "a": "" },
            },
        }],
    })
}

#[test]
fn every_field_of_a_class_finds_its_new_place_and_the_way_back() {
    let up = convert(class(OLD, old()), NEW).unwrap();
    assert_eq!(up["spec"], new());
    assert_eq!(convert(up, OLD).unwrap(), class(OLD, old()));
    let down = convert(class(NEW, new()), OLD).unwrap();
    assert_eq!(down["spec"], old());
    assert_eq!(convert(down, NEW).unwrap(), class(NEW, new()));
}

#[test]
fn the_types_hold_every_field_of_a_class() {
    let typed: ClusterClassSpec = serde_json::from_value(new()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), new());
}

#[test]
fn what_v1beta2_rejects_is_left_out_and_comes_back() {
    let mut spec = old();
    spec["workers"] = json!({ "machineDeployments": [] });
    spec["patches"] = json!([]);
    spec["controlPlane"]["metadata"] = json!({});
    spec["controlPlane"]["ref"]["namespace"] = json!("default");
    spec["variables"][0]["schema"]["openAPIV3Schema"]["required"] = json!([]);
    let before = class(OLD, spec);
    let up = convert(before.clone(), NEW).unwrap();
    for name in ["workers", "patches"] {
        assert_eq!(up["spec"].get(name), None, "{name}");
    }
    assert_eq!(up["spec"]["controlPlane"].get("metadata"), None);
    let schema = &up["spec"]["variables"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["default"], json!([]));
    assert_eq!(schema.get("required"), None);
    assert_eq!(convert(up, OLD).unwrap(), before);
}

#[test]
fn definitions_in_the_status_are_converted() {
    let mut object = class(OLD, old());
    object["status"] = json!({
        "observedGeneration": 2,
        "variables": [{ "name": "a", "definitions": [{
            "from": "inline", "required": true, "metadata": { "labels": { "x": "y" } },
            "schema": { "openAPIV3Schema": { "type": "string" } },
        }] }],
    });
    let up = convert(object.clone(), NEW).unwrap();
    let definition = &up["status"]["variables"][0]["definitions"][0];
    assert_eq!(definition["deprecatedV1Beta1Metadata"]["labels"]["x"], "y");
    let down = convert(up, OLD).unwrap();
    assert_eq!(down["status"]["variables"], object["status"]["variables"]);
}
