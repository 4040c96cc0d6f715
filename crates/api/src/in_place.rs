//! Updates of machines in place: strategies, and the fields of a machine that change without another machine.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

use crate::change::FieldError;
use crate::infra;
use crate::names::IN_PLACE_UPDATE_ANNOTATION;

/// Value of the annotation `ferrostack.dev/in-place-update`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Machines are replaced.
    #[default]
    Never,
    /// Machines are updated in place where that is possible, and replaced where it is not or where it fails.
    Prefer,
    /// Machines are updated in place, or stay as they are.
    Require,
}

impl Strategy {
    const ALL: [(&'static str, Self); 3] = [
        ("Never", Self::Never),
        ("Prefer", Self::Prefer),
        ("Require", Self::Require),
    ];
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = Self::ALL.iter().find(|(_, it)| it == self);
        f.write_str(found.map_or("", |(name, _)| name))
    }
}

/// A text is not a [`Strategy`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a strategy of updates: there are Never, Prefer and Require")]
pub struct UnknownStrategy(String);

impl FromStr for Strategy {
    type Err = UnknownStrategy;

    fn from_str(text: &str) -> Result<Self, UnknownStrategy> {
        let found = Self::ALL.iter().find(|(name, _)| *name == text);
        found
            .map(|(_, it)| *it)
            .ok_or_else(|| UnknownStrategy(text.to_owned()))
    }
}

/// Rejects a strategy that does not exist, or is not built for the kind of `object`.
pub(crate) fn check(object: &Value, errors: &mut Vec<FieldError>) {
    let annotations = object.pointer("/metadata/annotations");
    let Some(value) = annotations.and_then(|all| all.get(IN_PLACE_UPDATE_ANNOTATION)) else {
        return;
    };
    let is_deployment = object.get("kind") == Some(&json!("MachineDeployment"));
    let message = match value.as_str().unwrap_or_default().parse::<Strategy>() {
        Err(error) => error.to_string(),
        Ok(Strategy::Never) => return,
        Ok(_) if is_deployment => return,
        Ok(_) => {
            "only machines of MachineDeployments are updated in place; control planes are replaced"
                .to_owned()
        }
    };
    let field = format!("metadata.annotations[{IN_PLACE_UPDATE_ANNOTATION}]");
    errors.push(FieldError::new(field, message));
}

/// Fields because of which a machine of `kind` has to be replaced, with the reason, between the `spec` that it has and
/// the one that it is to have. Empty if the machine can be updated in place.
pub fn obstacles(kind: &str, have: &Value, want: &Value) -> Vec<String> {
    if kind != "OpenStackMachine" {
        return vec![format!("{kind}s cannot be updated in place")];
    }
    infra::differences_in_place(have, want)
}

/// Merge patch of the `spec` of a machine, of which [`obstacles`] has none.
pub fn change(have: &Value, want: &Value) -> Value {
    let mut patch = Map::new();
    for field in infra::FIELDS_IN_PLACE {
        let (old, new) = (have.get(field), want.get(field));
        if old != new {
            patch.insert(field.to_owned(), replaced(old, new));
        }
    }
    Value::Object(patch)
}

/// Merge patch that puts `new` in place of `old`: members that only the old object has are removed.
fn replaced(old: Option<&Value>, new: Option<&Value>) -> Value {
    let (Some(Value::Object(old)), Some(Value::Object(new))) = (old, new) else {
        return new.cloned().unwrap_or_default();
    };
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    let mut patch: Map<String, Value> = gone.map(|key| (key.clone(), json!(null))).collect();
    for (key, value) in new {
        patch.insert(key.clone(), replaced(old.get(key), Some(value)));
    }
    Value::Object(patch)
}

#[cfg(test)]
mod tests;
