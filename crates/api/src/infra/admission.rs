//! Validation beyond the schemas of this group: formats, relations between fields, and immutable fields.
//!
//! The Go webhooks compare the whole spec and return "cannot be modified". Here, every error has the path of its field:
//! [`mutability`] has a table row for each mutable field.

mod formats;
mod identity;
mod mutability;
mod subnets;
mod zones;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::GROUP;
use super::v1alpha1::{OpenStackFloatingIPPoolSpec, OpenStackServerSpec};
use super::v1beta2::{OpenStackClusterSpec, OpenStackMachineSpec};
use crate::change::{Change, FieldError};
use crate::names::UPDATE_IN_PROGRESS_ANNOTATION;

/// Annotation on a dry run of ClusterClass; a dry run may also change immutable fields.
const TOPOLOGY_DRY_RUN: &str = "topology.cluster.x-k8s.io/dry-run";

/// Errors of an object of this group; none for other groups.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    let version = change
        .object
        .get("apiVersion")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let ours = version
        .strip_prefix(GROUP)
        .is_some_and(|rest| matches!(rest, "/v1beta2" | "/v1alpha1"));
    let kind = change
        .object
        .get("kind")
        .and_then(Value::as_str)
        .unwrap_or_default();
    if !ours {
        return Vec::new();
    }
    // Annotations are checked even without a change of the spec.
    let lost = identity::check(change);
    if !lost.is_empty() || !change.judges_spec {
        return lost;
    }
    match kind {
        "OpenStackCluster" => cluster(change),
        "OpenStackClusterTemplate" => cluster_template(change),
        "OpenStackMachine" => machine(change),
        "OpenStackMachineTemplate" => machine_template(change),
        "OpenStackFloatingIPPool" => pool(change),
        "OpenStackServer" => server(change),
        _ => Vec::new(),
    }
}

fn cluster(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(old) = change.changed_from {
        mutability::cluster(old, change.object, &mut errors);
    }
    let check = |spec: &OpenStackClusterSpec, path: &str, errors: &mut Vec<FieldError>| {
        formats::cluster(spec, path, errors);
        formats::groups_that_exist(spec, path, errors);
    };
    checked::<OpenStackClusterSpec>(change.object, "spec", check, &mut errors);
    errors
}

fn cluster_template(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(old) = change.changed_from {
        mutability::nothing_but(old, change.object, "spec.template.spec", &[], &mut errors);
    }
    checked::<OpenStackClusterSpec>(
        change.object,
        "spec.template.spec",
        formats::cluster,
        &mut errors,
    );
    errors
}

fn machine(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if let Some(old) = change.changed_from {
        let annotations = change.object.pointer("/metadata/annotations");
        let may_change = match annotations.and_then(|it| it.get(UPDATE_IN_PROGRESS_ANNOTATION)) {
            Some(_) => mutability::MACHINE_IN_PLACE,
            None => mutability::MACHINE,
        };
        mutability::nothing_but(old, change.object, "spec", may_change, &mut errors);
    }
    checked::<OpenStackMachineSpec>(change.object, "spec", formats::machine, &mut errors);
    errors
}

/// Fields of an OpenStackMachine that an update in place writes.
pub(crate) const FIELDS_IN_PLACE: [&str; 3] = ["image", "identityRef", "ports"];

/// Differences of two specs of OpenStackMachines for which the server has to be replaced, with the reason.
pub(crate) fn differences_in_place(have: &Value, want: &Value) -> Vec<String> {
    let [old, new] = [have, want].map(|spec| json!({ "spec": spec }));
    let mut errors = Vec::new();
    let may_change = mutability::MACHINE_IN_PLACE;
    mutability::nothing_but(&old, &new, "spec", may_change, &mut errors);
    let differs = |error: FieldError| format!("{} differs", error.path);
    let mut lines: Vec<_> = errors.into_iter().map(differs).collect();
    if lines.is_empty() && have.get("rootVolume").is_some_and(|it| !it.is_null()) {
        lines.push("spec.rootVolume: servers that boot from a volume are replaced".to_owned());
    }
    lines
}

fn machine_template(change: Change<'_>) -> Vec<FieldError> {
    const SPEC: &str = "spec.template.spec";
    let mut errors = Vec::new();
    match change.changed_from {
        Some(old) if !is_trial(change) => {
            let may_change = mutability::MACHINE_TEMPLATE;
            mutability::nothing_but(old, change.object, SPEC, may_change, &mut errors);
        }
        _ => {}
    }
    if change
        .object
        .pointer("/spec/template/spec/providerID")
        .is_some()
    {
        errors.push(FieldError::new(
            format!("{SPEC}.providerID"),
            "belongs to one machine and cannot be given in a template",
        ));
    }
    checked::<OpenStackMachineSpec>(change.object, SPEC, formats::machine, &mut errors);
    errors
}

fn pool(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    checked::<OpenStackFloatingIPPoolSpec>(change.object, "spec", formats::pool, &mut errors);
    errors
}

fn server(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    match change.changed_from {
        Some(old) if !is_trial(change) => {
            let may_change = mutability::SERVER;
            mutability::nothing_but(old, change.object, "spec", may_change, &mut errors);
        }
        _ => {}
    }
    let check = |spec: &OpenStackServerSpec, path: &str, errors: &mut Vec<FieldError>| {
        formats::machine(&spec.as_machine(), path, errors);
    };
    checked::<OpenStackServerSpec>(change.object, "spec", check, &mut errors);
    errors
}

/// True for a dry run of ClusterClass.
fn is_trial(change: Change<'_>) -> bool {
    let annotations = change.object.pointer("/metadata/annotations");
    change.dry_run && annotations.is_some_and(|it| it.get(TOPOLOGY_DRY_RUN).is_some())
}

/// Decodes the spec at `path` and runs `check`. Decoding errors are reported by `admission::decode`.
fn checked<S: DeserializeOwned>(
    object: &Value,
    path: &str,
    check: fn(&S, &str, &mut Vec<FieldError>),
    errors: &mut Vec<FieldError>,
) {
    let pointer = format!("/{}", path.replace('.', "/"));
    let spec = object.pointer(&pointer).cloned().unwrap_or_default();
    if let Ok(spec) = serde_json::from_value(spec) {
        check(&spec, path, errors);
    }
}

#[cfg(test)]
mod tests;
