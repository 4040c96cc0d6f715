//! Garbage collection by owner reference (`pkg/controller/garbagecollector` of Kubernetes).

use std::collections::HashSet;
use std::sync::Arc;

use apimachinery::kinds::Resource;
use serde_json::Value;

use super::{Collector, report};
use crate::rest::{FOREGROUND, ORPHAN, Propagation, edit};
use crate::store::{Object, ObjectKey};

impl Collector<'_> {
    /// Deletes an object without a live owner; otherwise removes the references to deleted owners.
    pub(super) async fn dependent(&self, place: &ObjectKey) {
        let Some(resource) = self.resource(place) else {
            return;
        };
        let Some(object) = self.core.store.get(&place.collection, &place.key) else {
            return;
        };
        // An object being deleted keeps its references.
        if object.facts.deleting {
            return;
        }
        let value = object.value();
        let owners = value["metadata"]["ownerReferences"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        if owners.is_empty() {
            return;
        }
        let mut gone = Vec::new();
        let mut waiting = Vec::new();
        for owner in &owners {
            let uid = owner["uid"].as_str().unwrap_or_default();
            match self.owner(uid, &object) {
                None => gone.push(uid.to_owned()),
                Some(owner) if is_waiting(&owner) => waiting.push(uid.to_owned()),
                Some(_) => {}
            }
        }
        if gone.is_empty() && waiting.is_empty() {
            return;
        }
        if gone.len() + waiting.len() < owners.len() {
            gone.append(&mut waiting);
            self.disown(&resource, &place.key, &gone).await;
            return;
        }
        let has = |name: &str| object.facts.has_finalizer(name);
        let has_dependents = !self.dependents(&object.facts.uid).is_empty();
        let propagation = if !waiting.is_empty() && has_dependents || has(FOREGROUND) {
            Propagation::Foreground
        } else if has(ORPHAN) {
            Propagation::Orphan
        } else {
            Propagation::Background
        };
        self.delete(&resource, &place.key, Some(propagation), &object.facts.uid)
            .await;
    }

    /// Owner with a uid, unless owner and dependent are in different namespaces.
    fn owner(&self, uid: &str, dependent: &Object) -> Option<Arc<Object>> {
        let state = self.core.store.read();
        let place = state.by_uid(uid)?;
        let owner = state.get(&place.collection, &place.key)?;
        let reachable = owner.namespace().is_empty() || owner.namespace() == dependent.namespace();
        reachable.then(|| Arc::clone(owner))
    }

    /// Deletes the dependents of an [`Object`] in foreground deletion, and removes the finalizer once no dependent blocks
    /// the deletion.
    pub(super) async fn foreground(&self, resource: &Resource, owner: &Object) {
        let mut blocked = false;
        for dependent in self.dependents(&owner.facts.uid) {
            self.dependent(&dependent).await;
            let found = self.core.store.get(&dependent.collection, &dependent.key);
            let Some(object) = found.filter(|found| blocks(&found.value(), &owner.facts.uid))
            else {
                continue;
            };
            if self.waits_for(&object, owner) {
                self.unblock(&dependent).await;
            } else {
                blocked = true;
            }
        }
        if !blocked {
            self.finished(resource, &owner.key, FOREGROUND).await;
        }
    }

    /// True if a dependent waits for its own dependents, the owner among them: a cycle of [`Object`]s that would wait for
    /// each other. An object that owns itself is no such cycle, as in Kubernetes, and waits for ever.
    fn waits_for(&self, dependent: &Object, owner: &Object) -> bool {
        let (from, to) = (&dependent.facts.uid, &owner.facts.uid);
        if from == to || !is_waiting(dependent) {
            return false;
        }
        let state = self.core.store.read();
        let mut seen = HashSet::from([from.clone()]);
        let mut next = vec![from.clone()];
        while let Some(uid) = next.pop() {
            for place in state.dependents(&uid) {
                let Some(object) = state.get(&place.collection, &place.key) else {
                    continue;
                };
                let uid = &object.facts.uid;
                if uid == to {
                    return true;
                }
                if is_waiting(object) && seen.insert(uid.clone()) {
                    next.push(uid.clone());
                }
            }
        }
        false
    }

    /// Removes `blockOwnerDeletion` from the owner references of an object, so that the owners can be deleted first.
    async fn unblock(&self, place: &ObjectKey) {
        let Some(resource) = self.resource(place) else {
            return;
        };
        let done = edit(self.core, &resource, &place.key, |object| {
            let live = object.clone();
            let owners = object
                .pointer_mut("/metadata/ownerReferences")
                .and_then(Value::as_array_mut);
            let mut changed = false;
            for owner in owners.into_iter().flatten() {
                if owner["blockOwnerDeletion"] == true {
                    owner["blockOwnerDeletion"] = Value::Bool(false);
                    changed = true;
                }
            }
            if changed {
                self.record(&resource, &live, object);
            }
            changed
        });
        report(done.await.map(drop));
    }

    /// Removes the references to an [`Object`] from its dependents, then removes the `orphan` finalizer.
    pub(super) async fn orphan(&self, resource: &Resource, owner: &Object) {
        for dependent in self.dependents(&owner.facts.uid) {
            if let Some(resource) = self.resource(&dependent) {
                self.disown(&resource, &dependent.key, &[owner.facts.uid.to_string()])
                    .await;
            }
        }
        self.finished(resource, &owner.key, ORPHAN).await;
    }

    pub(super) fn dependents(&self, uid: &str) -> Vec<ObjectKey> {
        self.core.store.read().dependents(uid).cloned().collect()
    }

    async fn disown(&self, resource: &Resource, key: &Arc<str>, uids: &[String]) {
        self.take_out(resource, key, "ownerReferences", |owner| {
            uids.iter().any(|uid| owner["uid"] == uid.as_str())
        })
        .await;
    }
}

/// True if an [`Object`] is being deleted and waits for dependents.
fn is_waiting(owner: &Object) -> bool {
    owner.facts.deleting && owner.facts.has_finalizer(FOREGROUND)
}

fn blocks(dependent: &Value, uid: &str) -> bool {
    let owners = dependent["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten();
    owners
        .into_iter()
        .any(|owner| owner["uid"] == uid && owner["blockOwnerDeletion"] == true)
}
