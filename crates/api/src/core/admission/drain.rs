//! Validation of MachineDrainRules.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::Value;

use super::check::text;
use super::health::expressions;
use crate::change::{Change, FieldError};

/// Lists of selectors, with the fields of their elements.
const LISTS: [(&str, [&str; 2]); 2] = [
    ("machines", ["selector", "clusterSelector"]),
    ("pods", ["selector", "namespaceSelector"]),
];

pub(super) fn validate(change: Change<'_>) -> Vec<FieldError> {
    let (object, mut errors) = (change.object, Vec::new());
    let behavior = text(object, "/spec/drain/behavior").unwrap_or_default();
    let order = object.pointer("/spec/drain/order");
    if behavior != "Drain" && order.is_some_and(|order| !order.is_null()) {
        let message = format!("has no effect with behavior {behavior}: only with Drain");
        errors.push(FieldError::new("spec.drain.order", message));
    }
    for (list, fields) in LISTS {
        let items = object.pointer(&format!("/spec/{list}"));
        let items = items.and_then(Value::as_array).map(Vec::as_slice);
        let items = items.unwrap_or_default();
        for (at, item) in items.iter().enumerate() {
            let path = format!("spec.{list}[{at}]");
            if let Some(first) = items[..at].iter().position(|earlier| earlier == item) {
                let message = format!("is the same as spec.{list}[{first}]");
                errors.push(FieldError::new(path.clone(), message));
            }
            for field in fields {
                if let Ok(selector) = LabelSelector::deserialize(&item[field]) {
                    errors.extend(expressions(&selector, &format!("{path}.{field}")));
                }
            }
        }
    }
    errors
}

#[cfg(test)]
mod tests;
