//! Selection of the desired objects for the present step (pure).

use std::collections::BTreeSet;
use std::sync::Arc;

use api::core::v1beta2::{ContractReference, MachineDeployment, MachineHealthCheck};
use api::kube::ResourceExt;
use serde_json::Value;
use topology::desired::{Deployment, Desired};
use topology::upgrade::Decisions;

use super::current::topology_name;

/// Reference to an object.
pub(super) fn reference(object: &Value) -> ContractReference {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    ContractReference::new(
        group,
        &text(&object["kind"]),
        &text(&object["metadata"]["name"]),
    )
}

/// True if the control plane is left unchanged: its upgrade waits, and a change now would replace its machines twice.
pub(super) fn leaves_plane(decisions: &Decisions, exists: bool) -> bool {
    decisions.control_plane_waits && exists
}

/// True if a MachineDeployment is left unchanged, or not created yet.
pub(super) fn leaves(decisions: &Decisions, deployment: &Deployment) -> bool {
    let name = deployment.object["metadata"]["name"].as_str();
    let waits = decisions
        .waiting
        .iter()
        .any(|waiting| Some(waiting.as_str()) == name);
    waits || decisions.not_created.contains(&deployment.topology_name)
}

/// Health checks without a place in the topology.
pub(super) fn surplus_checks<'a>(
    known: &'a [Arc<MachineHealthCheck>],
    desired: &Desired,
) -> Vec<&'a MachineHealthCheck> {
    let of_deployments = desired
        .deployments
        .iter()
        .filter_map(|it| it.check.as_ref());
    let all = of_deployments.chain(&desired.control_plane_check);
    let names: BTreeSet<_> = all
        .filter_map(|check| check["metadata"]["name"].as_str())
        .collect();
    let known = known.iter().map(AsRef::as_ref);
    let left = |it: &&MachineHealthCheck| !it.is_deleting() && !names.contains(&*it.name_any());
    known.filter(left).collect()
}

/// [`MachineDeployment`]s without a place in the topology.
pub(super) fn surplus_deployments<'a>(
    known: &'a [Arc<MachineDeployment>],
    desired: &Desired,
) -> Vec<&'a MachineDeployment> {
    let names: BTreeSet<_> = desired
        .deployments
        .iter()
        .map(|it| it.topology_name.as_str())
        .collect();
    let known = known.iter().map(AsRef::as_ref);
    let left = |it: &&MachineDeployment| !it.is_deleting() && !names.contains(topology_name(it));
    known.filter(left).collect()
}

/// Group, kind and name of each template to keep: `used` are the templates that objects refer to; the topology has
/// others.
pub(super) fn needed_templates(
    used: BTreeSet<(String, String, String)>,
    desired: &Desired,
) -> BTreeSet<(String, String, String)> {
    let of_deployments = desired
        .deployments
        .iter()
        .flat_map(|it| [&it.bootstrap, &it.machines]);
    let all = of_deployments.chain(&desired.control_plane_machines);
    let of_topology = all
        .map(reference)
        .map(|it| (it.api_group, it.kind, it.name));
    used.into_iter().chain(of_topology).collect()
}

#[cfg(test)]
mod tests;
