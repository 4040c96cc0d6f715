//! Defaults and validation of MachineHealthChecks.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};

use super::check::{is_int_or_percent, text, unchanged};
use super::{entry, fields, label_with_cluster};
use crate::change::{Change, FieldError};
use crate::selector;

/// Default of `nodeStartupTimeoutSeconds`.
const STARTUP: i64 = 600;
/// Minimum other than 0; 0 disables the check.
const SHORTEST_STARTUP: i64 = 30;

pub(super) fn defaults(object: &mut Value) {
    label_with_cluster(object);
    if let Some(spec) = fields(object, "spec") {
        let checks = entry(spec, "checks");
        checks
            .entry("nodeStartupTimeoutSeconds")
            .or_insert_with(|| json!(STARTUP));
    }
}

pub(super) fn validate(change: Change<'_>) -> Vec<FieldError> {
    let (object, mut errors) = (change.object, Vec::new());
    unchanged(change, &mut errors);
    let selector = object.pointer("/spec/selector");
    let selector = selector.and_then(|value| LabelSelector::deserialize(value).ok());
    errors.extend(selector.iter().flat_map(selects));
    let startup = object.pointer("/spec/checks/nodeStartupTimeoutSeconds");
    let startup = startup.and_then(Value::as_i64).unwrap_or(STARTUP);
    if startup != 0 && startup < SHORTEST_STARTUP {
        let message = format!(
            "{startup} is too short for a Node to appear: at least {SHORTEST_STARTUP}, or 0 for no limit"
        );
        let path = "spec.checks.nodeStartupTimeoutSeconds";
        errors.push(FieldError::new(path, message));
    }
    errors.extend(trigger(object));
    errors
}

/// Rejects an empty selector, since all machines would match.
fn selects(selector: &LabelSelector) -> Vec<FieldError> {
    if selector::is_empty(selector) {
        let message = "must not be empty: name a label of the machines, such as cluster.x-k8s.io/deployment-name";
        return vec![FieldError::new("spec.selector", message)];
    }
    expressions(selector, "spec.selector")
}

/// Errors in the expressions of the selector at `path`: an unknown operator would match nothing.
pub(crate) fn expressions(selector: &LabelSelector, path: &str) -> Vec<FieldError> {
    let expressions = selector.match_expressions.iter().flatten().enumerate();
    let wrong = expressions.filter_map(|(at, expression)| {
        let values = expression
            .values
            .as_ref()
            .is_some_and(|list| !list.is_empty());
        let message = match (expression.operator.as_str(), values) {
            ("In" | "NotIn", true) | ("Exists" | "DoesNotExist", false) => return None,
            ("In" | "NotIn", false) => "needs values".to_owned(),
            ("Exists" | "DoesNotExist", true) => {
                "has values, which its operator ignores".to_owned()
            }
            (other, _) => format!("{other} is not one of In, NotIn, Exists, DoesNotExist"),
        };
        let path = format!("{path}.matchExpressions[{at}]");
        Some(FieldError::new(path, message))
    });
    wrong.collect()
}

fn trigger(object: &Value) -> Vec<FieldError> {
    let at = "/spec/remediation/triggerIf";
    let mut errors = Vec::new();
    let most = object.pointer(&format!("{at}/unhealthyLessThanOrEqualTo"));
    if let Some(value) = most.filter(|value| !is_int_or_percent(value)) {
        errors.push(FieldError::new(
            "spec.remediation.triggerIf.unhealthyLessThanOrEqualTo",
            format!("{value} is neither a number of machines nor a percentage such as 40%"),
        ));
    }
    if let Some(range) = text(object, &format!("{at}/unhealthyInRange"))
        && crate::core::unhealthy_range(range).is_none()
    {
        errors.push(FieldError::new(
            "spec.remediation.triggerIf.unhealthyInRange",
            format!("{range} is not a range such as [3-5], from the smaller number to the larger"),
        ));
    }
    errors
}

#[cfg(test)]
mod tests;
