//! Custom objects older than their schema are served under the current schema, without removed fields and with added
//! defaults, as decoded by kube-apiserver from etcd.
//!
//! Objects are converted once, in memory, when a definition changes and when the server starts. The written form
//! stays until the object is written again, and the next schema is applied to the written form.
//!
//! One pass runs at a time, with the schema served at its start. Every change of a schema starts a pass after the
//! schema is served, so the last pass has the newest schema and covers objects converted by older passes.

use std::sync::Arc;

use apimachinery::kinds::{CRD_COLLECTION, Resource};

use super::{Object, Store};

/// Number of objects after which a pass yields to other tasks.
const AT_ONCE: usize = 64;

impl Store {
    /// Converts the objects of a kind to the currently served schema.
    pub(crate) async fn apply_schema(&self, group: &str, plural: &str) {
        self.apply_schema_before(group, plural, u64::MAX).await;
    }

    /// Same for all kinds. An object newer than its definition was written under the current schema.
    pub(super) async fn apply_schemas(&self) {
        let registry = Arc::clone(&self.registry());
        for resource in registry.all().filter(|resource| resource.is_custom()) {
            let name = format!("{}.{}", resource.plural, resource.group);
            if let Some(definition) = self.get(CRD_COLLECTION, &name) {
                self.apply_schema_before(&resource.group, &resource.plural, definition.revision)
                    .await;
            }
        }
    }

    async fn apply_schema_before(&self, group: &str, plural: &str, revision: u64) {
        let _alone = self.applying_schema.lock().await;
        let Some(resource) = self.registry().find(group, plural) else {
            return;
        };
        let older: Vec<Arc<Object>> = {
            let state = self.read();
            let all = state.range(&resource.collection, "", None);
            all.filter(|object| object.revision < revision)
                .cloned()
                .collect()
        };
        for part in older.chunks(AT_ONCE) {
            let converted: Vec<_> = part
                .iter()
                .filter_map(|object| converted(&resource, object))
                .collect();
            if !converted.is_empty() {
                let mut state = self.shared.state.write();
                for object in converted {
                    state.convert(&resource.collection, object);
                }
            }
            tokio::task::yield_now().await;
        }
    }
}

/// [`Object`] under the schema of its version; `None` for an unchanged form.
fn converted(resource: &Resource, object: &Arc<Object>) -> Option<Arc<Object>> {
    let version = resource
        .versions
        .iter()
        .find(|version| *version.api_version == *object.facts.api_version)?;
    let schema = version.schema.as_ref()?;
    let before = object.written().value();
    let mut value = before.clone();
    schema.prune(&mut value);
    let mut defaulted = value.clone();
    if schema.default(&mut defaulted).is_ok() {
        value = defaulted;
    } else {
        let (collection, key) = (&resource.collection, &object.key);
        tracing::warn!(%collection, %key, "an object is served without the defaults of its changed definition: with them it would be too large");
    }
    if value != before {
        return Some(Arc::new(object.converted_to(&value)));
    }
    (!object.is_as_written()).then(|| Arc::clone(object.written()))
}
