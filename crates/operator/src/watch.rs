//! Watches that skip undecodable objects.
//!
//! A skipped object is in no store and causes no reconcile until a change makes it decodable. An event names the field,
//! and the gauge `ferrostack_undecodable_objects` counts such objects. Callers that act on the absence of an object
//! must check [`Skipped`] first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;

use futures::stream::BoxStream;
use futures::{Stream, StreamExt, TryStreamExt, future};
use kube::api::{ObjectMeta, PartialObjectMeta};
use kube::runtime::reflector::{ObjectRef, Store, store::Writer};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{Controller, WatchStreamExt, reflector};
use kube::{Resource, ResourceExt};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use tracing::warn;

use crate::client::Api;
use crate::decode::{self, Decoded, NotDecoded, Undecodable};
use crate::events::Recorder;
use crate::metrics::Metrics;
use crate::words::chain;

/// Kind whose objects can be watched.
pub trait Watched: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static {}

impl<K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static> Watched for K {}

/// Reports of a watch about skipped objects.
#[derive(Clone)]
pub struct Reports {
    /// Name of the watch in logs and metrics, such as `openstackmachine`.
    pub watch: &'static str,
    /// Metrics with the number of skipped objects.
    pub metrics: Metrics,
    /// Recorder of events; `None` if another watch of the same kind publishes the events.
    pub recorder: Option<Recorder>,
}

/// Objects that a watch skips. Clones share the set.
#[derive(Clone, Debug, Default)]
pub struct Skipped(Arc<Mutex<SkippedObjects>>);

#[derive(Debug, Default)]
struct SkippedObjects {
    objects: BTreeMap<Key, Undecodable>,
    /// Skipped objects of the list that is being received.
    listed: BTreeSet<Key>,
}

/// Namespace and name.
type Key = (String, String);

impl Skipped {
    /// Fails if an object of kind `K` for which `concerns` is true is skipped.
    ///
    /// # Errors
    /// [`NotDecoded`] with the object and the undecodable field.
    pub fn check<K: Resource<DynamicType = ()>>(
        &self,
        concerns: impl Fn(&ObjectMeta) -> bool,
    ) -> Result<(), NotDecoded> {
        let known = self.0.lock();
        let found = known.objects.values().find(|o| concerns(&o.metadata));
        NotDecoded::check::<K>(found.map(std::slice::from_ref).unwrap_or_default(), |_| {
            true
        })
    }
}

/// Returns the events of a watch of `api`, in the form of kube's [`watcher`](watcher::watcher), which is compiled anew
/// for each kind.
pub fn objects<K>(
    api: &Api<K>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<K>>>
where
    K: DeserializeOwned + Send + 'static,
{
    decode::watched_strictly(api, config)
}

/// Returns the events of a watch of the objects' metadata; the API server sends nothing else.
pub fn metadata<K: 'static>(
    api: &Api<PartialObjectMeta<K>>,
    config: watcher::Config,
) -> BoxStream<'static, watcher::Result<Event<PartialObjectMeta<K>>>> {
    decode::watched_metadata(api, config)
}

/// Returns the object of this name, at first and after each change; `None` while there is none.
pub fn object<K>(api: &Api<K>, name: &str) -> BoxStream<'static, watcher::Result<Option<K>>>
where
    K: DeserializeOwned + Send + 'static,
{
    decode::watched_object(api, name)
}

/// Returns a [`Controller`] of the objects of `api`. The objects have no `managedFields`, which can be larger than all
/// the rest.
pub fn controller<K: Watched>(
    api: Api<K>,
    config: watcher::Config,
    reports: Reports,
) -> Controller<K>
where
    K::DynamicType: Default + Clone + Debug + Eq + Hash + Unpin + Send + Sync,
{
    let kind = K::DynamicType::default();
    let writer = Writer::<K>::new(kind.clone());
    let reader = writer.as_reader();
    let (name, skipped) = (reports.watch, Skipped::default());
    let events = events(api, config, kind, reader.clone(), skipped, reports);
    let without = |object: &mut K| object.meta_mut().managed_fields = None;
    let events = events.map_ok(move |event| event.modify(without));
    let events = restarted(reflector(writer, events), name);
    Controller::for_stream(events.applied_objects(), reader)
}

/// Returns the added, changed and deleted objects, for [`Controller::watches_stream`].
pub fn touched<K: Watched>(
    api: Api<K>,
    reports: Reports,
) -> impl Stream<Item = watcher::Result<K>> + Send
where
    K::DynamicType: Default + Clone + Debug + Eq + Hash + Unpin + Send + Sync,
{
    let kind = K::DynamicType::default();
    // Without stored objects, the deletion of a skipped object causes no event.
    let store = Writer::<K>::new(kind.clone()).as_reader();
    let (name, config) = (reports.watch, watcher::Config::default());
    let events = events(api, config, kind, store, Skipped::default(), reports);
    restarted(events, name).touched_objects()
}

