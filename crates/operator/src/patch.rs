//! Minimal patches from a stored object to the desired one.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::client::Api;

/// Returns the JSON merge patch (RFC 7386) from `before` to `after`; `None` when both are equal.
pub fn diff(before: &Value, after: &Value) -> Option<Value> {
    match (before, after) {
        (Value::Object(old), Value::Object(new)) => {
            let mut patch = Map::new();
            for key in old.keys().filter(|key| !new.contains_key(*key)) {
                patch.insert(key.clone(), Value::Null);
            }
            for (key, value) in new {
                match old.get(key) {
                    Some(known) => {
                        if let Some(inner) = diff(known, value) {
                            patch.insert(key.clone(), inner);
                        }
                    }
                    None => {
                        patch.insert(key.clone(), value.clone());
                    }
                }
            }
            (!patch.is_empty()).then_some(Value::Object(patch))
        }
        (old, new) => (old != new).then(|| new.clone()),
    }
}

/// Writes the status of `after` if it differs from the status of `before`, and returns the stored object.
///
/// The patch contains only the differences, with the resourceVersion of `before` as a precondition, so that two writers
/// of one list (conditions are a list) cannot undo each other's changes.
///
/// # Errors
/// Errors of the API server: a conflict when the object changed since `before` was read.
pub async fn status<K>(api: &Api<K>, before: &K, after: &K) -> kube::Result<Option<K>>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let part = |object: &K| -> kube::Result<Value> {
        let value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        Ok(value
            .get("status")
            .cloned()
            .unwrap_or(Value::Object(Map::new())))
    };
    let Some(change) = diff(&part(before)?, &part(after)?) else {
        return Ok(None);
    };
    let patch = json!({
        "metadata": {"resourceVersion": before.resource_version()},
        "status": change,
    });
    api.patch_status(
        &before.name_any(),
        &PatchParams::default(),
        &Patch::Merge(&patch),
    )
    .await
    .map(Some)
}

/// Writes metadata and spec of `after` where they differ from `before`, and returns the stored object.
///
/// # Errors
/// Errors of the API server: a conflict when the object changed since `before` was read.
pub async fn object<K>(api: &Api<K>, before: &K, after: &K) -> kube::Result<Option<K>>
where
    K: Resource + Clone + Serialize + DeserializeOwned + Debug,
{
    let part = |object: &K| -> kube::Result<Value> {
        let mut value = serde_json::to_value(object).map_err(kube::Error::SerdeError)?;
        if let Some(fields) = value.as_object_mut() {
            fields.remove("status");
        }
        Ok(value)
    };
    let Some(mut change) = diff(&part(before)?, &part(after)?) else {
        return Ok(None);
    };
    change["metadata"]["resourceVersion"] = json!(before.resource_version());
    api.patch(
        &before.name_any(),
        &PatchParams::default(),
        &Patch::Merge(&change),
    )
    .await
    .map(Some)
}

#[cfg(test)]
mod tests;
