//! Conversion v1beta1 <-> v1beta2 of KubeadmControlPlane and KubeadmControlPlaneTemplate, without loss.

use serde_json::{Map, Value, json};

use super::GROUP;
use crate::bootstrap::convert::spec::{self, prune};
use crate::bootstrap::convert::{conditions_down, conditions_up};
use crate::conversion::fields::{not_a_duration, seconds_of, within};
use crate::conversion::{ConversionError, Mapping, duration};

/// Timeouts of machines: names in v1beta1 and in v1beta2.
const TIMEOUTS: [(&str, &str); 3] = [
    ("nodeDrainTimeout", "nodeDrainTimeoutSeconds"),
    ("nodeVolumeDetachTimeout", "nodeVolumeDetachTimeoutSeconds"),
    ("nodeDeletionTimeout", "nodeDeletionTimeoutSeconds"),
];
/// Durations of remediation: names in v1beta1 and in v1beta2.
const PERIODS: [(&str, &str); 2] = [
    ("retryPeriod", "retryPeriodSeconds"),
    ("minHealthyPeriod", "minHealthyPeriodSeconds"),
];
/// Fields moved into `machineTemplate.spec` without change.
const MOVED: [&str; 2] = ["readinessGates", "taints"];

/// Converts an object of this group; `None` for other kinds and versions.
pub(crate) fn convert(
    object: &Value,
    kind: &str,
    from: &str,
    to: &str,
) -> Option<Result<Value, ConversionError>> {
    let mapping = match kind {
        "KubeadmControlPlane" => Mapping {
            up: spec_up,
            down: spec_down,
            status: Some((status_up, status_down)),
            older: &[],
        },
        "KubeadmControlPlaneTemplate" => Mapping {
            up: template_up,
            down: template_down,
            status: None,
            older: &[],
        },
        _ => return None,
    };
    mapping.convert(object, GROUP, kind, from, to)
}

fn template_up(fields: &mut Map<String, Value>) -> Result<(), String> {
    within(fields, &["template", "spec"], spec_up)?;
    prune(fields);
    fields.entry("template").or_insert_with(|| json!({}));
    Ok(())
}

fn template_down(fields: &mut Map<String, Value>) -> Result<(), String> {
    within(fields, &["template", "spec"], spec_down)
}

fn spec_up(fields: &mut Map<String, Value>) -> Result<(), String> {
    within(fields, &["kubeadmConfigSpec"], spec::up)?;
    within(fields, &["machineTemplate"], machine_up)?;
    let mut rollout = Map::new();
    for (from, to) in [("rolloutBefore", "before"), ("rolloutAfter", "after")] {
        rollout.extend(fields.remove(from).map(|value| (to.to_owned(), value)));
    }
    if let Some(mut strategy) = fields.remove("rolloutStrategy").filter(|s| !s.is_null()) {
        if strategy
            .as_object()
            .is_some_and(|fields| !fields.is_empty())
        {
            let fields = strategy.as_object_mut();
            fields.map(|fields| {
                fields
                    .entry("type")
                    .or_insert_with(|| json!("RollingUpdate"))
            });
        }
        rollout.insert("strategy".to_owned(), strategy);
    }
    if !rollout.is_empty() {
        fields.insert("rollout".to_owned(), Value::Object(rollout));
    }
    if let Some(Value::Object(mut remediation)) = fields.remove("remediationStrategy") {
        to_seconds(&mut remediation, &PERIODS)
            .map_err(|problem| format!("remediationStrategy.{problem}"))?;
        fields.insert("remediation".to_owned(), Value::Object(remediation));
    }
    let naming = fields.remove("machineNamingStrategy");
    fields.extend(naming.map(|naming| ("machineNaming".to_owned(), naming)));
    prune(fields);
    Ok(())
}

fn spec_down(fields: &mut Map<String, Value>) -> Result<(), String> {
    // Required in v1beta1.
    if fields.contains_key("version") {
        fields
            .entry("kubeadmConfigSpec")
            .or_insert_with(|| json!({}));
    }
    within(fields, &["kubeadmConfigSpec"], spec::down)?;
    within(fields, &["machineTemplate"], machine_down)?;
    if let Some(Value::Object(mut rollout)) = fields.remove("rollout") {
        for (from, to) in [
            ("before", "rolloutBefore"),
            ("after", "rolloutAfter"),
            ("strategy", "rolloutStrategy"),
        ] {
            fields.extend(rollout.remove(from).map(|value| (to.to_owned(), value)));
        }
    }
    if let Some(Value::Object(mut remediation)) = fields.remove("remediation") {
        to_durations(&mut remediation, &PERIODS);
        fields.insert("remediationStrategy".to_owned(), Value::Object(remediation));
    }
    let naming = fields.remove("machineNaming");
    fields.extend(naming.map(|naming| ("machineNamingStrategy".to_owned(), naming)));
    Ok(())
}

