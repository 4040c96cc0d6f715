//! Control plane.

use api::core::v1beta2::MachineDeletion;
use api::kube::ResourceExt;
use api::names::CLUSTER_NAME_LABEL;
use serde_json::{Value, json};

use super::{DesiredError, Input, combined, merge, nested, of_object, taints};
use crate::builtin::Metadata;
use crate::names::OWNED_LABEL;

/// Returns the labels and annotations of the control plane, without the ones common to all objects.
pub(super) fn metadata(input: &Input<'_>) -> Metadata {
    let plane = input.topology.control_plane.as_ref();
    combined(
        plane.and_then(|plane| plane.metadata.as_ref()),
        input.class.spec.control_plane.metadata.as_ref(),
    )
}

/// Returns the control plane from its patched template.
pub(super) fn object(
    input: &Input<'_>,
    template: &Value,
    name: String,
    given: &Metadata,
) -> Result<Value, DesiredError> {
    let class = &input.class.spec.control_plane;
    let mut object = input.object(template, &class.template_ref, name, given)?;
    let topology = input.topology.control_plane.clone().unwrap_or_default();
    let older = input.older_plane;
    if class.machine_infrastructure.is_some() {
        let mut labelled = given.clone();
        labelled
            .labels
            .insert(CLUSTER_NAME_LABEL.to_owned(), input.cluster.name_any());
        labelled
            .labels
            .insert(OWNED_LABEL.to_owned(), String::new());
        let mut machines = of_object(&object["spec"]["machineTemplate"]["metadata"]);
        // Settings of the template for machines are not overwritten.
        let of_template = machines.clone();
        merge(&mut machines, &labelled);
        merge(&mut machines, &of_template);
        let fields = nested(&mut object, &["spec", "machineTemplate", "metadata"]);
        fields.insert("labels".to_owned(), json!(machines.labels));
        if !machines.annotations.is_empty() {
            fields.insert("annotations".to_owned(), json!(machines.annotations));
        }
    }
    let gates = topology
        .readiness_gates
        .as_ref()
        .or(class.readiness_gates.as_ref());
    if let Some(gates) = gates {
        of_machines(&mut object, older).insert("readinessGates".to_owned(), json!(gates));
    }
    let taints = taints::combined(topology.taints.as_ref(), class.taints.as_ref());
    if !taints.is_empty() {
        of_machines(&mut object, older).insert("taints".to_owned(), json!(taints));
    }
    deletion(
        &mut object,
        topology.deletion.as_ref(),
        class.deletion.as_ref(),
        older,
    );
    if let Some(after) = topology
        .rollout
        .as_ref()
        .and_then(|rollout| rollout.after.as_ref())
    {
        match older {
            true => nested(&mut object, &["spec"]).insert("rolloutAfter".to_owned(), json!(after)),
            false => {
                nested(&mut object, &["spec", "rollout"]).insert("after".to_owned(), json!(after))
            }
        };
    }
    let spec = nested(&mut object, &["spec"]);
    if let Some(replicas) = topology.replicas {
        spec.insert("replicas".to_owned(), json!(replicas));
    }
    spec.insert("version".to_owned(), json!(input.decisions.control_plane));
    Ok(object)
}

/// Returns the settings of the machines: `spec.machineTemplate` in the contract v1beta1, else the `spec` in it.
fn of_machines(object: &mut Value, older: bool) -> &mut serde_json::Map<String, Value> {
    match older {
        true => nested(object, &["spec", "machineTemplate"]),
        false => nested(object, &["spec", "machineTemplate", "spec"]),
    }
}

fn deletion(
    object: &mut Value,
    topology: Option<&MachineDeletion>,
    class: Option<&MachineDeletion>,
    older: bool,
) {
    let pick = |field: fn(&MachineDeletion) -> Option<i32>| {
        topology.and_then(field).or_else(|| class.and_then(field))
    };
    let timeouts = [
        (
            "nodeDrainTimeout",
            pick(|deletion| deletion.node_drain_timeout_seconds),
        ),
        (
            "nodeVolumeDetachTimeout",
            pick(|deletion| deletion.node_volume_detach_timeout_seconds),
        ),
        (
            "nodeDeletionTimeout",
            pick(|deletion| deletion.node_deletion_timeout_seconds),
        ),
    ];
    for (name, seconds) in timeouts {
        let Some(seconds) = seconds else { continue };
        match older {
            true => of_machines(object, true).insert(name.to_owned(), json!(format!("{seconds}s"))),
            false => nested(object, &["spec", "machineTemplate", "spec", "deletion"])
                .insert(format!("{name}Seconds"), json!(seconds)),
        };
    }
}

/// Sets the reference to the template of the machines.
pub(super) fn refer(plane: &mut Value, machines: &Value, older: bool) {
    let api_version = machines["apiVersion"].as_str().unwrap_or_default();
    let group = api_version.split('/').next().unwrap_or_default();
    let (kind, name) = (&machines["kind"], &machines["metadata"]["name"]);
    let reference = match older {
        true => json!({
            "apiVersion": api_version, "kind": kind, "name": name,
            "namespace": machines["metadata"]["namespace"],
        }),
        false => json!({ "apiGroup": group, "kind": kind, "name": name }),
    };
    of_machines(plane, older).insert("infrastructureRef".to_owned(), reference);
}
