//! Objects in the data of a ConfigMap or Secret. Pure.

use std::collections::BTreeMap;

use api::kube::api::DynamicObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// Kinds that other objects need, in the order of application; all others follow in the order of the documents.
const FIRST: [&str; 9] = [
    "Namespace",
    "CustomResourceDefinition",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Secret",
    "ConfigMap",
    "ServiceAccount",
    "LimitRange",
];

/// Object, with its place in the data.
#[derive(Clone, Debug)]
pub(super) struct Manifest {
    /// Place in the data, such as `key cni.yaml, document 2`.
    pub(super) place: String,
    /// The object.
    pub(super) object: DynamicObject,
}

/// Data of a ConfigMap or Secret.
pub(super) type Data = BTreeMap<String, Vec<u8>>;

/// Hash of the data, identical to the hash of the Go controllers: a set moved from the Go controllers applies nothing
/// again.
pub(super) fn hash(data: &Data) -> String {
    let mut digest = Sha256::new();
    for value in data.values() {
        digest.update(value);
    }
    let bytes = digest.finalize();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Objects in the data, in the order of application.
///
/// # Errors
/// All problems, each with its place.
pub(super) fn read(data: &Data) -> Result<Vec<Manifest>, Vec<String>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for (key, value) in data {
        let Ok(text) = std::str::from_utf8(value) else {
            problems.push(format!("key {key}: is not text"));
            continue;
        };
        for (at, document) in documents(text).enumerate() {
            let place = format!("key {key}, document {}", at + 1);
            match parse(document) {
                Ok(value) => expand(place, value, &mut found, &mut problems),
                Err(problem) => problems.push(format!("{place}: {problem}")),
            }
        }
    }
    if found.is_empty() && problems.is_empty() {
        problems.push("has no manifests under data".to_owned());
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    found.sort_by_key(|manifest| {
        let kind = manifest.object.types.as_ref().map(|t| t.kind.as_str());
        let place = FIRST.iter().position(|first| Some(*first) == kind);
        place.unwrap_or(FIRST.len())
    });
    Ok(found)
}

/// Documents of a stream with at least one line besides comments.
fn documents(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" || line.starts_with("--- ") {
            parts.push(&text[start..at]);
            // Text after the marker on the same line belongs to the document.
            start = at + 3;
        }
        at += line.len();
    }
    parts.push(&text[start..]);
    parts.into_iter().filter(|part| {
        part.lines()
            .map(str::trim)
            .any(|line| !line.is_empty() && !line.starts_with('#'))
    })
}

fn parse(text: &str) -> Result<Value, String> {
    let mut options = serde_saphyr::Options::default();
    // As kubectl: `mode: 0644` is octal.
    options.legacy_octal_numbers = true;
    // Without the snippet, which would copy a Secret to the status.
    serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| error.without_snippet().to_string())
}

/// Adds the object, or the items of a list.
fn expand(place: String, value: Value, found: &mut Vec<Manifest>, problems: &mut Vec<String>) {
    let text = |name: &str| value.get(name).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion").to_owned(), text("kind").to_owned());
    if version.is_empty() || kind.is_empty() {
        problems.push(format!("{place}: has no apiVersion and kind"));
        return;
    }
    if let (Some(item_kind), Some(Value::Array(items))) =
        (kind.strip_suffix("List"), value.get("items"))
    {
        for (at, item) in items.iter().enumerate() {
            let mut item = item.clone();
            // The items of a list of one kind need not repeat it.
            if let Some(fields) = item.as_object_mut().filter(|_| !item_kind.is_empty()) {
                fields.entry("apiVersion").or_insert_with(|| json!(version));
                fields.entry("kind").or_insert_with(|| json!(item_kind));
            }
            let place = format!("{place}, item {}", at + 1);
            expand(place, item, found, problems);
        }
        return;
    }
    match serde_json::from_value::<DynamicObject>(value) {
        Ok(object)
            if object
                .metadata
                .name
                .as_deref()
                .unwrap_or_default()
                .is_empty() =>
        {
            problems.push(format!("{place} ({kind}): has no metadata.name"));
        }
        Ok(object) => found.push(Manifest { place, object }),
        Err(error) => problems.push(format!("{place} ({kind}): {error}")),
    }
}

#[cfg(test)]
mod tests;
