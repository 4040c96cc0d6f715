//! Validation of the topology of a Cluster against the [`ClusterClass`], and defaults.

use api::admission::FieldError;
use api::core::v1beta2::{ClusterClass, ClusterSpec, Topology, Variable};

use crate::upgrade::reachable;
use crate::variables::{self, Definition, Values};

/// Returns a topology with the defaults of the class's variables.
pub fn defaulted(topology: &Topology, definitions: &[Definition]) -> Topology {
    let mut after = topology.clone();
    let values = topology.variables.as_deref().unwrap_or_default();
    let all = variables::defaulted(definitions, values);
    after.variables = (!all.is_empty()).then_some(all);
    let overridden = |overrides: &mut Option<Vec<Variable>>| {
        if let Some(values) = overrides {
            *values = variables::overridden(definitions, values);
        }
    };
    if let Some(given) = after
        .control_plane
        .as_mut()
        .and_then(|plane| plane.variables.as_mut())
    {
        overridden(&mut given.overrides);
    }
    let workers = after.workers.as_mut();
    let deployments = workers.and_then(|workers| workers.machine_deployments.as_mut());
    for deployment in deployments.into_iter().flatten() {
        if let Some(given) = deployment.variables.as_mut() {
            overridden(&mut given.overrides);
        }
    }
    after
}

/// Returns errors for references of a Cluster whose kinds differ from the class: such objects cannot be replaced.
pub fn incompatible(class: &ClusterClass, spec: &ClusterSpec) -> Vec<FieldError> {
    let class = &class.spec;
    let pairs = [
        (
            "infrastructureRef",
            &spec.infrastructure_ref,
            &class.infrastructure.template_ref,
        ),
        (
            "controlPlaneRef",
            &spec.control_plane_ref,
            &class.control_plane.template_ref,
        ),
    ];
    let mut errors = Vec::new();
    for (field, known, template) in pairs {
        let Some(known) = known else { continue };
        let group = template.api_version.split('/').next().unwrap_or_default();
        let kind = template
            .kind
            .strip_suffix("Template")
            .unwrap_or(&template.kind);
        if (known.api_group.as_str(), known.kind.as_str()) != (group, kind) {
            let message = format!(
                "the ClusterClass has a {kind} of {group}, and spec.{field} names a {} of {}: choose a class of the same kind",
                known.kind, known.api_group,
            );
            errors.push(FieldError::new("spec.topology.classRef.name", message));
        }
    }
    errors
}

/// Returns the values of one part of a topology that override the values of the cluster.
pub fn overrides(part: Option<&api::core::v1beta2::VariableOverrides>) -> &[Variable] {
    let values = part.and_then(|part| part.overrides.as_deref());
    values.unwrap_or_default()
}

/// Returns a [`FieldError`] for every violation of a topology with defaults. `reached` is the version of the control
/// plane, if there is one.
pub fn problems(
    class: &ClusterClass,
    definitions: &[Definition],
    topology: &Topology,
    reached: Option<&str>,
) -> Vec<FieldError> {
    let mut errors = of_variables(definitions, topology);
    of_workers(class, topology, &mut errors);
    of_health(class, topology, &mut errors);
    version(class, topology, reached, &mut errors);
    errors
}

fn of_variables(definitions: &[Definition], topology: &Topology) -> Vec<FieldError> {
    let values = topology.variables.as_deref().unwrap_or_default();
    let mut errors = variables::validate(
        definitions,
        Values {
            path: "spec.topology.variables",
            values,
            complete: true,
        },
    );
    let mut part = |path: &str, given: Option<&api::core::v1beta2::VariableOverrides>| {
        let found = variables::validate(
            definitions,
            Values {
                path: &format!("spec.topology.{path}.variables.overrides"),
                values: overrides(given),
                complete: false,
            },
        );
        errors.extend(found);
    };
    let plane = topology.control_plane.as_ref();
    part(
        "controlPlane",
        plane.and_then(|plane| plane.variables.as_ref()),
    );
    let workers = topology.workers.as_ref();
    let all = workers.and_then(|workers| workers.machine_deployments.as_deref());
    for (at, deployment) in all.unwrap_or_default().iter().enumerate() {
        let path = format!("workers.machineDeployments[{at}]");
        part(&path, deployment.variables.as_ref());
    }
    errors
}

