//! Definitions get their names, and are established, one after the other; one that goes leaves its names to others
//! (the naming and establishing controllers of `apiextensions-apiserver`).

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::{Collector, report};
use crate::crd::names;
use crate::kinds::CRD_COLLECTION;
use crate::rest::{definitions_beside, edit};
use crate::server::Core;
use crate::store::Place;

/// Two definitions may claim a name at once: one is decided on after the other.
static DECIDING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Decides on the names of a definition that was just created.
pub(crate) async fn accept(core: &Core, name: &str) {
    let collection = CRD_COLLECTION.into();
    let key = Arc::from(name);
    let place = Place { collection, key };
    Collector { core }.accept(&place).await;
}

impl Collector<'_> {
    /// Decides on the names of a definition, and on those of others in its group when that changed its own.
    pub(super) async fn accept(&self, place: &Place) {
        if let Some(definition) = self.decide(place).await {
            self.names_released(&definition).await;
        }
    }

    /// Names of this definition may have been waited for.
    pub(super) async fn names_released(&self, definition: &Value) {
        for other in definitions_beside(self.core, definition) {
            if names::is_open(&other) {
                self.decide(&place(&other)).await;
            }
        }
    }

    /// Takes up what a server that was killed left undecided.
    pub(super) async fn definitions(&self) {
        let open: Vec<Place> = {
            let state = self.core.store.read();
            let all = state.range(CRD_COLLECTION, "", None);
            let open = all.map(|object| object.value());
            open.filter(names::is_open).map(|crd| place(&crd)).collect()
        };
        for place in open {
            self.decide(&place).await;
        }
    }

    /// The definition when its names or conditions changed.
    async fn decide(&self, place: &Place) -> Option<Value> {
        let resource = self.resource(place)?;
        let now = Timestamp::now();
        let _alone = DECIDING.lock().await;
        let (before, done) = {
            let before = self.core.store.get(&place.collection, &place.key)?;
            let done = edit(self.core, &resource, &place.key, |crd| {
                let others = definitions_beside(self.core, crd);
                crd["metadata"]["deletionTimestamp"].is_null() && names::accept(crd, &others, now)
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
