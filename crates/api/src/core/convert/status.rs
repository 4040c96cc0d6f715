//! Conversion of the status.
//!
//! From v1beta2 to v1beta1 all fields are computed, so that clients never read outdated values. From v1beta1 to v1beta2
//! the fields in `v1beta2` take precedence; conditions and counters of v1beta1 are preserved in `deprecated` only
//! without such fields.

use serde_json::{Map, Value, json};

use crate::conversion::fields::{Done, Fields, nested, take};

/// Counters of MachineSets with another meaning in v1beta1.
const SET_COUNTERS: [&str; 3] = ["readyReplicas", "availableReplicas", "fullyLabeledReplicas"];
/// Counters of MachineDeployments with another meaning in v1beta1.
const DEPLOYMENT_COUNTERS: [&str; 4] = [
    "readyReplicas",
    "availableReplicas",
    "updatedReplicas",
    "unavailableReplicas",
];

pub(super) fn cluster_up(fields: &mut Fields) -> Done {
    up(fields, &[]);
    step_up(fields, "infrastructureReady", "infrastructureProvisioned");
    step_up(fields, "controlPlaneReady", "controlPlaneInitialized");
    if let Some(Value::Object(domains)) = fields.remove("failureDomains") {
        let mut list = Vec::new();
        for (name, value) in domains {
            let mut domain = value.as_object().cloned().unwrap_or_default();
            domain.insert("name".to_owned(), json!(name));
            list.push(Value::Object(domain));
        }
        if !list.is_empty() {
            fields.insert("failureDomains".to_owned(), Value::Array(list));
        }
    }
    Ok(())
}

