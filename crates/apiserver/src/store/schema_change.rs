//! Custom objects whose schema changed after they were written: they are served as the schema has them now, without the fields
//! that it dropped and with the defaults that it gained, as kube-apiserver decodes what it reads from etcd.
//!
//! Done once, in memory, when a definition changes and when the server starts, so that lists and watches find objects
//! ready. What was written stays as it is until the object is written again, and is what the next schema is applied to.
//!
//! One pass runs at a time, with the schema that is served when it begins. Every change of a schema starts a pass once
//! it is served, so that the last pass has the newest schema and goes over whatever an older one left.

use std::sync::Arc;

use super::{Object, Store};
use crate::kinds::{CRD_COLLECTION, Resource};

/// Objects that are looked at before others have their turn.
const AT_ONCE: usize = 64;

impl Store {
    /// Converts the objects of a kind to the schema that is served now.
    pub(crate) async fn apply_schema(&self, group: &str, plural: &str) {
        self.apply_schema_before(group, plural, u64::MAX).await;
    }

    /// The same for all kinds: an object that is younger than its definition was written by the schema that it has.
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

/// The object under the schema of its version; none when it is served in that form already.
fn converted(resource: &Resource, object: &Arc<Object>) -> Option<Arc<Object>> {
    let version = resource
        .versions
        .iter()
        .find(|version| *version.api_version == *object.facts.api_version)?;
    let schema = version.schema.as_ref()?;
    let before = object.written().value();
    let mut value = before.clone();
    schema.prune(&mut value);
    schema.default(&mut value);
    if value != before {
        return Some(Arc::new(object.converted_to(&value)));
    }
    (!object.is_as_written()).then(|| Arc::clone(object.written()))
}
