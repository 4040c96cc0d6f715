//! CustomResourceDefinitions of the group; v1beta1 as in [`crate::bootstrap::crd`].

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::CustomResourceExt;
use serde_json::{Value, json};

use super::v1beta2;
use crate::bootstrap::crd::older::bootstrap;
use crate::definition::edit::{
    conditions, duration, forget, old_conditions, property, relax, remove, set, text,
};
use crate::definition::{column, finish, wide, with_v1beta1};

/// [`CustomResourceDefinition`]s of KubeadmControlPlane and KubeadmControlPlaneTemplate.
pub fn all() -> Vec<CustomResourceDefinition> {
    let provider = "control-plane-kubeadm";
    let age = column("Age", "date", ".metadata.creationTimestamp");
    let columns = vec![
        column(
            "Cluster",
            "string",
            r".metadata.labels['cluster\.x-k8s\.io/cluster-name']",
        ),
        column("Initialized", "boolean", ".status.initialized"),
        column("API Server Available", "boolean", ".status.ready"),
        wide("Desired", "integer", ".spec.replicas"),
        column("Replicas", "integer", ".status.replicas"),
        column("Ready", "integer", ".status.readyReplicas"),
        column("Updated", "integer", ".status.updatedReplicas"),
        column("Unavailable", "integer", ".status.unavailableReplicas"),
        age.clone(),
        column("Version", "string", ".spec.version"),
    ];
    let planes = finish(v1beta2::KubeadmControlPlane::crd(), provider);
    let templates = finish(v1beta2::KubeadmControlPlaneTemplate::crd(), provider);
    vec![
        with_v1beta1(planes, columns, |schema| {
            spec(&mut schema["properties"]["spec"], true);
            schema["properties"]["status"] = status();
        }),
        with_v1beta1(templates, vec![age], |schema| {
            let template = &mut schema["properties"]["spec"]["properties"]["template"];
            relax(template);
            template["required"] = json!(["spec"]);
            let inner = &mut template["properties"]["spec"];
            spec(inner, false);
            inner["required"] = json!(["kubeadmConfigSpec"]);
        }),
    ]
}

/// Edits the schema of a control plane's spec: the whole one, or the part in a template.
fn spec(schema: &mut Value, whole: bool) {
    relax(schema);
    bootstrap(property(schema, "kubeadmConfigSpec"));
    machine_template(property(schema, "machineTemplate"), whole);
    if let Some(mut rollout) = remove(schema, "rollout") {
        for (from, to) in [
            ("before", "rolloutBefore"),
            ("after", "rolloutAfter"),
            ("strategy", "rolloutStrategy"),
        ] {
            if let Some(mut part) = remove(&mut rollout, from) {
                match from {
                    "strategy" => forget(&mut part, "required"),
                    "before" => forget(property(&mut part, "certificatesExpiryDays"), "minimum"),
                    _ => {}
                }
                set(schema, to, part);
            }
        }
    }
    if let Some(mut remediation) = remove(schema, "remediation") {
        for (old, new) in [
            ("retryPeriod", "retryPeriodSeconds"),
            ("minHealthyPeriod", "minHealthyPeriodSeconds"),
        ] {
            remove(&mut remediation, new);
            set(&mut remediation, old, duration("Duration."));
        }
        set(schema, "remediationStrategy", remediation);
    }
    if let Some(naming) = remove(schema, "machineNaming") {
        set(schema, "machineNamingStrategy", naming);
    }
    if whole {
        schema["required"] = json!(["kubeadmConfigSpec", "machineTemplate", "version"]);
    }
}

fn machine_template(schema: &mut Value, whole: bool) {
    let Some(mut spec) = remove(schema, "spec") else {
        return;
    };
    for name in ["readinessGates", "taints"] {
        if let Some(mut part) = remove(&mut spec, name) {
            if name == "taints" {
                part["minItems"] = json!(1);
            }
            set(schema, name, part);
        }
    }
    for (name, what) in [
        ("nodeDrainTimeout", "Timeout for draining a Node."),
        ("nodeVolumeDetachTimeout", "Timeout for detaching volumes."),
        (
            "nodeDeletionTimeout",
            "For how long deleting the Node object is tried.",
        ),
    ] {
        set(schema, name, duration(what));
    }
    if whole {
        set(schema, "infrastructureRef", object_reference());
        schema["required"] = json!(["infrastructureRef"]);
    }
}

fn object_reference() -> Value {
    let part = |what: &str| json!({"type": "string", "description": what});
    json!({
        "type": "object",
        "description": "The template of the machines' infrastructure.",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "apiVersion": part("The API group and version."),
            "kind": part("The kind."),
            "name": part("The name."),
            "namespace": part("The namespace; always that of the control plane."),
            "fieldPath": part("Ignored."),
            "resourceVersion": part("Ignored."),
            "uid": part("Ignored."),
        },
    })
}

fn status() -> Value {
    let count = |what: &str| json!({"type": "integer", "format": "int32", "description": what});
    json!({
        "type": "object",
        "description": "The observed state of a KubeadmControlPlane.",
        "properties": {
            "selector": text(1, 4096, "The label selector of the machines."),
            "replicas": count("Number of machines that exist."),
            "version": text(1, 256, "The lowest Kubernetes version of the machines."),
            "versions": {
                "type": "array",
                "minItems": 1,
                "maxItems": 100,
                "description": "The Kubernetes versions of the machines, oldest first.",
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["version"],
                "items": {
                    "type": "object",
                    "required": ["version"],
                    "properties": {
                        "version": text(1, 256, "The version."),
                        "replicas": {"type": "integer", "format": "int32", "minimum": 1, "description": "Number of machines."},
                    },
                },
            },
            "updatedReplicas": count("Number of machines that match the spec."),
            "readyReplicas": count("Number of machines with a ready API server."),
            "unavailableReplicas": count("Number of unavailable machines."),
            "initialized": {"type": "boolean", "description": "The first machine runs an API server."},
            "ready": {"type": "boolean", "description": "An API server is ready."},
            "failureReason": {"type": "string", "description": "A word for a terminal failure."},
            "failureMessage": text(1, 10240, "A sentence for a terminal failure."),
            "observedGeneration": {"type": "integer", "format": "int64", "description": "The generation that this status is about."},
            "conditions": old_conditions(),
            "lastRemediation": {
                "type": "object",
                "description": "The last time a broken machine was replaced.",
                "required": ["machine", "retryCount", "timestamp"],
                "properties": {
                    "machine": text(1, 253, "The machine that was deleted."),
                    "timestamp": {"type": "string", "format": "date-time", "description": "Time, RFC 3339."},
                    "retryCount": count("Number of earlier attempts in a row."),
                },
            },
            "v1beta2": {
                "type": "object",
                "description": "Status in the words of v1beta2.",
                "properties": {
                    "conditions": conditions(),
                    "readyReplicas": count("Number of ready machines."),
                    "availableReplicas": count("Number of available machines."),
                    "upToDateReplicas": count("Number of machines that match the spec."),
                },
            },
        },
    })
}

#[cfg(test)]
mod tests;
