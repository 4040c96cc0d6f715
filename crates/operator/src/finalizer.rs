//! Finalizers, added and removed with optimistic locking.
//!
//! A finalizer must be stored before the first external resource is created, and its removal must not overwrite the
//! finalizers of others: both patches contain the whole list and the resourceVersion of the read.

use std::fmt::Debug;

use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::json;

use crate::client::Api;

/// True if `object` has `finalizer`.
pub fn has<K: Resource>(object: &K, finalizer: &str) -> bool {
    object.finalizers().iter().any(|known| known == finalizer)
}

/// Stores `finalizer` on `object` and returns the stored object.
///
/// # Errors
/// Errors of the API server: a conflict when the object changed since the read.
pub async fn add<K>(api: &Api<K>, object: &K, finalizer: &str) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let mut all = object.finalizers().to_vec();
    if !all.iter().any(|known| known == finalizer) {
        all.push(finalizer.to_owned());
    }
    replace(api, object, all).await
}

/// Removes `finalizer` from `object`. Succeeds if the object does not exist.
///
/// # Errors
/// Errors of the API server: a conflict when the object changed since the read.
pub async fn remove<K>(api: &Api<K>, object: &K, finalizer: &str) -> kube::Result<()>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    if !has(object, finalizer) {
        return Ok(());
    }
    let rest = object
        .finalizers()
        .iter()
        .filter(|known| *known != finalizer)
        .cloned()
        .collect();
    match replace(api, object, rest).await {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        other => other.map(|_| ()),
    }
}

async fn replace<K>(api: &Api<K>, object: &K, finalizers: Vec<String>) -> kube::Result<K>
where
    K: Resource + Clone + DeserializeOwned + Debug,
{
    let patch = json!({"metadata": {
        "finalizers": finalizers,
        "resourceVersion": object.resource_version(),
    }});
    api.patch(
        &object.name_any(),
        &PatchParams::default(),
        &Patch::Merge(&patch),
    )
    .await
}
