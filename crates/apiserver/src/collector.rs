//! What happens to objects because others go: garbage collection by owner reference, the contents of
//! deleted namespaces and definitions, old Events.
//!
//! One task per server, woken by the store's events. It holds the server weakly, so a server that is
//! dropped takes its task with it.

mod conditions;
pub(crate) mod definitions;
mod protection;

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::crd;
use crate::kinds::{CRD_COLLECTION, Resource};
use crate::patch::managed::{self, Writer};
use crate::rest::view::Kind;
use crate::rest::{DeleteOptions, FOREGROUND, ORPHAN, Propagation, delete_object, edit};
use crate::server::Core;
use crate::store::{Change, Notice, Object, Place, WriteError};

/// As kube-apiserver keeps Events (`--event-ttl`).
const EVENTS_LIVE: SignedDuration = SignedDuration::from_hours(1);
const SWEEP: Duration = Duration::from_secs(300);
/// Changes taken from the store at a time.
const BATCH: usize = 1000;

/// Starts the task. What a server that was killed left half done is taken up first.
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
    pending: Vec<Place>,
) {
    for place in pending {
        let Some(core) = core.upgrade() else { return };
        Collector { core: &core }.object(&place).await;
    }
    if let Some(core) = core.upgrade() {
        Collector { core: &core }.definitions().await;
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
        // Whoever waits for many objects to go is looked at once for all of them: each look counts those that are left.
        let mut waiting = BTreeSet::new();
        for notice in notices {
            self.notice(notice).await;
            if notice.event.change == Change::Deleted {
                waiting.extend(room_made(&notice.place, &notice.event.object));
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
                self.names_made(&object.value()).await;
            }
        } else {
            if object.facts.owners != before {
                self.dependent(place).await;
            }
            if object.facts.deleting {
                self.deleting(place).await;
            }
            if *place.collection == *CRD_COLLECTION {
                self.accept(place).await;
            }
            if &*place.collection == "/nodes" {
                self.ready(place, object).await;
            }
        }
        if &*place.collection == "/pods" {
            self.unused(event.change, object).await;
        }
        // An owner may have waited for this object, or for it to have other owners.
        for owner in before {
            if event.change == Change::Deleted || !object.facts.owners.contains(owner) {
                let found = self.core.store.read().by_uid(owner).cloned();
                if let Some(owner) = found {
                    self.deleting(&owner).await;
                }
            }
        }
    }

    /// Everything that may be due for an object as it is.
    async fn object(&self, place: &Place) {
        self.dependent(place).await;
        self.deleting(place).await;
    }

    /// Deletes an object all of whose owners are gone; takes owners that are gone from one that has others.
    async fn dependent(&self, place: &Place) {
        let Some(resource) = self.resource(place) else {
            return;
        };
        let Some(object) = self.core.store.get(&place.collection, &place.key) else {
            return;
        };
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
        if object.facts.deleting {
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

    /// The owner of a uid as its dependent sees it: one in another namespace does not count.
    fn owner(&self, uid: &str, dependent: &Object) -> Option<Arc<Object>> {
        let state = self.core.store.read();
        let place = state.by_uid(uid)?;
        let owner = state.get(&place.collection, &place.key)?;
        let reachable = owner.namespace().is_empty() || owner.namespace() == dependent.namespace();
        reachable.then(|| Arc::clone(owner))
    }

    /// Goes on with the deletion of an object.
    async fn deleting(&self, place: &Place) {
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

    /// Deletes the dependents of an object; once none of them blocks it, lets it go.
    async fn foreground(&self, resource: &Resource, owner: &Object) {
        let mut blocked = false;
        for dependent in self.dependents(&owner.facts.uid) {
            self.dependent(&dependent).await;
            let still = self.core.store.get(&dependent.collection, &dependent.key);
            blocked |= still.is_some_and(|object| blocks(&object.value(), &owner.facts.uid));
        }
        if !blocked {
            self.finished(resource, &owner.key, FOREGROUND).await;
        }
    }

    /// Makes the dependents of an object forget it, then lets it go.
    async fn orphan(&self, resource: &Resource, owner: &Object) {
        for dependent in self.dependents(&owner.facts.uid) {
            if let Some(resource) = self.resource(&dependent) {
                self.disown(&resource, &dependent.key, &[owner.facts.uid.to_string()])
                    .await;
            }
        }
        self.finished(resource, &owner.key, ORPHAN).await;
    }

    /// Deletes the objects of a definition, then lets it go.
    async fn definition(&self, resource: &Resource, object: &Object, crd: &Value) {
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        let plural = crd["spec"]["names"]["plural"].as_str().unwrap_or_default();
        let collection: Arc<str> = format!("{group}/{plural}").into();
        if self.purge(&collection, "").await {
            self.finished(resource, &object.key, crd::FINALIZER).await;
        }
    }

    /// Deletes everything in a namespace, then lets it go.
    async fn namespace(&self, resource: &Resource, object: &Object) {
        let prefix = format!("{}/", object.key);
        let collections: Vec<Arc<str>> = self.core.store.read().populated().cloned().collect();
        let mut empty = true;
        for collection in collections {
            let place = Place {
                collection: Arc::clone(&collection),
                key: Arc::clone(&object.key),
            };
            if self
                .resource(&place)
                .is_some_and(|resource| resource.namespaced)
            {
                empty &= self.purge(&collection, &prefix).await;
            }
        }
        if !empty {
            self.tell_left(resource, object).await;
            return;
        }
        let done = edit(self.core, resource, &object.key, |namespace| {
            let finalizers = namespace.get_mut("spec").and_then(Value::as_object_mut);
            finalizers.is_some_and(|spec| spec.remove("finalizers").is_some())
        });
        report(done.await.map(drop));
    }

    /// Writes what is left in a namespace into its conditions.
    async fn tell_left(&self, resource: &Resource, namespace: &Object) {
        let mut left = conditions::Left::default();
        let prefix = format!("{}/", namespace.key);
        let collections: Vec<Arc<str>> = self.core.store.read().populated().cloned().collect();
        for collection in collections {
            let (group, plural) = collection.split_once('/').unwrap_or(("", &collection));
            let state = self.core.store.read();
            for object in state.range(&collection, &prefix, None) {
                left.count(plural, group, &object.facts.finalizers);
            }
        }
        let now = Timestamp::now();
        let time = crd::seconds(now);
        let done = edit(self.core, resource, &namespace.key, |namespace| {
            let before = namespace.clone();
            let conditions = left.conditions(&namespace["status"]["conditions"], &time);
            if namespace["status"]["conditions"] == conditions {
                return false;
            }
            namespace["status"]["conditions"] = conditions;
            let writer = Writer {
                manager: "kube-controller-manager",
                subresource: "status",
                api_version: "v1",
                time: &time,
            };
            let kind = Kind {
                core: self.core,
                resource,
            };
            // A record that cannot be kept never fails a write.
            let _ = managed::update(Some(&before), namespace, writer, &kind);
            true
        });
        report(done.await.map(drop));
    }

    /// Deletes what is under a prefix. True when nothing is left.
    async fn purge(&self, collection: &Arc<str>, prefix: &str) -> bool {
        let objects: Vec<Arc<Object>> = self
            .core
            .store
            .read()
            .range(collection, prefix, None)
            .cloned()
            .collect();
        for object in objects.iter().filter(|object| !object.facts.deleting) {
            let place = Place {
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
        let place = Place {
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

    fn resource(&self, place: &Place) -> Option<Arc<Resource>> {
        let (group, plural) = place.collection.split_once('/')?;
        self.core.store.registry().find(group, plural)
    }

    fn dependents(&self, uid: &str) -> Vec<Place> {
        self.core.store.read().dependents(uid).cloned().collect()
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

    async fn disown(&self, resource: &Resource, key: &Arc<str>, uids: &[String]) {
        self.take_out(resource, key, "ownerReferences", |owner| {
            uids.iter().any(|uid| owner["uid"] == uid.as_str())
        })
        .await;
    }

    async fn finished(&self, resource: &Resource, key: &Arc<str>, finalizer: &str) {
        self.take_out(resource, key, "finalizers", |name| name == finalizer)
            .await;
    }

    /// Takes items out of a list of the metadata, and out of what managers own.
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

    /// Enters a change as that of the controllers that run beside a real API server.
    fn record(&self, resource: &Resource, live: &Value, new: &mut Value) {
        let writer = Writer {
            manager: "kube-controller-manager",
            subresource: "",
            api_version: &resource.stored,
            time: &crd::seconds(Timestamp::now()),
        };
        let kind = Kind {
            core: self.core,
            resource,
        };
        // A record that cannot be kept never fails a write.
        let _ = managed::update(Some(live), new, writer, &kind);
    }
}

/// An object is gone: its namespace or its definition may have waited for that.
fn room_made(place: &Place, object: &Object) -> impl Iterator<Item = Place> {
    let definition = place
        .collection
        .split_once('/')
        .map(|(group, plural)| format!("{plural}.{group}"));
    let namespace = Some(object.namespace().to_owned());
    [("/namespaces", namespace), (CRD_COLLECTION, definition)]
        .into_iter()
        .filter_map(|(collection, key)| {
            let key = key.filter(|key| !key.is_empty())?;
            Some(Place {
                collection: collection.into(),
                key: key.into(),
            })
        })
}

/// Whether an object is being deleted and waits for its dependents.
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

fn report(result: Result<(), WriteError>) {
    match result {
        Ok(()) | Err(WriteError::Conflict) => {}
        Err(error) => tracing::warn!(%error, "the collector could not write"),
    }
}

#[cfg(test)]
mod tests;
