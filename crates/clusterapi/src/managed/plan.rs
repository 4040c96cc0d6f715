//! What of the desired objects is done now. Pure.

use std::collections::BTreeSet;

use api::core::v1beta2::ContractReference;
use serde_json::Value;
use topology::desired::{Deployment, Desired};
use topology::upgrade::Decisions;

/// The reference to an object.
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

/// Whether the control plane is left as it is: its upgrade waits, and a change now would replace its machines twice.
pub(super) fn leaves_plane(decisions: &Decisions, exists: bool) -> bool {
    decisions.control_plane_waits && exists
}

/// Whether a MachineDeployment is left as it is, or not created yet.
pub(super) fn leaves(decisions: &Decisions, deployment: &Deployment) -> bool {
    let name = deployment.object["metadata"]["name"].as_str();
    let waits = decisions
        .waiting
        .iter()
        .any(|waiting| Some(waiting.as_str()) == name);
    waits || decisions.not_created.contains(&deployment.topology_name)
}

/// The names of the health checks that the topology has.
pub(super) fn checks(desired: &Desired) -> BTreeSet<&str> {
    let of_deployments = desired
        .deployments
        .iter()
        .filter_map(|it| it.check.as_ref());
    let all = of_deployments.chain(&desired.control_plane_check);
    all.filter_map(|check| check["metadata"]["name"].as_str())
        .collect()
}

/// The templates that the topology has.
pub(super) fn templates(desired: &Desired) -> Vec<ContractReference> {
    let of_deployments = desired
        .deployments
        .iter()
        .flat_map(|it| [&it.bootstrap, &it.machines]);
    let all = of_deployments.chain(&desired.control_plane_machines);
    all.map(reference).collect()
}

#[cfg(test)]
mod tests;