fn of_workers(class: &ClusterClass, topology: &Topology, errors: &mut Vec<FieldError>) {
    let workers = topology.workers.as_ref();
    let all = workers.and_then(|workers| workers.machine_deployments.as_deref());
    for (at, deployment) in all.unwrap_or_default().iter().enumerate() {
        if class.machine_deployment(&deployment.class).is_none() {
            let known: Vec<_> = class
                .machine_deployments()
                .iter()
                .map(|known| known.class.as_str())
                .collect();
            errors.push(FieldError::new(
                format!("spec.topology.workers.machineDeployments[{at}].class"),
                format!(
                    "ClusterClass has no class of MachineDeployments {}; it has: {}",
                    deployment.class,
                    known.join(", ")
                ),
            ));
        }
    }
}

/// Checks that an enabled health check is defined.
fn of_health(class: &ClusterClass, topology: &Topology, errors: &mut Vec<FieldError>) {
    let plane = topology.control_plane.as_ref();
    let check = plane.and_then(|plane| plane.health_check.as_ref());
    let of_class = class.spec.control_plane.health_check.as_ref();
    let defined = check.is_some_and(|check| check.checks.is_some() || check.remediation.is_some())
        || of_class.is_some();
    let path = "spec.topology.controlPlane.healthCheck";
    if check.is_some_and(|check| check.enabled == Some(true)) && !defined {
        let message = "neither the Cluster nor its ClusterClass says what an unhealthy machine is";
        errors.push(FieldError::new(format!("{path}.enabled"), message));
    }
    if check.is_some() && class.spec.control_plane.machine_infrastructure.is_none() {
        let message = "the control plane of the ClusterClass has no machines";
        errors.push(FieldError::new(path, message));
    }
    let workers = topology.workers.as_ref();
    let all = workers.and_then(|workers| workers.machine_deployments.as_deref());
    for (at, deployment) in all.unwrap_or_default().iter().enumerate() {
        let check = deployment.health_check.as_ref();
        let of_class = class.machine_deployment(&deployment.class);
        let of_class = of_class.and_then(|class| class.health_check.as_ref());
        let defined = check
            .is_some_and(|check| check.checks.is_some() || check.remediation.is_some())
            || of_class.is_some();
        if check.is_some_and(|check| check.enabled == Some(true)) && !defined {
            let path =
                format!("spec.topology.workers.machineDeployments[{at}].healthCheck.enabled");
            let message =
                "neither the Cluster nor its ClusterClass says what an unhealthy machine is";
            errors.push(FieldError::new(path, message));
        }
    }
}

/// Checks that the class lists the version, if the class lists any. The present version of the control plane may have
/// left the list.
fn version(
    class: &ClusterClass,
    topology: &Topology,
    reached: Option<&str>,
    errors: &mut Vec<FieldError>,
) {
    let listed = class.spec.kubernetes_versions.as_deref();
    let way = reached.map(|reached| reachable(reached, &topology.version, listed));
    if let Some(Err(message)) = way {
        errors.push(FieldError::new("spec.topology.version", message));
        return;
    }
    let Some(listed) = listed else {
        return;
    };
    if reached != Some(&topology.version) && !listed.contains(&topology.version) {
        let message = format!(
            "{} is not one of the versions of the ClusterClass: {}",
            topology.version,
            listed.join(", ")
        );
        errors.push(FieldError::new("spec.topology.version", message));
    }
}

#[cfg(test)]
mod tests;
