//! What a version cannot say, kept beside the object, per field.
//!
//! An entry holds a field's value and a hash of what became of it after a conversion there and back. On the
//! way back it is restored only if the field still has that value, that is, only if nobody changed it
//! in the other version. Upstream keeps the whole object and restores it unconditionally.

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The annotation that holds the stash.
pub(crate) const ANNOTATION: &str = "cluster.x-k8s.io/ferrostack-conversion";

/// Fields of one version that the other cannot say.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Stash {
    /// By JSON pointer: `h`, the hash of what is left of the field (unset: nothing); `d`, its value
    /// (unset: it was absent).
    entries: Map<String, Value>,
}

impl Stash {
    /// What is lost of `before` when only `back` comes back.
    pub(crate) fn of(before: &Value, back: &Value) -> Self {
        let mut entries = Map::new();
        differences(before, Some(back), "", &mut entries);
        Self { entries }
    }

    /// Puts every field back that nobody changed since.
    pub(crate) fn restore(&self, spec: &mut Value) {
        let converted = spec.clone();
        for (pointer, entry) in &self.entries {
            let now = converted.pointer(pointer).map(hash);
            if now.as_deref() != entry.get("h").and_then(Value::as_str) {
                continue;
            }
            match entry.get("d") {
                Some(value) => insert(spec, pointer, value.clone()),
                None => remove(spec, pointer),
            }
        }
    }
}

/// Takes the stash of `version` out of an object's annotations; a stash of another version is dropped.
pub(crate) fn take(object: &mut Value, version: &str) -> Stash {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return Stash::default();
    };
    let Some(annotations) = metadata
        .get_mut("annotations")
        .and_then(Value::as_object_mut)
    else {
        return Stash::default();
    };
    let kept = annotations.remove(ANNOTATION);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
    // A stash that somebody broke is worth no more than none.
    let kept: Option<Value> = kept
        .as_ref()
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str(text).ok());
    let entries = kept
        .filter(|kept| kept["version"] == version)
        .and_then(|mut kept| kept.get_mut("fields").map(Value::take));
    match entries {
        Some(Value::Object(entries)) => Stash { entries },
        _ => Stash::default(),
    }
}

/// Puts the stash of an object that came from `version` into its annotations.
pub(crate) fn put(object: &mut Value, version: &str, stash: &Stash) {
    if stash.entries.is_empty() {
        return;
    }
    let text = json!({"version": version, "fields": stash.entries}).to_string();
    object["metadata"]["annotations"][ANNOTATION] = json!(text);
}

fn differences(before: &Value, back: Option<&Value>, pointer: &str, into: &mut Map<String, Value>) {
    if back == Some(before) {
        return;
    }
    match (before, back) {
        (Value::Object(old), None) if !old.is_empty() => {
            for (name, value) in old {
                differences(value, None, &format!("{pointer}/{}", escape(name)), into);
            }
        }
        (Value::Object(old), Some(Value::Object(new))) if !old.is_empty() => {
            for (name, value) in old {
                let pointer = format!("{pointer}/{}", escape(name));
                differences(value, new.get(name), &pointer, into);
            }
            for (name, value) in new.iter().filter(|(name, _)| !old.contains_key(*name)) {
                into.insert(
                    format!("{pointer}/{}", escape(name)),
                    json!({"h": hash(value)}),
                );
            }
        }
        (Value::Array(old), Some(Value::Array(new))) if old.len() == new.len() => {
            for (at, (old, new)) in old.iter().zip(new).enumerate() {
                differences(old, Some(new), &format!("{pointer}/{at}"), into);
            }
        }
        (value, left) => {
            let mut entry = Map::from_iter([("d".to_owned(), value.clone())]);
            entry.extend(left.map(|left| ("h".to_owned(), json!(hash(left)))));
            into.insert(pointer.to_owned(), Value::Object(entry));
        }
    }
}

/// Sets the value at `pointer`, making the objects on the way; arrays must be there.
fn insert(root: &mut Value, pointer: &str, value: Value) {
    let mut at = root;
    for part in pointer.split('/').skip(1) {
        let name = part.replace("~1", "/").replace("~0", "~");
        if at.is_null() {
            *at = json!({});
        }
        at = match at {
            Value::Object(fields) => fields.entry(name).or_insert(Value::Null),
            Value::Array(items) => {
                match name
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get_mut(index))
                {
                    Some(item) => item,
                    None => return,
                }
            }
            _ => return,
        };
    }
    *at = value;
}

fn remove(root: &mut Value, pointer: &str) {
    let Some((parent, name)) = pointer.rsplit_once('/') else {
        return;
    };
    if let Some(Value::Object(fields)) = root.pointer_mut(parent) {
        fields.remove(&name.replace("~1", "/").replace("~0", "~"));
    }
}

fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A short hash of a value, whatever the order of its fields.
fn hash(value: &Value) -> String {
    let mut digest = Sha256::new();
    feed(value, &mut digest);
    digest
        .finalize()
        .iter()
        .take(6)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn feed(value: &Value, digest: &mut Sha256) {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<_> = fields.keys().collect();
            names.sort();
            digest.update("{");
            for name in names {
                digest.update(Value::from(name.as_str()).to_string());
                feed(&fields[name], digest);
            }
            digest.update("}");
        }
        Value::Array(items) => {
            digest.update("[");
            items.iter().for_each(|item| feed(item, digest));
            digest.update("]");
        }
        plain => {
            digest.update(plain.to_string());
            digest.update(",");
        }
    }
}
