//! Conversion v1beta1 <-> v1beta2 of this group, without loss of spec.
//!
//! Fields without equivalent in the other version are preserved by the [stash](crate::conversion::stash). The status of
//! v1beta1 is computed from v1beta2.

use serde_json::{Map, Value, json};

use super::GROUP;
use crate::conversion::fields::{
    Done, Fields, nested, not_a_duration, put, rename, seconds_of, take, within,
};
use crate::conversion::{ConversionError, Mapping, duration};

mod class;
pub(crate) mod status;
mod topology;

/// Timeouts of machines: names in v1beta1 and in v1beta2.
const TIMEOUTS: [(&str, &str); 3] = [
    ("nodeDrainTimeout", "nodeDrainTimeoutSeconds"),
    ("nodeVolumeDetachTimeout", "nodeVolumeDetachTimeoutSeconds"),
    ("nodeDeletionTimeout", "nodeDeletionTimeoutSeconds"),
];

/// Converts an object of this group; `None` for other kinds and versions.
pub(crate) fn convert(
    object: &Value,
    kind: &str,
    from: &str,
    to: &str,
) -> Option<Result<Value, ConversionError>> {
    let mapping = match kind {
        "Cluster" => Mapping {
            up: cluster_up,
            down: cluster_down,
            status: Some((status::cluster_up, status::cluster_down)),
            older: &[],
        },
        "Machine" => Mapping {
            up: machine_up,
            down: machine_down,
            status: Some((status::machine_up, status::machine_down)),
            older: &[],
        },
        "MachineSet" => Mapping {
            up: set_up,
            down: set_down,
            status: Some((status::set_up, status::set_down)),
            older: &[],
        },
        "MachineDeployment" => Mapping {
            up: deployment_up,
            down: deployment_down,
            status: Some((status::deployment_up, status::deployment_down)),
            older: &[],
        },
        "MachineHealthCheck" => Mapping {
            up: health_check_up,
            down: health_check_down,
            status: Some((status::conditions_up, status::conditions_down)),
            older: &[],
        },
        "ClusterClass" => Mapping {
            up: class::up,
            down: class::down,
            status: Some((class::status_up, class::status_down)),
            older: &[],
        },
        // The same fields in both versions.
        "MachineDrainRule" => Mapping {
            up: |_| Ok(()),
            down: |_| Ok(()),
            status: None,
            older: &[],
        },
        _ => return None,
    };
    mapping.convert(object, GROUP, kind, from, to)
}

fn cluster_up(fields: &mut Fields) -> Done {
    tidy(fields);
    reference_up(fields, "infrastructureRef");
    reference_up(fields, "controlPlaneRef");
    // v1beta1 writes an unknown endpoint as an empty host and port 0.
    if let Some(Value::Object(endpoint)) = fields.get_mut("controlPlaneEndpoint") {
        endpoint.retain(|_, value| *value != json!("") && *value != json!(0));
        if endpoint.is_empty() {
            fields.remove("controlPlaneEndpoint");
        }
    }
    within(fields, &["topology"], topology::up)
}

fn cluster_down(fields: &mut Fields) -> Done {
    reference_down(fields, "infrastructureRef");
    reference_down(fields, "controlPlaneRef");
    within(fields, &["topology"], topology::down)
}

fn machine_up(fields: &mut Fields) -> Done {
    tidy(fields);
    reference_up(fields, "infrastructureRef");
    within(fields, &["bootstrap"], |bootstrap| {
        reference_up(bootstrap, "configRef");
        Ok(())
    })?;
    timeouts_up(fields)
}

fn machine_down(fields: &mut Fields) -> Done {
    reference_down(fields, "infrastructureRef");
    within(fields, &["bootstrap"], |bootstrap| {
        reference_down(bootstrap, "configRef");
        Ok(())
    })?;
    timeouts_down(fields);
    // In v1beta1 only MachineSets and MachineDeployments have this field.
    fields.remove("minReadySeconds");
    Ok(())
}

fn set_up(fields: &mut Fields) -> Done {
    tidy(fields);
    within(fields, &["template", "spec"], machine_up)?;
    min_ready_up(fields);
    put(fields, &["deletion", "order"], "deletePolicy");
    rename(fields, "machineNamingStrategy", "machineNaming");
    Ok(())
}

fn set_down(fields: &mut Fields) -> Done {
    min_ready_down(fields);
    within(fields, &["template", "spec"], machine_down)?;
    let order = take(fields, &["deletion", "order"]);
    fields.extend(order.map(|order| ("deletePolicy".to_owned(), order)));
    rename(fields, "machineNaming", "machineNamingStrategy");
    Ok(())
}

fn deployment_up(fields: &mut Fields) -> Done {
    tidy(fields);
    within(fields, &["template", "spec"], machine_up)?;
    min_ready_up(fields);
    strategy_up(fields);
    put(fields, &["rollout", "after"], "rolloutAfter");
    rename(fields, "machineNamingStrategy", "machineNaming");
    // Without effect in v1beta2.
    for name in ["progressDeadlineSeconds", "revisionHistoryLimit"] {
        fields.remove(name);
    }
    Ok(())
}

