//! Validation of ClusterClasses beyond schemas: references, and features not built. Variables and patches are validated
//! by the crate that evaluates them.

use serde_json::Value;

use super::check::text;
use super::taints::reserved;
use crate::change::{Change, FieldError};

/// Maximum length of label values.
const LONGEST_LABEL: usize = 63;
/// References to templates outside of lists.
const TEMPLATES: [&str; 3] = [
    "spec.infrastructure.templateRef",
    "spec.controlPlane.templateRef",
    "spec.controlPlane.machineInfrastructure.templateRef",
];

pub(super) fn validate(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    not_built(change.object, &mut errors);
    for path in TEMPLATES {
        template(change.object, path, &mut errors);
        unchanged(change, path, &mut errors);
    }
    let classes = list(change.object, "/spec/workers/machineDeployments");
    for (at, class) in classes.iter().enumerate() {
        let path = format!("spec.workers.machineDeployments[{at}]");
        for part in ["bootstrap", "infrastructure"] {
            let path = format!("{path}.{part}.templateRef");
            template_in(class, part, &path, &mut errors);
        }
        reserved(class.get("taints"), &format!("{path}.taints"), &mut errors);
        let name = text(class, "/class").unwrap_or_default();
        if !is_label(name) {
            let message = format!("{name} is not a valid value of a label");
            errors.push(FieldError::new(format!("{path}.class"), message));
        }
    }
    let taints = change.object.pointer("/spec/controlPlane/taints");
    reserved(taints, "spec.controlPlane.taints", &mut errors);
    versions(change.object, &mut errors);
    errors
}

pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    let items = object.pointer(pointer).and_then(Value::as_array);
    items.map_or(&[], Vec::as_slice)
}

/// Rejects fields that the schema accepts and no controller reads.
fn not_built(object: &Value, errors: &mut Vec<FieldError>) {
    let mut reject = |path: String, message: &str| errors.push(FieldError::new(path, message));
    if !list(object, "/spec/workers/machinePools").is_empty() {
        let message = "classes of MachinePools are not built: use machineDeployments";
        reject("spec.workers.machinePools".to_owned(), message);
    }
    if object
        .pointer("/spec/upgrade/external")
        .is_some_and(|external| !external.is_null())
    {
        let message = "runtime extensions are not built: list versions in spec.kubernetesVersions";
        reject("spec.upgrade.external".to_owned(), message);
    }
    if !list(object, "/spec/availabilityGates").is_empty() {
        let message = "gates of a ClusterClass are not built: set them in spec.availabilityGates of each Cluster";
        reject("spec.availabilityGates".to_owned(), message);
    }
    for (at, patch) in list(object, "/spec/patches").iter().enumerate() {
        let path = format!("spec.patches[{at}]");
        if patch
            .get("external")
            .is_some_and(|external| !external.is_null())
        {
            let message = "runtime extensions are not built: use definitions with jsonPatches";
            reject(format!("{path}.external"), message);
        }
        for (index, definition) in list(patch, "/definitions").iter().enumerate() {
            let pools = definition.pointer("/selector/matchResources/machinePoolClass");
            if pools.is_some_and(|pools| !pools.is_null()) {
                let path =
                    format!("{path}.definitions[{index}].selector.matchResources.machinePoolClass");
                reject(path, "classes of MachinePools are not built");
            }
        }
    }
}

fn pointer(path: &str) -> String {
    format!("/{}", path.replace('.', "/"))
}

fn template(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(reference) = object.pointer(&pointer(path)) {
        of_template(reference, path, errors);
    }
}

fn template_in(class: &Value, part: &str, path: &str, errors: &mut Vec<FieldError>) {
    if let Some(reference) = class.pointer(&format!("/{part}/templateRef")) {
        of_template(reference, path, errors);
    }
}

fn of_template(reference: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let kind = text(reference, "/kind").unwrap_or_default();
    if kind.strip_suffix("Template").is_none_or(str::is_empty) {
        let message = format!("{kind} is not the kind of a template: it must end in Template");
        errors.push(FieldError::new(format!("{path}.kind"), message));
    }
}

/// Rejects a changed kind of a template: objects of the Clusters have the former kind.
fn unchanged(change: Change<'_>, path: &str, errors: &mut Vec<FieldError>) {
    let Some(old) = change.changed_from else {
        return;
    };
    let kind = |object: &Value| {
        let reference = object.pointer(&pointer(path))?;
        let group = text(reference, "/apiVersion")?.split('/').next()?;
        Some(format!("{} in {group}", text(reference, "/kind")?))
    };
    let (was, is) = (kind(old), kind(change.object));
    if was != is {
        let word = |kind: Option<String>| kind.unwrap_or_else(|| "none".to_owned());
        let message = format!(
            "cannot change from {} to {}: create another ClusterClass",
            word(was),
            word(is)
        );
        errors.push(FieldError::new(path, message));
    }
}

pub(super) fn is_label(name: &str) -> bool {
    let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    let mut bytes = name.bytes();
    name.len() <= LONGEST_LABEL
        && edge(bytes.next())
        && edge(name.bytes().next_back())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Requires ascending versions, with at least one of each minor release.
fn versions(object: &Value, errors: &mut Vec<FieldError>) {
    let mut before: Option<crate::version::Version> = None;
    for (at, version) in list(object, "/spec/kubernetesVersions").iter().enumerate() {
        let path = format!("spec.kubernetesVersions[{at}]");
        let written = version.as_str().unwrap_or_default();
        let parsed = written.parse::<crate::version::Version>().ok();
        let Some(parsed) = parsed.filter(|_| written.starts_with('v')) else {
            let message = format!("{written} is not a version such as v1.34.1");
            errors.push(FieldError::new(path, message));
            continue;
        };
        if let Some(before) = &before {
            let ((major, minor), (next_major, next_minor)) =
                (before.major_minor(), parsed.major_minor());
            if parsed <= *before {
                let message = format!("{written} is not later than v{before}, which is before it");
                errors.push(FieldError::new(path, message));
            } else if next_major != major || next_minor > minor + 1 {
                let message = format!("leaves out minor releases after v{before}");
                errors.push(FieldError::new(path, message));
            }
        }
        before = Some(parsed);
    }
}

#[cfg(test)]
mod tests;
