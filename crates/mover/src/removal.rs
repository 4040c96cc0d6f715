//! Deletion without finalizers: an object leaves one side, and the resources in the cloud remain.

use std::time::Duration;

use api::names::DELETE_FOR_MOVE_ANNOTATION;
use kube::ResourceExt;
use kube::api::{DeleteParams, Preconditions};
use serde_json::json;

use crate::access::Side;
use crate::error::{Error, or_absent};
use crate::graph::Object;

/// Maximum number of attempts to remove finalizers that a controller adds again.
const ATTEMPTS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(250);

/// Deletes the object with the uid of `object`, and returns after it is gone.
///
/// # Errors
/// When a request is rejected, or a controller adds finalizers again and again.
pub(crate) async fn remove(side: &Side, object: &Object) -> Result<(), Error> {
    let version = crate::preflight::version(object).to_owned();
    let key = object.key();
    let patch =
        json!({"metadata": {"finalizers": null, "annotations": {DELETE_FOR_MOVE_ANNOTATION: ""}}});
    let api = side.objects(&object.kind, &version, key.0);
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: object.object.metadata.uid.clone(),
        resource_version: None,
    });
    for attempt in 0..ATTEMPTS {
        if attempt > 1 {
            tokio::time::sleep(PAUSE).await;
        }
        let stored = side.get(&object.kind, &version, key).await?;
        let Some(stored) = stored.filter(|stored| stored.uid().as_deref() == Some(object.uid()))
        else {
            return Ok(());
        };
        let announced = stored
            .annotations()
            .contains_key(DELETE_FOR_MOVE_ANNOTATION);
        if !announced || !stored.finalizers().is_empty() {
            side.merge(object, &version, None, patch.clone()).await?;
        }
        let action = || format!("deleting {} {}/{}", object.kind.name, key.0, key.1);
        let deleted = side.attempt(action, || api.delete(key.1, &params)).await;
        match or_absent(deleted) {
            Err(error) if error.code() == Some(409) => {}
            other => drop(other?),
        }
    }
    Err(Error::Stuck(format!(
        "{} of the {} is not gone: a controller adds its finalizers again while it is paused",
        object.label(),
        side.title
    )))
}
