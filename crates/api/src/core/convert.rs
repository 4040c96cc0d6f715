//! v1beta1 <-> v1beta2 of Cluster, Machine, MachineSet and MachineDeployment, without loss of spec.
//!
//! Conversion works on JSON, as that of the kubeadm kinds, whose stash keeps what the other version
//! cannot say. Status is never stashed: what v1beta1 shows is computed from what v1beta2 says.

use serde_json::{Map, Value, json};

use super::GROUP;
use crate::bootstrap::convert::spec::{not_a_duration, seconds_of};
use crate::bootstrap::convert::{Mapping, duration, within};
use crate::convert::ConversionError;

mod status;
mod topology;

/// Timeouts of machines: the name in v1beta1 and in v1beta2.
const TIMEOUTS: [(&str, &str); 3] = [
    ("nodeDrainTimeout", "nodeDrainTimeoutSeconds"),
    ("nodeVolumeDetachTimeout", "nodeVolumeDetachTimeoutSeconds"),
    ("nodeDeletionTimeout", "nodeDeletionTimeoutSeconds"),
];

type Fields = Map<String, Value>;
type Done = Result<(), String>;

/// Converts an object of this group; `None` when this pair of versions is not one of ours.
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
        },
        "Machine" => Mapping {
            up: machine_up,
            down: machine_down,
            status: Some((status::machine_up, status::machine_down)),
        },
        "MachineSet" => Mapping {
            up: set_up,
            down: set_down,
            status: Some((status::set_up, status::set_down)),
        },
        "MachineDeployment" => Mapping {
            up: deployment_up,
            down: deployment_down,
            status: Some((status::deployment_up, status::deployment_down)),
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
    // v1beta1 has it on sets and deployments only.
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
    // No longer of any effect.
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

/// `strategy` splits into how machines are rolled out, which go first, and how sick ones are replaced.
fn strategy_up(fields: &mut Fields) {
    let Some(Value::Object(mut strategy)) = fields.remove("strategy") else {
        return;
    };
    // A strategy that says no more than which machines go first says nothing about the rollout.
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

/// `nodeDrainTimeout: 5m` becomes `deletion.nodeDrainTimeoutSeconds: 300`, and so on.
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

/// An object reference becomes group, kind and name. One that names no kind is none.
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

/// v1beta2 names no version. Whoever reads v1beta1 here finds the providers' v1beta1 beside it.
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

/// Takes out nulls and empty lists, which v1beta1 allows where v1beta2 wants nothing at all. Values of
/// variables are left as they are.
fn tidy(fields: &mut Fields) {
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

fn rename(fields: &mut Fields, from: &str, to: &str) {
    let value = fields.remove(from);
    fields.extend(value.map(|value| (to.to_owned(), value)));
}

/// Moves the field `from` to `path`.
fn put(fields: &mut Fields, path: &[&str], from: &str) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    if let Some(value) = fields.remove(from) {
        nested(fields, parents).insert((*last).to_owned(), value);
    }
}

/// Takes the value at `path` out, and the objects on the way that it leaves empty.
fn take(fields: &mut Fields, path: &[&str]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return fields.remove(*first);
    }
    let inner = fields.get_mut(*first).and_then(Value::as_object_mut)?;
    let value = take(inner, rest)?;
    if inner.is_empty() {
        fields.remove(*first);
    }
    Some(value)
}

/// The object at `path`; made if there is none.
fn nested<'a>(fields: &'a mut Fields, path: &[&str]) -> &'a mut Fields {
    let mut at = fields;
    for name in path {
        let value = at.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(inner) = value else {
            unreachable!("it was made an object just now")
        };
        at = inner;
    }
    at
}

#[cfg(test)]
mod tests;
