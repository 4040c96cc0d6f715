//! Changes of manifests by [`Values`].

use anyhow::Context as _;
use serde_json::{Value, json};

use super::Values;

/// Document of the manifests.
pub(crate) fn of<'a>(
    documents: &'a mut [Value],
    (kind, name): (&str, &str),
) -> anyhow::Result<&'a mut Value> {
    let mut documents = documents.iter_mut();
    let found = documents.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.with_context(|| format!("the manifests have no {kind} {name}"))
}

pub(crate) fn container<'a>(workload: &'a mut Value, name: &str) -> anyhow::Result<&'a mut Value> {
    let containers = workload["spec"]["template"]["spec"]["containers"].as_array_mut();
    let mut containers = containers.into_iter().flatten();
    let found = containers.find(|it| it["name"] == name);
    found.with_context(|| format!("the manifests have no container {name}"))
}

/// Maps are merged, other values replaced.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    match (into.as_object_mut(), from.as_object()) {
        (Some(into), Some(from)) => {
            for (key, value) in from {
                merge(into.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        _ => *into = from.clone(),
    }
}

/// Replaces a value by the [`Value`] of a path, if given.
pub(crate) fn set(into: &mut Value, key: &str, values: &Values, path: &str) {
    if let Some(value) = values.get(path) {
        into[key] = value.clone();
    }
}

/// Merges the map of a path, if given.
pub(crate) fn set_in(into: &mut Value, key: &str, values: &Values, path: &str) {
    if let Some(value) = values.get(path) {
        merge(&mut into[key], value);
    }
}

/// Appends the list of a path.
pub(crate) fn extend(into: &mut Value, values: &Values, path: &str) {
    let Some(Value::Array(more)) = values.get(path) else {
        return;
    };
    match into.as_array_mut() {
        Some(list) => list.extend(more.iter().cloned()),
        None => *into = json!(more),
    }
}

/// Adds the entries of a path to a list of named items, in place of items with the same name.
pub(crate) fn extend_named(into: &mut Value, values: &Values, path: &str) {
    let more = values.get(path).and_then(Value::as_array);
    for entry in more.into_iter().flatten() {
        if let Some(list) = into.as_array_mut() {
            list.retain(|it| it["name"] != entry["name"]);
            list.push(entry.clone());
        }
    }
}

/// Sets a flag, present or not.
pub(crate) fn flag(container: &mut Value, name: &str, value: &str) {
    let text = json!(format!("{name}={value}"));
    let Some(args) = container["args"].as_array_mut() else {
        return;
    };
    let start = format!("{name}=");
    let found = args
        .iter_mut()
        .find(|it| it.as_str().is_some_and(|it| it.starts_with(&start)));
    match found {
        Some(found) => *found = text,
        None => args.push(text),
    }
}
