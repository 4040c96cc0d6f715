//! Labels and annotations of a provider's objects, by server-side apply.

use api::kube::api::{DynamicObject, Patch, PatchParams};
use api::kube::{Resource, ResourceExt};
use serde_json::json;

use super::{External, ExternalError, reference_to, refused};
use crate::inplace::{self, Manager, Wanted};

impl External {
    /// Applies labels and annotations to `object`, unless it is being deleted. Removes unwanted ones that `manager`
    /// applied before. Sends no request without a change.
    ///
    /// # Errors
    /// When a request fails, for example with a conflict because the object has changed.
    pub async fn apply_metadata(
        &self,
        object: &DynamicObject,
        wanted: &Wanted,
        manager: &Manager,
    ) -> Result<(), ExternalError> {
        let metadata = object.meta();
        if metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        if inplace::released(metadata, wanted, manager).is_some() {
            self.release(object, wanted, manager).await?;
        }
        if !inplace::is_outdated(metadata, wanted, manager) {
            return Ok(());
        }
        let (reference, namespace) = (reference_to(object), object.namespace().unwrap_or_default());
        let body = json!({
            "apiVersion": object.types.as_ref().map(|types| &types.api_version),
            "kind": reference.kind,
            "metadata": {
                "name": reference.name,
                "namespace": namespace,
                // A new object with the same name must not be changed.
                "uid": metadata.uid,
                "labels": wanted.labels,
                "annotations": wanted.annotations,
            },
        });
        let params = PatchParams::apply(manager.name).force();
        let api = self.api(&reference, &namespace).await?;
        let applied = api
            .patch(&reference.name, &params, &Patch::Apply(&body))
            .await;
        applied
            .map(drop)
            .map_err(|source| refused("changing", &reference, &namespace, source))
    }

    /// Releases the wanted labels and annotations from the [`Manager`]s of former versions.
    async fn release(
        &self,
        object: &DynamicObject,
        wanted: &Wanted,
        manager: &Manager,
    ) -> Result<(), ExternalError> {
        let (reference, namespace) = (reference_to(object), object.namespace().unwrap_or_default());
        // The cache has only a part of managedFields.
        let Some(live) = self.get_live(&reference, &namespace).await? else {
            return Ok(());
        };
        match inplace::released(live.meta(), wanted, manager) {
            Some(entries) => {
                let patch = inplace::release_patch(live.meta(), &entries);
                self.patch(&live, &patch).await
            }
            None => Ok(()),
        }
    }
}