fn deployment_down(fields: &mut Fields) -> Done {
    min_ready_down(fields);
    within(fields, &["template", "spec"], machine_down)?;
    let after = take(fields, &["rollout", "after"]);
    fields.extend(after.map(|after| ("rolloutAfter".to_owned(), after)));
    strategy_down(fields);
    rename(fields, "machineNaming", "machineNamingStrategy");
    Ok(())
}

fn health_check_up(fields: &mut Fields) -> Done {
    tidy(fields);
    topology::checks_up(fields)
}

fn health_check_down(fields: &mut Fields) -> Done {
    topology::checks_down(fields);
    Ok(())
}

/// Splits `strategy` into rollout strategy, order of deletion, and remediation.
fn strategy_up(fields: &mut Fields) {
    let Some(Value::Object(mut strategy)) = fields.remove("strategy") else {
        return;
    };
    // A strategy with nothing but the order of deletion is no rollout strategy.
    let order = take(&mut strategy, &["rollingUpdate", "deletePolicy"]);
    if let Some(order) = order {
        nested(fields, &["deletion"]).insert("order".to_owned(), order);
    }
    if let Some(remediation) = strategy.remove("remediation") {
        fields.insert("remediation".to_owned(), remediation);
    }
    if !strategy.is_empty() {
        strategy
            .entry("type")
            .or_insert_with(|| json!("RollingUpdate"));
        nested(fields, &["rollout"]).insert("strategy".to_owned(), Value::Object(strategy));
    }
}

fn strategy_down(fields: &mut Fields) {
    let mut strategy = match take(fields, &["rollout", "strategy"]) {
        Some(Value::Object(strategy)) => strategy,
        _ => Map::new(),
    };
    if let Some(order) = take(fields, &["deletion", "order"]) {
        nested(&mut strategy, &["rollingUpdate"]).insert("deletePolicy".to_owned(), order);
    }
    if let Some(remediation) = fields.remove("remediation") {
        strategy.insert("remediation".to_owned(), remediation);
    }
    if !strategy.is_empty() {
        fields.insert("strategy".to_owned(), Value::Object(strategy));
    }
}

fn min_ready_up(fields: &mut Fields) {
    if let Some(seconds) = fields.remove("minReadySeconds") {
        nested(fields, &["template", "spec"]).insert("minReadySeconds".to_owned(), seconds);
    }
}

fn min_ready_down(fields: &mut Fields) {
    let spec = fields
        .get_mut("template")
        .and_then(|template| template.get_mut("spec"));
    let seconds = spec
        .and_then(Value::as_object_mut)
        .and_then(|spec| spec.remove("minReadySeconds"));
    fields.extend(seconds.map(|seconds| ("minReadySeconds".to_owned(), seconds)));
}

/// Converts timeouts: `nodeDrainTimeout: 5m` becomes `deletion.nodeDrainTimeoutSeconds: 300`.
fn timeouts_up(fields: &mut Fields) -> Done {
    for (old, new) in TIMEOUTS {
        if let Some(value) = fields.remove(old) {
            let seconds = seconds_of(&value).ok_or_else(|| not_a_duration(old, &value))?;
            nested(fields, &["deletion"]).insert(new.to_owned(), json!(seconds));
        }
    }
    Ok(())
}

fn timeouts_down(fields: &mut Fields) {
    for (old, new) in TIMEOUTS {
        let seconds = take(fields, &["deletion", new]);
        if let Some(seconds) = seconds.as_ref().and_then(Value::as_i64) {
            fields.insert(old.to_owned(), json!(duration::text(seconds)));
        }
    }
}

/// Converts an object reference to group, kind and name. A reference without kind and name is removed.
fn reference_up(fields: &mut Fields, name: &str) {
    let Some(reference) = fields.remove(name) else {
        return;
    };
    let text = |field: &str| {
        reference
            .get(field)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    if text("kind").is_empty() && text("name").is_empty() {
        return;
    }
    let group = text("apiVersion")
        .split_once('/')
        .map_or("", |(group, _)| group);
    let new = json!({ "apiGroup": group, "kind": text("kind"), "name": text("name") });
    fields.insert(name.to_owned(), new);
}

/// Converts a reference, without version in v1beta2; in v1beta1 the version is v1beta1 of its group.
fn reference_down(fields: &mut Fields, name: &str) {
    let Some(reference) = fields.get_mut(name) else {
        return;
    };
    let group = reference
        .get("apiGroup")
        .and_then(Value::as_str)
        .unwrap_or_default();
    *reference = json!({
        "apiVersion": format!("{group}/v1beta1"),
        "kind": reference["kind"],
        "name": reference["name"],
    });
}

/// Removes nulls and empty lists: valid in v1beta1, invalid in v1beta2. Values of variables are unchanged.
pub(crate) fn tidy(fields: &mut Fields) {
    fields.retain(|name, value| {
        if name == "value" {
            return true;
        }
        match value {
            Value::Object(inner) => tidy(inner),
            Value::Array(items) => {
                items
                    .iter_mut()
                    .filter_map(Value::as_object_mut)
                    .for_each(tidy);
            }
            _ => {}
        }
        !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty())
    });
}

#[cfg(test)]
mod tests;
