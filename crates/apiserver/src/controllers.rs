//! Background controllers: garbage collection by owner reference, deletion of the contents of namespaces and
//! definitions, expiry of Events, and restoration of the default objects of namespaces.
//!
//! ```text
//!   owners       dependents of deleted owners, and deletions that wait for dependents
//!   namespaces   deletion of namespaces, and the default objects of namespaces
//!   conditions   conditions of a namespace being deleted
//!   not_run      events on Pods and workloads without a runner
//!   protection   removal of finalizers and taints of admission from nodes, volumes and claims
//! ```
//!
//! One task per server, woken by the events of the store. The task has a weak reference to [`Core`], so that dropping
//! the server ends the task.

mod conditions;
pub(crate) mod namespaces;
mod not_run;
mod owners;
mod protection;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use apimachinery::crd;
use apimachinery::kinds::{CRD_COLLECTION, Resource};
use apimachinery::patch::managed::{self, Writer};
use apimachinery::time::seconds;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::core::Core;
use crate::rest::{
    DeleteOptions, FOREGROUND, ORPHAN, Propagation, definitions, delete_object, edit,
};
use crate::store::{Change, Notice, Object, ObjectKey, WriteError};
use crate::view::Kind;

/// Time to live of Events in kube-apiserver (`--event-ttl`).
const EVENTS_LIVE: SignedDuration = SignedDuration::from_hours(1);
const SWEEP: Duration = Duration::from_secs(300);
/// Maximum number of events in one batch.
const BATCH: usize = 1000;

/// Starts the task. Unfinished deletions of a previous process come first.
pub(crate) fn start(core: &Arc<Core>) {
    let (sender, notices) = mpsc::unbounded_channel();
    let pending = {
        let mut state = core.store.subscribe();
        state.notify(sender);
        state.unfinished()
    };
    let weak = Arc::downgrade(core);
    tokio::spawn(run(weak, notices, pending));
}

async fn run(
    core: Weak<Core>,
    mut notices: mpsc::UnboundedReceiver<Arc<Notice>>,
    pending: Vec<ObjectKey>,
) {
    for place in pending {
        let Some(core) = core.upgrade() else { return };
        Collector { core: &core }.object(&place).await;
    }
    if let Some(core) = core.upgrade() {
        definitions::decide_open(&core).await;
    }
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            found = notices.recv_many(&mut batch, BATCH) => {
                if found == 0 {
                    return;
                }
                let Some(core) = core.upgrade() else { return };
                Collector { core: &core }.notices(&batch).await;
                batch.clear();
            }
            _ = sweep.tick() => {
                let Some(core) = core.upgrade() else { return };
                Collector { core: &core }.old_events(Timestamp::now()).await;
            }
        }
    }
}

struct Collector<'a> {
    core: &'a Core,
}

