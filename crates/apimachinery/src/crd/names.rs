//! Acceptance of the names of a CustomResourceDefinition: no other definition of the group may have the same names
//! (`apiextensions-apiserver/pkg/controller/status`).

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{items, seconds, strings, text};

/// Fields that decide about names. The schemas, by far the largest part of a definition, are skipped.
#[derive(Deserialize)]
struct Outline {
    #[serde(default)]
    metadata: Named,
    #[serde(default)]
    spec: Names,
    #[serde(default)]
    status: Value,
}

#[derive(Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: Value,
}

#[derive(Default, Deserialize)]
struct Names {
    #[serde(default)]
    group: Value,
    #[serde(default)]
    names: Value,
}

/// Reduces a stored definition to the fields that decide about names: `metadata.name`, `spec.group`, `spec.names` and
/// `status`.
pub fn outline(stored: &[u8]) -> Value {
    // Serialised from a definition, so the parser accepts it.
    let Ok(outline) = serde_json::from_slice::<Outline>(stored) else {
        return Value::Null;
    };
    json!({
        "metadata": {"name": outline.metadata.name},
        "spec": {"group": outline.spec.group, "names": outline.spec.names},
        "status": outline.status,
    })
}

/// True if the objects of a definition are served: the definition is established, or new and without a conflict.
/// `others` are the other definitions of the group.
pub fn is_served(crd: &Value, others: &[Value]) -> bool {
    match condition(crd, "NamesAccepted") {
        None => decide(crd, others).conflict.is_none(),
        Some(_) => is_true(crd, "Established"),
    }
}

/// True if the definition has been accepted once.
pub(crate) fn is_established(crd: &Value) -> bool {
    is_true(crd, "Established")
}

/// True if names are still to be accepted: the definition is not established, or requests other names than the accepted
/// ones.
pub fn is_open(crd: &Value) -> bool {
    !is_true(crd, "Established") || crd["spec"]["names"] != crd["status"]["acceptedNames"]
}

/// Accepts the names of a definition, and establishes the definition if none is in use. Returns true if the status
/// changed.
pub fn accept(crd: &mut Value, others: &[Value], now: Timestamp) -> bool {
    if !is_open(crd) {
        return false;
    }
    let before = crd["status"].clone();
    let decision = decide(crd, others);
    crd["status"]["acceptedNames"] = decision.names;
    let time = seconds(now);
    let accepted = decision.conflict.is_none();
    match decision.conflict {
        Some((reason, message)) => {
            set(crd, "NamesAccepted", false, reason, &message, &time);
        }
        None => set(
            crd,
            "NamesAccepted",
            true,
            "NoConflicts",
            "no conflicts found",
            &time,
        ),
    }
    if !is_true(crd, "Established") {
        if accepted {
            let message = "the initial names have been accepted";
            set(
                crd,
                "Established",
                true,
                "InitialNamesAccepted",
                message,
                &time,
            );
        } else {
            let message = "not all names are accepted";
            set(crd, "Established", false, "NotAccepted", message, &time);
        }
    }
    crd["status"] != before
}

/// Sets a condition. The transition time changes with the status of the condition.
pub(crate) fn set(
    crd: &mut Value,
    kind: &str,
    status: bool,
    reason: &str,
    message: &str,
    time: &str,
) {
    let status = if status { "True" } else { "False" };
    let since = condition(crd, kind)
        .filter(|old| old["status"] == status)
        .and_then(|old| text(old, "lastTransitionTime"));
    let new = json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": since.unwrap_or(time),
    });
    let conditions = &mut crd["status"]["conditions"];
    if !conditions.is_array() {
        *conditions = json!([]);
    }
    let Some(all) = conditions.as_array_mut() else {
        return;
    };
    match all.iter_mut().find(|condition| condition["type"] == kind) {
        Some(old) => *old = new,
        None => all.push(new),
    }
}

struct Decision {
    names: Value,
    /// Reason and message of the last name in use.
    conflict: Option<(&'static str, String)>,
}

/// Accepts the requested names that no other definition uses.
fn decide(crd: &Value, others: &[Value]) -> Decision {
    let accepted = |other: &Value| other["status"]["acceptedNames"].clone();
    let taken: Vec<Value> = others.iter().map(accepted).collect();
    let used = |name: &str, fields: &[&str]| {
        taken.iter().any(|names| {
            fields.iter().any(|field| names[*field] == name)
                || fields.len() > 2 && strings(&names["shortNames"]).iter().any(|n| n == name)
        })
    };
    const RESOURCES: &[&str] = &["plural", "singular", "shortNames"];
    const KINDS: &[&str] = &["kind", "listKind"];
    let wanted = &crd["spec"]["names"];
    let accepted = &crd["status"]["acceptedNames"];
    let mut names = accepted.clone();
    if !names.is_object() {
        names = json!({});
    }
    let mut conflict = None;
    let in_use = |name: &str| format!("{name:?} is already in use");
    for (field, reason, among) in [
        ("plural", "PluralConflict", RESOURCES),
        ("singular", "SingularConflict", RESOURCES),
        ("shortNames", "ShortNamesConflict", RESOURCES),
        ("kind", "KindConflict", KINDS),
        ("listKind", "ListKindConflict", KINDS),
    ] {
        let problem = if field == "shortNames" {
            let have = strings(&accepted[field]);
            let fresh = strings(&wanted[field])
                .into_iter()
                .filter(|name| !have.contains(name));
            let problems: Vec<String> = fresh
                .filter(|name| used(name, among))
                .map(|name| in_use(&name))
                .collect();
            match problems.as_slice() {
                [] => None,
                [one] => Some(one.clone()),
                many => Some(format!("[{}]", many.join(", "))),
            }
        } else {
            let name = text(wanted, field).unwrap_or_default();
            (accepted[field] != name && used(name, among)).then(|| in_use(name))
        };
        match problem {
            Some(message) => conflict = Some((reason, message)),
            None => copy(wanted, &mut names, field),
        }
    }
    copy(wanted, &mut names, "categories");
    Decision { names, conflict }
}

fn copy(from: &Value, to: &mut Value, field: &str) {
    let Some(fields) = to.as_object_mut() else {
        return;
    };
    match from.get(field) {
        Some(value) => fields.insert(field.to_owned(), value.clone()),
        None => fields.remove(field),
    };
}

fn condition<'a>(crd: &'a Value, kind: &str) -> Option<&'a Value> {
    items(&crd["status"]["conditions"])
        .iter()
        .find(|condition| condition["type"] == kind)
}

fn is_true(crd: &Value, kind: &str) -> bool {
    condition(crd, kind).is_some_and(|condition| condition["status"] == "True")
}

#[cfg(test)]
mod tests;
