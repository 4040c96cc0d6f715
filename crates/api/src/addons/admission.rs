//! Defaults and validation of the group, with the rules of the upstream webhooks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};

use super::GROUP;
use crate::change::{Change, FieldError};
use crate::core::admission::{expressions, kind_within};
use crate::selector;

/// Sets the webhook defaults; objects of other groups are unchanged.
pub(crate) fn default_object(object: &mut Value) {
    if kind_within(GROUP, object) != Some("ClusterResourceSet") {
        return;
    }
    if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let unset = spec.get("strategy").is_none_or(Value::is_null);
        if unset {
            spec.insert("strategy".to_owned(), json!("ApplyOnce"));
        }
    }
}

/// Errors of an object of this group.
pub(crate) fn validate(change: Change<'_>) -> Vec<FieldError> {
    match kind_within(GROUP, change.object) {
        Some("ClusterResourceSet") => set(change),
        Some("ClusterResourceSetBinding") => fixed(change, &["clusterName"]),
        _ => Vec::new(),
    }
}

fn set(change: Change<'_>) -> Vec<FieldError> {
    let mut errors = fixed(change, &["strategy", "clusterSelector"]);
    let selector = change.object.pointer("/spec/clusterSelector");
    let selector = selector.and_then(|value| LabelSelector::deserialize(value).ok());
    if selector.as_ref().is_some_and(selector::is_empty) {
        let message = "must not be empty: name a label of the Clusters";
        errors.push(FieldError::new("spec.clusterSelector", message));
    }
    for selector in selector.iter() {
        errors.extend(expressions(selector, "spec.clusterSelector"));
    }
    errors
}

/// Rejects a [`Change`] of immutable fields. Setting an unset field is permitted.
fn fixed(change: Change<'_>, fields: &[&str]) -> Vec<FieldError> {
    let Some(old) = change.changed_from else {
        return Vec::new();
    };
    let mut errors = Vec::new();
    for field in fields {
        let was = &old["spec"][*field];
        if !was.is_null() && *was != change.object["spec"][*field] {
            let message = format!("cannot be changed; it is {was}. Create another object");
            errors.push(FieldError::new(format!("spec.{field}"), message));
        }
    }
    errors
}

#[cfg(test)]
mod tests;