pub(super) fn cluster_down(fields: &mut Fields) -> Done {
    let mut new = Map::new();
    for name in ["controlPlane", "workers"] {
        new.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    step_down(fields, "infrastructureProvisioned", "infrastructureReady");
    step_down(fields, "controlPlaneInitialized", "controlPlaneReady");
    fields.remove("initialization");
    if let Some(Value::Array(domains)) = fields.remove("failureDomains") {
        let mut map = Map::new();
        for mut domain in domains {
            let name = domain
                .as_object_mut()
                .and_then(|domain| domain.remove("name"));
            if let Some(Value::String(name)) = name {
                map.insert(name, domain);
            }
        }
        fields.insert("failureDomains".to_owned(), Value::Object(map));
    }
    down(fields, new);
    Ok(())
}

pub(super) fn machine_up(fields: &mut Fields) -> Done {
    up(fields, &[]);
    step_up(fields, "infrastructureReady", "infrastructureProvisioned");
    step_up(fields, "bootstrapReady", "bootstrapDataSecretCreated");
    if let Some(reference) = fields.remove("nodeRef") {
        let name = reference
            .get("name")
            .cloned()
            .filter(|name| *name != json!(""));
        fields.extend(name.map(|name| ("nodeRef".to_owned(), json!({ "name": name }))));
    }
    Ok(())
}

pub(super) fn machine_down(fields: &mut Fields) -> Done {
    step_down(fields, "infrastructureProvisioned", "infrastructureReady");
    step_down(fields, "bootstrapDataSecretCreated", "bootstrapReady");
    fields.remove("initialization");
    if let Some(reference) = fields.get_mut("nodeRef") {
        *reference = json!({ "apiVersion": "v1", "kind": "Node", "name": reference["name"] });
    }
    // In v1beta1 only the spec has this field.
    fields.remove("failureDomain");
    // v1beta1 lacks the phase.
    if fields.get("phase") == Some(&json!("Updating")) {
        fields.insert("phase".to_owned(), json!("Running"));
    }
    down(fields, Map::new());
    Ok(())
}

pub(super) fn set_up(fields: &mut Fields) -> Done {
    up(fields, &SET_COUNTERS);
    Ok(())
}

pub(super) fn set_down(fields: &mut Fields) -> Done {
    let new = counters(fields);
    let count = |name: &str| new.get(name).cloned().unwrap_or_else(|| json!(0));
    for name in ["readyReplicas", "availableReplicas"] {
        fields.insert(name.to_owned(), count(name));
    }
    let all = fields.get("replicas").cloned().unwrap_or_else(|| json!(0));
    fields.insert("fullyLabeledReplicas".to_owned(), all);
    down(fields, new);
    Ok(())
}

pub(super) fn deployment_up(fields: &mut Fields) -> Done {
    up(fields, &DEPLOYMENT_COUNTERS);
    Ok(())
}

pub(super) fn deployment_down(fields: &mut Fields) -> Done {
    let new = counters(fields);
    let count = |name: &str| new.get(name).and_then(Value::as_i64).unwrap_or(0);
    let all = fields.get("replicas").and_then(Value::as_i64).unwrap_or(0);
    for (name, value) in [
        ("readyReplicas", count("readyReplicas")),
        ("availableReplicas", count("availableReplicas")),
        ("updatedReplicas", count("upToDateReplicas")),
        (
            "unavailableReplicas",
            (all - count("availableReplicas")).max(0),
        ),
    ] {
        fields.insert(name.to_owned(), json!(value));
    }
    down(fields, new);
    Ok(())
}

/// Status of a kind with nothing but conditions.
pub(crate) fn conditions_up(fields: &mut Fields) -> Done {
    up(fields, &[]);
    Ok(())
}

/// Inverse of [`conditions_up`].
pub(crate) fn conditions_down(fields: &mut Fields) -> Done {
    down(fields, Map::new());
    Ok(())
}

/// Removes the counters of v1beta2 and returns them.
fn counters(fields: &mut Fields) -> Fields {
    let mut new = Map::new();
    for name in ["readyReplicas", "availableReplicas", "upToDateReplicas"] {
        new.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    new
}

/// Moves the fields of `v1beta2` one level up; without such fields, moves conditions and counters of v1beta1 to
/// `deprecated`.
fn up(fields: &mut Fields, counters: &[&str]) {
    let mut old = Map::new();
    for name in ["conditions", "failureReason", "failureMessage"]
        .iter()
        .chain(counters)
    {
        old.extend(
            fields
                .remove(*name)
                .map(|value| ((*name).to_owned(), value)),
        );
    }
    match fields.remove("v1beta2") {
        // Conditions and counters were computed from these.
        Some(Value::Object(new)) => {
            fields.extend(new);
            old.retain(|name, _| name.starts_with("failure"));
        }
        _ => old.retain(|_, value| *value != json!([])),
    }
    if !old.is_empty() {
        nested(fields, &["deprecated"]).insert("v1beta1".to_owned(), Value::Object(old));
    }
}

/// Moves the fields unique to v1beta2 to `v1beta2`, and computes the conditions of v1beta1.
fn down(fields: &mut Fields, mut new: Fields) {
    let deprecated = fields.remove("deprecated").and_then(|mut all| {
        all.get_mut("v1beta1")
            .and_then(Value::as_object_mut)
            .map(std::mem::take)
    });
    if let Some(Value::Array(conditions)) = fields.remove("conditions") {
        let old = conditions.iter().map(without_generation).collect();
        new.insert("conditions".to_owned(), Value::Array(conditions));
        fields.insert("conditions".to_owned(), Value::Array(old));
    }
    for (name, value) in deprecated.into_iter().flatten() {
        // Computed values take precedence.
        fields.entry(name).or_insert(value);
    }
    if !new.is_empty() {
        fields.insert("v1beta2".to_owned(), Value::Object(new));
    }
}

fn without_generation(condition: &Value) -> Value {
    let mut old = condition.as_object().cloned().unwrap_or_default();
    old.remove("observedGeneration");
    old.retain(|name, value| name != "message" || *value != json!(""));
    let is_bad = old.get("status") == Some(&json!("False"));
    if is_bad {
        old.insert("severity".to_owned(), json!("Info"));
    }
    Value::Object(old)
}

fn step_up(fields: &mut Fields, old: &str, new: &str) {
    if fields.remove(old) == Some(json!(true)) {
        nested(fields, &["initialization"]).insert(new.to_owned(), json!(true));
    }
}

fn step_down(fields: &mut Fields, new: &str, old: &str) {
    let done = take(fields, &["initialization", new]) == Some(json!(true));
    fields.insert(old.to_owned(), json!(done));
}
