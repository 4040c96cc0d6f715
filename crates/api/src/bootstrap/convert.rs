//! v1beta1 <-> v1beta2 of the kubeadm kinds, without loss.
//!
//! Conversion works on JSON, so that a field which neither version's mapping names passes through
//! unchanged. What one version cannot say is kept by [`stash`], per field, in an annotation.

pub(crate) mod duration;
pub(crate) mod spec;
pub(crate) mod stash;

use serde_json::{Map, Value, json};

use super::GROUP;
use crate::convert::ConversionError;

/// Converts an object of this group; `None` when this pair of versions is not one of ours.
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
        },
        "KubeadmConfigTemplate" => Mapping {
            up: template_up,
            down: template_down,
            status: None,
        },
        _ => return None,
    };
    mapping.convert(object, GROUP, kind, from, to)
}

/// What a spec becomes in the other version.
type Turn = fn(&mut Map<String, Value>) -> Result<(), String>;

/// How the objects of a kind are converted.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    /// The spec, from v1beta1 to v1beta2.
    pub(crate) up: Turn,
    /// The spec, from v1beta2 to v1beta1.
    pub(crate) down: Turn,
    /// The status, up and down, where the kind has one.
    pub(crate) status: Option<(Turn, Turn)>,
}

impl Mapping {
    /// Converts `object` of `group`; `None` for other groups and versions.
    pub(crate) fn convert(
        &self,
        object: &Value,
        group: &str,
        kind: &str,
        from: &str,
        to: &str,
    ) -> Option<Result<Value, ConversionError>> {
        let version = |text: &str| {
            let rest = text.strip_prefix(group)?.strip_prefix('/')?;
            matches!(rest, "v1beta1" | "v1beta2").then(|| rest.to_owned())
        };
        let (from_version, to_version) = (version(from)?, version(to)?);
        let up = from_version == "v1beta1" && to_version == "v1beta2";
        let malformed = |problem| ConversionError::Malformed {
            kind: kind.to_owned(),
            version: from.to_owned(),
            problem,
        };
        Some(self.turn(object, to, up).map_err(malformed))
    }

    fn turn(&self, object: &Value, to: &str, up: bool) -> Result<Value, String> {
        let mut out = object.clone();
        out["apiVersion"] = json!(to);
        let (there, back) = if up {
            (self.up, self.down)
        } else {
            (self.down, self.up)
        };
        if let Some(before) = object.get("spec") {
            let mut after = before.clone();
            apply(there, &mut after, "spec")?;
            let mut again = after.clone();
            apply(back, &mut again, "spec")?;
            let kept = stash::take(&mut out, if up { "v1beta2" } else { "v1beta1" });
            kept.restore(&mut after);
            let lost = stash::Stash::of(before, &again);
            stash::put(&mut out, if up { "v1beta1" } else { "v1beta2" }, &lost);
            out["spec"] = after;
        }
        if let (Some((status_up, status_down)), Some(status)) = (self.status, out.get_mut("status"))
        {
            apply(if up { status_up } else { status_down }, status, "status")?;
        }
        Ok(out)
    }
}

fn apply(turn: Turn, value: &mut Value, name: &str) -> Result<(), String> {
    match value {
        Value::Object(fields) => turn(fields).map_err(|problem| format!("{name}.{problem}")),
        Value::Null => Ok(()),
        _ => Err(format!("{name} is not an object")),
    }
}

/// The status of kinds with a data Secret.
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

/// Applies `turn` to the object at `path`, if there is one.
pub(crate) fn within(
    fields: &mut Map<String, Value>,
    path: &[&str],
    turn: Turn,
) -> Result<(), String> {
    let Some((first, rest)) = path.split_first() else {
        return turn(fields);
    };
    match fields.get_mut(*first) {
        Some(Value::Object(inner)) => {
            within(inner, rest, turn).map_err(|problem| format!("{first}.{problem}"))
        }
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(format!("{first} is not an object")),
    }
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

/// Old conditions and failures go beneath `deprecated.v1beta1`, new conditions come up from `v1beta2`.
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

/// The reverse of [`conditions_up`].
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
