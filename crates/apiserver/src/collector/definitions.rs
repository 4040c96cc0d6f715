//! Acceptance of the names of definitions one after the other, and release of the names of deleted definitions (the
//! naming and establishing controllers of `apiextensions-apiserver`).

use std::sync::Arc;

use apimachinery::crd::names;
use apimachinery::kinds::CRD_COLLECTION;
use jiff::Timestamp;
use serde_json::Value;

use super::{Collector, report};
use crate::rest::{definitions_beside, edit};
use crate::server::Core;
use crate::store::Place;

/// Serialises the decisions, since two definitions may request a name at the same time.
static DECIDING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Accepts or rejects the names of a definition that was just created.
pub(crate) async fn accept(core: &Core, name: &str) {
    let collection = CRD_COLLECTION.into();
    let key = Arc::from(name);
    let place = Place { collection, key };
    Collector { core }.accept(&place).await;
}

impl Collector<'_> {
    /// Accepts or rejects the names of a definition, and then those of others in its group if its own changed.
    pub(super) async fn accept(&self, place: &Place) {
        if let Some(definition) = self.decide(place).await {
            self.names_released(&definition).await;
        }
    }

    /// Other definitions may wait for the names of a deleted definition.
    pub(super) async fn names_released(&self, definition: &Value) {
        for other in definitions_beside(self.core, definition) {
            if names::is_open(&other) {
                self.decide(&place(&other)).await;
            }
        }
    }

    /// Decides on definitions that a previous process left undecided.
    pub(super) async fn definitions(&self) {
        let open: Vec<Place> = {
            let state = self.core.store.read();
            let all = state.range(CRD_COLLECTION, "", None);
            let open = all.map(|object| names::outline(&object.json()));
            open.filter(names::is_open).map(|crd| place(&crd)).collect()
        };
        for place in open {
            self.decide(&place).await;
        }
    }

    /// Returns the definition if its names or conditions changed.
    async fn decide(&self, place: &Place) -> Option<Value> {
        let resource = self.resource(place)?;
        let now = Timestamp::now();
        let _alone = DECIDING.lock().await;
        let (before, done) = {
            let before = self.core.store.get(&place.collection, &place.key)?;
            let done = edit(self.core, &resource, &place.key, |crd| {
                let is_undecided =
                    crd["metadata"]["deletionTimestamp"].is_null() && names::is_open(crd);
                is_undecided && names::accept(crd, &definitions_beside(self.core, crd), now)
            });
            (before, done.await)
        };
        match done {
            Ok(Some(after)) if after.revision != before.revision => Some(after.value()),
            other => {
                report(other.map(drop));
                None
            }
        }
    }
}

fn place(definition: &Value) -> Place {
    let name = definition["metadata"]["name"].as_str().unwrap_or_default();
    Place {
        collection: CRD_COLLECTION.into(),
        key: Arc::from(name),
    }
}
