//! Conversion v1beta1 <-> v1beta2 of the kubeadm kinds, without loss.
//!
//! Fields without equivalent in the other version are preserved by the stash.

pub(crate) mod spec;

use serde_json::{Map, Value, json};

use super::GROUP;
use crate::conversion::fields::{Turn, within};
use crate::conversion::{ConversionError, Mapping};

/// Converts an object of this group; `None` for other kinds and versions.
pub(crate) fn convert(
    object: &Value,
    kind: &str,
    from: &str,
    to: &str,
) -> Option<Result<Value, ConversionError>> {
    let mapping = match kind {
        "KubeadmConfig" => Mapping {
            up: config_up,
            down: config_down,
            status: Some(STATUS),
            older: &[],
        },
        "KubeadmConfigTemplate" => Mapping {
            up: template_up,
            down: template_down,
            status: None,
            older: &[],
        },
        _ => return None,
    };
    mapping.convert(object, GROUP, kind, from, to)
}

/// Conversions of the status of kinds with a data Secret.
const STATUS: (Turn, Turn) = (status_up, status_down);

fn config_up(fields: &mut Map<String, Value>) -> Result<(), String> {
    spec::up(fields)
}

fn config_down(fields: &mut Map<String, Value>) -> Result<(), String> {
    spec::down(fields)
}

fn template_up(fields: &mut Map<String, Value>) -> Result<(), String> {
    within(fields, &["template", "spec"], spec::up)?;
    spec::prune(fields);
    fields.entry("template").or_insert_with(|| json!({}));
    Ok(())
}

fn template_down(fields: &mut Map<String, Value>) -> Result<(), String> {
    within(fields, &["template", "spec"], spec::down)
}

fn status_up(fields: &mut Map<String, Value>) -> Result<(), String> {
    conditions_up(fields);
    if fields.remove("ready") == Some(json!(true)) {
        fields.insert(
            "initialization".to_owned(),
            json!({"dataSecretCreated": true}),
        );
    }
    Ok(())
}

fn status_down(fields: &mut Map<String, Value>) -> Result<(), String> {
    conditions_down(fields);
    let created = fields.remove("initialization");
    if created.and_then(|steps| steps.get("dataSecretCreated").cloned()) == Some(json!(true)) {
        fields.insert("ready".to_owned(), json!(true));
    }
    Ok(())
}

/// Moves conditions and failures of v1beta1 to `deprecated.v1beta1`, and the conditions in `v1beta2` one level up.
pub(crate) fn conditions_up(fields: &mut Map<String, Value>) {
    let mut old = Map::new();
    for name in ["conditions", "failureReason", "failureMessage"] {
        old.extend(fields.remove(name).map(|value| (name.to_owned(), value)));
    }
    if let Some(Value::Object(mut new)) = fields.remove("v1beta2") {
        fields.extend(
            new.remove("conditions")
                .map(|value| ("conditions".to_owned(), value)),
        );
        fields.extend(new);
    }
    if !old.is_empty() {
        fields.insert("deprecated".to_owned(), json!({"v1beta1": old}));
    }
}

/// Inverse of [`conditions_up`].
pub(crate) fn conditions_down(fields: &mut Map<String, Value>) {
    let new = fields.remove("conditions");
    let mut deprecated = fields.remove("deprecated").unwrap_or_default();
    if let Some(Value::Object(old)) = deprecated.get_mut("v1beta1").map(Value::take) {
        fields.extend(old);
    }
    if let Some(conditions) = new {
        fields.insert("v1beta2".to_owned(), json!({"conditions": conditions}));
    }
}

#[cfg(test)]
mod tests;
