//! Validation of the topology of a Cluster, without its class.

use serde_json::Value;

use super::check::{is_set, text, version};
use super::class::{is_label, list};
use super::taints::reserved;
use crate::change::{Change, FieldError};
use crate::version::Version;

/// Annotation of a Cluster, with upstream's name: permits adding a topology to an existing Cluster.
pub(super) const UNSAFE: &str = "unsafe.topology.cluster.x-k8s.io/disable-update-class-name-check";
/// Annotation of a Cluster: number of concurrent upgrades of MachineDeployments.
const CONCURRENCY: &str = "topology.cluster.x-k8s.io/upgrade-concurrency";

pub(super) fn validate(change: Change<'_>, errors: &mut Vec<FieldError>) {
    let object = change.object;
    let path = "spec.topology";
    version(
        object,
        "/spec/topology/version",
        "spec.topology.version",
        errors,
    );
    if !list(object, "/spec/topology/workers/machinePools").is_empty() {
        let message = "MachinePools of a topology are not built: use machineDeployments";
        errors.push(FieldError::new(
            format!("{path}.workers.machinePools"),
            message,
        ));
    }
    let taints = object.pointer("/spec/topology/controlPlane/taints");
    reserved(taints, "spec.topology.controlPlane.taints", errors);
    let deployments = list(object, "/spec/topology/workers/machineDeployments");
    for (at, deployment) in deployments.iter().enumerate() {
        let path = format!("{path}.workers.machineDeployments[{at}]");
        reserved(deployment.get("taints"), &format!("{path}.taints"), errors);
        let name = text(deployment, "/name").unwrap_or_default();
        if !is_label(name) {
            let message = format!("{name} is not a valid value of a label");
            errors.push(FieldError::new(format!("{path}.name"), message));
        }
    }
    let annotations = object.pointer("/metadata/annotations");
    let given = annotations
        .and_then(|all| all.get(CONCURRENCY))
        .and_then(Value::as_str);
    if given.is_some_and(|given| given.parse::<u32>().unwrap_or(0) == 0) {
        let message = "must be a number of MachineDeployments of at least 1";
        errors.push(FieldError::new(
            format!("metadata.annotations[{CONCURRENCY}]"),
            message,
        ));
    }
    topology_change(change, errors);
}

fn topology_change(change: Change<'_>, errors: &mut Vec<FieldError>) {
    let Some(old) = change.changed_from else {
        return;
    };
    let annotations = change.object.pointer("/metadata/annotations");
    let may = annotations.is_some_and(|all| all.get(UNSAFE).is_some());
    if !is_set(old, "/spec/topology") && !may {
        let message = format!(
            "cannot be added to a Cluster that exists, unless it has the annotation {UNSAFE}"
        );
        errors.push(FieldError::new("spec.topology", message));
    }
    let of = |object: &Value| {
        text(object, "/spec/topology/version")?
            .parse::<Version>()
            .ok()
    };
    if let (Some(was), Some(is)) = (of(old), of(change.object))
        && is < was
    {
        let message = "cannot go back: kubeadm does not downgrade";
        errors.push(FieldError::new("spec.topology.version", message));
    }
}

#[cfg(test)]
mod tests;
