//! Defaulting and validation of the bootstrap kinds, beyond schemas.
//!
//! Rules of the upstream webhooks, for objects in v1beta2.

use serde_json::Value;

use super::GROUP;
use crate::change::{Change, FieldError};

/// Sets the webhook defaults of Cluster API: none since v1beta2.
pub(crate) fn default_object(_object: &mut Value, _old: Option<&Value>) {}

/// Errors of an object of this group.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let path = match kind_of(change.object, GROUP) {
        Some("KubeadmConfig") => "spec",
        Some("KubeadmConfigTemplate") => "spec.template.spec",
        _ => return errors,
    };
    if let Some(spec) = at(change.object, path) {
        spec_problems(spec, path, &mut errors);
    }
    errors
}

/// Kind of an object, if of `group`.
pub(crate) fn kind_of<'a>(object: &'a Value, group: &str) -> Option<&'a str> {
    let version = object.get("apiVersion")?.as_str()?;
    version.strip_prefix(group)?.strip_prefix('/')?;
    object.get("kind")?.as_str()
}

/// Value at a path of field names, separated by dots.
pub(crate) fn at<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').try_fold(object, |at, name| at.get(name))
}

/// Appends the errors of a [`KubeadmConfigSpec`](super::v1beta2::KubeadmConfigSpec) at `path`.
pub(crate) fn spec_problems(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    files(spec, path, errors);
    users(spec, path, errors);
    ignition(spec, path, errors);
    disks(spec, path, errors);
    timeouts(spec, path, errors);
}

fn items<'a>(spec: &'a Value, name: &str) -> &'a [Value] {
    spec.get(name)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn files(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut known = Vec::new();
    for (index, file) in items(spec, "files").iter().enumerate() {
        let here = format!("{path}.files[{index}]");
        if file.get("content").is_some() && file.get("contentFrom").is_some() {
            let text = "only one of content and contentFrom may be set";
            errors.push(FieldError::new(here.clone(), text));
        }
        let name = file.get("path").and_then(Value::as_str).unwrap_or_default();
        if known.contains(&name) {
            errors.push(FieldError::new(
                format!("{here}.path"),
                format!("{name} is written by another entry of files already"),
            ));
        }
        known.push(name);
    }
}

fn users(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    for (index, user) in items(spec, "users").iter().enumerate() {
        if user.get("passwd").is_some() && user.get("passwdFrom").is_some() {
            let text = "only one of passwd and passwdFrom may be set";
            errors.push(FieldError::new(format!("{path}.users[{index}]"), text));
        }
    }
}

/// Rejects fields without support in Ignition.
fn ignition(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let is_ignition = spec.get("format").and_then(Value::as_str) == Some("ignition");
    if !is_ignition {
        if spec.get("ignition").is_some() {
            let text = "must not be set unless format is ignition";
            errors.push(FieldError::new(format!("{path}.ignition"), text));
        }
        return;
    }
    if spec.get("bootCommands").is_some() {
        let text = "cannot be used with the format ignition";
        errors.push(FieldError::new(format!("{path}.bootCommands"), text));
    }
    for (index, user) in items(spec, "users").iter().enumerate() {
        if user.get("inactive") == Some(&Value::Bool(true)) {
            let text = "cannot be used with the format ignition";
            errors.push(FieldError::new(
                format!("{path}.users[{index}].inactive"),
                text,
            ));
        }
    }
}

fn disks(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let partitions = spec
        .get("diskSetup")
        .map_or(&[][..], |setup| items(setup, "partitions"));
    for (index, partition) in partitions.iter().enumerate() {
        let share = |part: &Value| part.get("percentage").and_then(Value::as_i64).unwrap_or(0);
        let total: i64 = items(partition, "diskLayout").iter().map(share).sum();
        if total > 100 {
            errors.push(FieldError::new(
                format!("{path}.diskSetup.partitions[{index}].diskLayout"),
                format!("percentages add up to {total}, more than 100"),
            ));
        }
    }
}

/// Requires equal timeouts if both are set: kubeadm before 1.31 has a single one.
fn timeouts(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = "timeouts.controlPlaneComponentHealthCheckSeconds";
    let init = at(spec, &format!("initConfiguration.{field}"));
    let join = at(spec, &format!("joinConfiguration.{field}"));
    if let (Some(init), Some(join)) = (init, join)
        && init != join
    {
        errors.push(FieldError::new(
            format!("{path}.joinConfiguration.{field}"),
            format!("must be {init}, as in {path}.initConfiguration.{field}"),
        ));
    }
}

#[cfg(test)]
mod tests;
