//! What a version cannot say, kept beside the object.
//!
//! An entry holds a member that the other version has no field for, with a hash of the plain fields
//! around it as the other version shows them. On the way back it is restored only if they are still
//! the same, that is, only if nobody edited its surroundings in the other version. (Upstream keeps a
//! copy of the whole object and restores it unconditionally, which undoes such edits.)

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The annotation that holds the stash.
pub(super) const ANNOTATION: &str = "infrastructure.cluster.x-k8s.io/ferrostack-conversion";

/// Fields that controllers write; they do not make a stash stale.
const WRITTEN_BY_CONTROLLERS: &[&str] = &["providerID", "controlPlaneEndpoint"];

/// The stash for an object that was `before` in `version` and reads `back` once converted there and
/// back again; `None` when nothing is lost.
pub(super) fn lost(before: &Value, back: &Value, version: &str) -> Option<String> {
    let mut entries = Vec::new();
    differences(before, back, "", &mut entries);
    (!entries.is_empty())
        .then(
            || json!({"version": version, "fields": Value::Object(entries.into_iter().collect())}),
        )
        .map(|stash| stash.to_string())
}

/// Puts the members of `stash` back into `spec`, a spec in `version` that comes from the other version.
pub(super) fn restore(stash: &str, version: &str, spec: &mut Value) {
    // A stash that somebody broke is worth no more than none.
    let Ok(stash) = serde_json::from_str::<Value>(stash) else {
        return;
    };
    if stash["version"] != version {
        return;
    }
    let Some(fields) = stash["fields"].as_object() else {
        return;
    };
    let converted = spec.clone();
    for (pointer, entry) in fields {
        let Some((parent_path, member)) = pointer.rsplit_once('/') else {
            continue;
        };
        let Some(parent) = spec.pointer_mut(parent_path).and_then(Value::as_object_mut) else {
            continue;
        };
        let around = converted.pointer(parent_path).and_then(Value::as_object);
        if around.map(hash).as_deref() != entry["h"].as_str() {
            continue;
        }
        match entry.get("d") {
            Some(data) => parent.insert(member.to_owned(), data.clone()),
            None => parent.remove(member),
        };
    }
}

fn differences(before: &Value, back: &Value, path: &str, into: &mut Vec<(String, Value)>) {
    let (Value::Object(old), Value::Object(new)) = (before, back) else {
        return;
    };
    for (name, value) in old {
        let path = format!("{path}/{name}");
        match new.get(name) {
            Some(other) if other == value => {}
            Some(other) if value.is_object() && other.is_object() => {
                differences(value, other, &path, into);
            }
            _ => into.push((path, json!({"h": hash(new), "d": value}))),
        }
    }
    for name in new.keys().filter(|name| !old.contains_key(*name)) {
        into.push((format!("{path}/{name}"), json!({"h": hash(new)})));
    }
}

/// A short hash of the plain members of an object.
fn hash(object: &Map<String, Value>) -> String {
    let mut digest = Sha256::new();
    let mut names: Vec<_> = object.keys().collect();
    names.sort();
    for name in names {
        let value = &object[name];
        if value.is_object() || value.is_array() || WRITTEN_BY_CONTROLLERS.contains(&name.as_str())
        {
            continue;
        }
        digest.update(format!("{name}={value}\n"));
    }
    digest
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