fn machine_up(template: &mut Map<String, Value>) -> Result<(), String> {
    let mut spec = Map::new();
    if let Some(reference) = template.remove("infrastructureRef") {
        let text = |name: &str| {
            reference
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let group = text("apiVersion")
            .split_once('/')
            .map_or("", |(group, _)| group);
        spec.insert(
            "infrastructureRef".to_owned(),
            json!({"apiGroup": group, "kind": text("kind"), "name": text("name")}),
        );
    }
    to_seconds(template, &TIMEOUTS)?;
    let mut deletion = Map::new();
    for (_, name) in TIMEOUTS {
        deletion.extend(template.remove(name).map(|value| (name.to_owned(), value)));
    }
    if !deletion.is_empty() {
        spec.insert("deletion".to_owned(), Value::Object(deletion));
    }
    for name in MOVED {
        let value = template.remove(name).filter(|value| value != &json!([]));
        spec.extend(value.map(|value| (name.to_owned(), value)));
    }
    if !spec.is_empty() {
        template.insert("spec".to_owned(), Value::Object(spec));
    }
    Ok(())
}

fn machine_down(template: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::Object(mut spec)) = template.remove("spec") else {
        return Ok(());
    };
    if let Some(reference) = spec.remove("infrastructureRef") {
        let group = reference
            .get("apiGroup")
            .and_then(Value::as_str)
            .unwrap_or_default();
        // References have no version in v1beta2; in v1beta1 they get v1beta1 of their group.
        template.insert(
            "infrastructureRef".to_owned(),
            json!({
                "apiVersion": format!("{group}/v1beta1"),
                "kind": reference["kind"],
                "name": reference["name"],
            }),
        );
    }
    if let Some(Value::Object(mut deletion)) = spec.remove("deletion") {
        to_durations(&mut deletion, &TIMEOUTS);
        template.extend(deletion);
    }
    template.extend(spec);
    Ok(())
}

fn to_seconds(fields: &mut Map<String, Value>, names: &[(&str, &str)]) -> Result<(), String> {
    for (old, new) in names {
        if let Some(value) = fields.remove(*old).filter(|value| !value.is_null()) {
            let seconds = seconds_of(&value).ok_or_else(|| not_a_duration(old, &value))?;
            fields.insert((*new).to_owned(), json!(seconds));
        }
    }
    Ok(())
}

fn to_durations(fields: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for (old, new) in names {
        if let Some(seconds) = fields.remove(*new).as_ref().and_then(Value::as_i64) {
            fields.insert((*old).to_owned(), json!(duration::text(seconds)));
        }
    }
}

/// Counters with another meaning in v1beta1, preserved in `deprecated`.
const OLD_COUNTERS: [&str; 3] = ["readyReplicas", "updatedReplicas", "unavailableReplicas"];

fn status_up(fields: &mut Map<String, Value>) -> Result<(), String> {
    let mut counters = Map::new();
    for name in OLD_COUNTERS {
        counters.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    conditions_up(fields);
    // Computed from the counters.
    fields.remove("ready");
    if !counters.is_empty() {
        let deprecated = fields
            .entry("deprecated")
            .or_insert_with(|| json!({"v1beta1": {}}));
        if let Some(old) = deprecated["v1beta1"].as_object_mut() {
            old.extend(counters);
        }
    }
    if fields.remove("initialized") == Some(json!(true)) {
        fields.insert(
            "initialization".to_owned(),
            json!({"controlPlaneInitialized": true}),
        );
    }
    rename(fields, "timestamp", "time");
    Ok(())
}

fn status_down(fields: &mut Map<String, Value>) -> Result<(), String> {
    let mut new = Map::new();
    for name in ["readyReplicas", "availableReplicas", "upToDateReplicas"] {
        new.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    let ready = new
        .get("readyReplicas")
        .and_then(Value::as_i64)
        .unwrap_or(0)
        > 0;
    conditions_down(fields);
    if !new.is_empty() {
        let place = fields.entry("v1beta2").or_insert_with(|| json!({}));
        if let Some(place) = place.as_object_mut() {
            place.extend(new);
        }
    }
    let old = fields.get("readyReplicas").and_then(Value::as_i64);
    if old.map_or(ready, |count| count > 0) {
        fields.insert("ready".to_owned(), json!(true));
    }
    let steps = fields.remove("initialization");
    if steps.and_then(|steps| steps.get("controlPlaneInitialized").cloned()) == Some(json!(true)) {
        fields.insert("initialized".to_owned(), json!(true));
    }
    rename(fields, "time", "timestamp");
    Ok(())
}

fn rename(fields: &mut Map<String, Value>, from: &str, to: &str) {
    let last = fields
        .get_mut("lastRemediation")
        .and_then(Value::as_object_mut);
    if let Some(last) = last
        && let Some(value) = last.remove(from)
    {
        last.insert(to.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