impl Collector<'_> {
    async fn notices(&self, notices: &[Arc<Notice>]) {
        // A namespace or definition with deleted objects is checked once per batch, since each check counts the
        // remaining objects.
        let mut waiting = BTreeSet::new();
        for notice in notices {
            self.notice(notice).await;
            if notice.event.change == Change::Deleted {
                waiting.extend(waiting_for(&notice.place, &notice.event.object));
            }
        }
        for place in &waiting {
            self.deleting(place).await;
        }
    }

    async fn notice(&self, notice: &Notice) {
        let (place, event) = (&notice.place, &notice.event);
        let object = &event.object;
        let before = event
            .previous
            .as_ref()
            .map_or(&[][..], |previous| &previous.facts.owners);
        if event.change == Change::Deleted {
            let dependents = self.dependents(&object.facts.uid);
            for dependent in dependents {
                self.dependent(&dependent).await;
            }
            if *place.collection == *CRD_COLLECTION {
                definitions::names_released(self.core, &object.value()).await;
            }
        } else {
            if object.facts.owners != before {
                self.dependent(place).await;
            }
            if object.facts.deleting {
                self.deleting(place).await;
            }
            if *place.collection == *CRD_COLLECTION {
                definitions::accept(self.core, &place.key).await;
            }
            if &*place.collection == "/nodes" {
                self.ready(place, object).await;
            }
        }
        if &*place.collection == "/pods" {
            self.unused(event.change, object).await;
        }
        self.not_run(event.change, place, object).await;
        self.restore(event.change, place, object).await;
        // The deletion of an owner may have waited for this object, or for a change of its owner references.
        for owner in before {
            if event.change == Change::Deleted || !object.facts.owners.contains(owner) {
                let found = self.core.store.read().by_uid(owner).cloned();
                if let Some(owner) = found {
                    self.deleting(&owner).await;
                }
            }
        }
    }

    /// Processes an object after any change.
    async fn object(&self, place: &ObjectKey) {
        self.dependent(place).await;
        self.deleting(place).await;
    }

    /// Continues the deletion of an object.
    async fn deleting(&self, place: &ObjectKey) {
        let Some(resource) = self.resource(place) else {
            return;
        };
        let Some(object) = self.core.store.get(&place.collection, &place.key) else {
            return;
        };
        if !object.facts.deleting {
            return;
        }
        for finalizer in &object.facts.finalizers {
            match &**finalizer {
                FOREGROUND => self.foreground(&resource, &object).await,
                ORPHAN => self.orphan(&resource, &object).await,
                crd::FINALIZER if resource.is_crd() => {
                    self.definition(&resource, &object, &object.value()).await
                }
                protection::CLAIM if !self.is_used(place, &object) => {
                    self.finished(&resource, &object.key, protection::CLAIM)
                        .await;
                }
                protection::VOLUME if object.value()["status"]["phase"] != "Bound" => {
                    self.finished(&resource, &object.key, protection::VOLUME)
                        .await;
                }
                _ => {}
            }
        }
        if &*place.collection == "/namespaces" {
            self.namespace(&resource, &object).await;
        }
    }

    /// Deletes the [`Object`]s of a definition, then removes the definition's finalizer.
    async fn definition(&self, resource: &Resource, object: &Object, crd: &Value) {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let collection: Arc<str> = format!("{group}/{plural}").into();
        if self.purge(&collection, "").await {
            self.finished(resource, &object.key, crd::FINALIZER).await;
        }
    }

    /// Deletes the objects under a prefix. Returns true when none is left.
    async fn purge(&self, collection: &Arc<str>, prefix: &str) -> bool {
        let objects: Vec<Arc<Object>> = self
            .core
            .store
            .read()
            .range(collection, prefix, None)
            .cloned()
            .collect();
        for object in objects.iter().filter(|object| !object.facts.deleting) {
            let place = ObjectKey {
                collection: Arc::clone(collection),
                key: Arc::clone(&object.key),
            };
            if let Some(resource) = self.resource(&place) {
                self.delete(
                    &resource,
                    &object.key,
                    Some(Propagation::Background),
                    &object.facts.uid,
                )
                .await;
            }
        }
        self.core
            .store
            .read()
            .range(collection, prefix, None)
            .next()
            .is_none()
    }

    async fn old_events(&self, now: Timestamp) {
        let oldest = now.checked_sub(EVENTS_LIVE).unwrap_or(now);
        let place = ObjectKey {
            collection: "/events".into(),
            key: "".into(),
        };
        let Some(resource) = self.resource(&place) else {
            return;
        };
        let events: Vec<Arc<Object>> = self
            .core
            .store
            .read()
            .range(&place.collection, "", None)
            .cloned()
            .collect();
        for event in events {
            let value = event.value();
            let times = [
                &value["lastTimestamp"],
                &value["series"]["lastObservedTime"],
                &value["eventTime"],
                &value["metadata"]["creationTimestamp"],
            ];
            let last = times
                .into_iter()
                .filter_map(|t| t.as_str()?.parse::<Timestamp>().ok())
                .max();
            if last.is_some_and(|last| last < oldest) {
                self.delete(&resource, &event.key, None, &event.facts.uid)
                    .await;
            }
        }
    }

    fn resource(&self, place: &ObjectKey) -> Option<Arc<Resource>> {
        let (group, plural) = place.collection.split_once('/')?;
        self.core.store.registry().find(group, plural)
    }

    async fn delete(
        &self,
        resource: &Resource,
        key: &Arc<str>,
        propagation: Option<Propagation>,
        uid: &str,
    ) {
        let options = DeleteOptions {
            propagation,
            uid: Some(uid.to_owned()),
            ..DeleteOptions::default()
        };
        match delete_object(self.core, resource, key, &options).await {
            Err(error) if !matches!(error.code, 404 | 409) => {
                tracing::warn!(kind = resource.kind, %key, %error, "an object could not be deleted");
            }
            _ => {}
        }
    }

    async fn finished(&self, resource: &Resource, key: &Arc<str>, finalizer: &str) {
        self.take_out(resource, key, "finalizers", |name| name == finalizer)
            .await;
    }

    /// Removes items from a list of the metadata, and from `managedFields`.
    async fn take_out(
        &self,
        resource: &Resource,
        key: &Arc<str>,
        list: &str,
        which: impl Fn(&Value) -> bool,
    ) {
        let done = edit(self.core, resource, key, |object| {
            let live = object.clone();
            let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
                return false;
            };
            let Some(all) = metadata.get_mut(list).and_then(Value::as_array_mut) else {
                return false;
            };
            let before = all.len();
            all.retain(|item| !which(item));
            if all.len() == before {
                return false;
            }
            if all.is_empty() {
                metadata.remove(list);
            }
            self.record(resource, &live, object);
            true
        });
        report(done.await.map(drop));
    }

    /// Records a change under the manager of the controllers that run beside kube-apiserver.
    fn record(&self, resource: &Resource, live: &Value, new: &mut Value) {
        let writer = Writer {
            manager: "kube-controller-manager",
            subresource: "",
            api_version: &resource.stored,
            time: &seconds(Timestamp::now()),
        };
        let kind = Kind {
            core: self.core,
            resource,
        };
        // A failure to record managers never fails a write.
        let _ = managed::update(Some(live), new, writer, &kind);
    }
}

/// Namespace or definition with a deletion that may have waited for an [`Object`].
fn waiting_for(place: &ObjectKey, object: &Object) -> impl Iterator<Item = ObjectKey> {
    let definition = place
        .collection
        .split_once('/')
        .map(|(group, plural)| format!("{plural}.{group}"));
    let namespace = Some(object.namespace().to_owned());
    [("/namespaces", namespace), (CRD_COLLECTION, definition)]
        .into_iter()
        .filter_map(|(collection, key)| {
            let key = key.filter(|key| !key.is_empty())?;
            Some(ObjectKey {
                collection: collection.into(),
                key: key.into(),
            })
        })
}

fn report(result: Result<(), WriteError>) {
    match result {
        Ok(()) | Err(WriteError::Conflict) => {}
        Err(error) => tracing::warn!(%error, "the collector could not write"),
    }
}

#[cfg(test)]
mod tests;
