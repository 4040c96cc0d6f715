//! Acceptance of the names of definitions one after the other, and release of the names of deleted definitions (the
//! naming and establishing controllers of `apiextensions-apiserver`).

use std::sync::Arc;

use apimachinery::crd::names;
use apimachinery::kinds::CRD_COLLECTION;
use jiff::Timestamp;
use serde_json::Value;

use super::write::{definitions_beside, edit};
use crate::core::Core;
use crate::store::WriteError;

/// Serialises the decisions, since two definitions may request a name at the same time.
static DECIDING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Accepts or rejects the names of a definition, and then of others in the group if the definition's names changed.
pub(crate) async fn accept(core: &Core, name: &str) {
    if let Some(definition) = decide(core, name).await {
        names_released(core, &definition).await;
    }
}

/// Decides again on other definitions: some may wait for the names of a deleted definition.
pub(crate) async fn names_released(core: &Core, definition: &Value) {
    for other in definitions_beside(core, definition) {
        if names::is_open(&other) {
            decide(core, name_of(&other)).await;
        }
    }
}

/// Decides on definitions left undecided by a previous process.
pub(crate) async fn decide_open(core: &Core) {
    let open: Vec<Value> = {
        let state = core.store.read();
        let all = state.range(CRD_COLLECTION, "", None);
        let open = all.map(|object| names::outline(&object.json()));
        open.filter(names::is_open).collect()
    };
    for definition in open {
        decide(core, name_of(&definition)).await;
    }
}

/// Returns the definition if its names or conditions changed.
async fn decide(core: &Core, name: &str) -> Option<Value> {
    let (group, plural) = CRD_COLLECTION.split_once('/')?;
    let resource = core.store.registry().find(group, plural)?;
    let key = Arc::from(name);
    let now = Timestamp::now();
    let _alone = DECIDING.lock().await;
    let (before, done) = {
        let before = core.store.get(CRD_COLLECTION, &key)?;
        let done = edit(core, &resource, &key, |crd| {
            let is_undecided =
                crd["metadata"]["deletionTimestamp"].is_null() && names::is_open(crd);
            is_undecided && names::accept(crd, &definitions_beside(core, crd), now)
        });
        (before, done.await)
    };
    match done {
        Ok(Some(after)) if after.revision != before.revision => Some(after.value()),
        Ok(_) | Err(WriteError::Conflict) => None,
        Err(error) => {
            tracing::warn!(%error, "the names of a definition could not be decided");
            None
        }
    }
}

fn name_of(definition: &Value) -> &str {
    definition["metadata"]["name"].as_str().unwrap_or_default()
}