/// Returns `events` of a watch that starts again after each failure. Failures are logged under `name` and are no
/// events.
///
/// A controller of kube pauses all of its watches, for up to 30 s, after each failure of one watch. When CRDs change,
/// the API server ends the watches of all their kinds and refuses new ones until the caches are filled: a dozen
/// failures, after which nothing would be reconciled for minutes.
pub fn restarted<T: Send>(
    events: impl Stream<Item = watcher::Result<T>> + Send,
    name: &'static str,
) -> impl Stream<Item = watcher::Result<T>> + Send {
    events.default_backoff().filter(move |event| {
        if let Err(failure) = event {
            warn!(watch = name, "watch interrupted: {}", chain(failure));
        }
        future::ready(event.is_ok())
    })
}

/// Returns the events of a watch without undecodable objects, and records those in `skipped`.
///
/// If an object of `store` becomes undecodable, the events delete the object.
pub fn events<K: Watched>(
    api: Api<K>,
    config: watcher::Config,
    kind: K::DynamicType,
    store: Store<K>,
    skipped: Skipped,
    reports: Reports,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync,
{
    let objects = decode::watched(&api, config);
    let filter = Filter {
        kind,
        store,
        skipped,
        reports,
    };
    objects.filter_map(move |event| {
        future::ready(match event {
            Ok(event) => filter.pass(event).map(Ok),
            Err(source) => Some(Err(source)),
        })
    })
}

struct Filter<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    kind: K::DynamicType,
    store: Store<K>,
    skipped: Skipped,
    reports: Reports,
}

impl<K: Watched> Filter<K>
where
    K::DynamicType: Clone + Debug + Eq + Hash + Send + Sync,
{
    /// Returns the event for the store and the controllers.
    fn pass(&self, event: Event<Decoded<K>>) -> Option<Event<K>> {
        match event {
            Event::Init => {
                self.skipped.0.lock().listed.clear();
                Some(Event::Init)
            }
            Event::InitApply(object) => self.decoded(object).map(Event::InitApply),
            Event::InitDone => {
                self.forget_unlisted();
                Some(Event::InitDone)
            }
            Event::Apply(object) => {
                let stored = object.0.is_err().then(|| self.stored(&object)).flatten();
                match self.decoded(object) {
                    Some(object) => Some(Event::Apply(object)),
                    None => stored.map(Event::Delete),
                }
            }
            Event::Delete(object) => {
                self.forget(&key(object.meta()));
                let stored = object.0.is_err().then(|| self.stored(&object)).flatten();
                object.0.ok().or(stored).map(Event::Delete)
            }
        }
    }

    fn decoded(&self, object: Decoded<K>) -> Option<K> {
        let key = key(object.meta());
        match object.0 {
            Ok(object) => {
                self.forget(&key);
                Some(object)
            }
            Err(undecodable) => {
                self.skip(key, undecodable);
                None
            }
        }
    }

    fn skip(&self, key: Key, object: Undecodable) {
        let is_news = {
            let mut known = self.skipped.0.lock();
            known.listed.insert(key.clone());
            let before = known.objects.insert(key.clone(), object.clone());
            self.count(&known);
            before.is_none_or(|before| before.problem != object.problem)
        };
        if is_news {
            self.report(&key, object);
        }
    }

    fn report(&self, (namespace, name): &Key, object: Undecodable) {
        let kind = K::kind(&self.kind);
        let problem = object.problem.clone();
        warn!(
            watch = self.reports.watch,
            "{kind} {namespace}/{name} is skipped: {problem}"
        );
        let Some(recorder) = self.reports.recorder.clone() else {
            return;
        };
        let (object, kind) = (Decoded::<K>(Err(object)), self.kind.clone());
        let note = format!("{problem}. The object is skipped until this field is corrected.");
        tokio::spawn(async move {
            let about = object.object_ref(&kind);
            recorder
                .warning_about(&about, "CannotBeDecoded", "Decode", note)
                .await;
        });
    }

    fn forget(&self, key: &Key) {
        let mut known = self.skipped.0.lock();
        if known.objects.remove(key).is_some() {
            self.count(&known);
        }
    }

    fn forget_unlisted(&self) {
        let mut known = self.skipped.0.lock();
        let SkippedObjects { objects, listed } = &mut *known;
        objects.retain(|key, _| listed.contains(key));
        self.count(&known);
    }

    fn count(&self, known: &SkippedObjects) {
        let kind = K::kind(&self.kind);
        let Reports { watch, metrics, .. } = &self.reports;
        metrics.undecodable(watch, &kind, known.objects.len());
    }

    fn stored(&self, object: &Decoded<K>) -> Option<K> {
        let reference = ObjectRef::<K>::new_with(&object.name_any(), self.kind.clone());
        let reference = match object.namespace() {
            Some(namespace) => reference.within(&namespace),
            None => reference,
        };
        self.store.get(&reference).map(|known| K::clone(&known))
    }
}

fn key(metadata: &ObjectMeta) -> Key {
    let ObjectMeta {
        namespace, name, ..
    } = metadata;
    (
        namespace.clone().unwrap_or_default(),
        name.clone().unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests;
