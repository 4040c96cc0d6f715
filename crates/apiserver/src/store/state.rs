//! Current state in memory, and the recent past of each collection.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::log::{At, Count, Entry, Past, Recent};
use super::object::{Change, Event, Object};

/// Number of events of a collection with lines shared by watchers. Other lines are serialised on demand: each line is
/// a copy of an object.
const FRAMES: usize = 16;

/// All current objects, and the events from which watches can still resume.
#[derive(Debug)]
pub(crate) struct State {
    /// Revision of the last write.
    pub(crate) revision: u64,
    /// Number of stored objects, and the size of their JSON in bytes.
    pub(crate) objects: usize,
    pub(crate) object_bytes: usize,
    collections: HashMap<Arc<str>, Collection>,
    /// [`ObjectKey`] of the object with a uid.
    uids: HashMap<Arc<str>, ObjectKey>,
    /// Dependents of the object with a uid.
    dependents: HashMap<Arc<str>, BTreeSet<ObjectKey>>,
    /// Revision up to which the past is unknown.
    compacted: u64,
    history: usize,
    /// With a file: events with objects in memory.
    recent: Option<Recent>,
    /// Revision up to which superseded rows outside of any history have left the file.
    erased: u64,
    /// Events that left the history after the file was compacted above them.
    outlived: Vec<Past>,
    /// Total size in bytes above which objects are packed.
    pack_above: usize,
    /// Objects that left the events in memory since the last call, if objects are packed.
    cold: Vec<Cold>,
    /// Collections written since the last notification of watches.
    touched: BTreeMap<Arc<str>, watch::Sender<u64>>,
    /// Receiver of the events for the controllers.
    notices: Option<mpsc::UnboundedSender<Arc<Notice>>>,
}

/// Watches with something to read.
#[must_use = "watches wait until they are notified"]
#[derive(Debug)]
pub(crate) struct Touched {
    collections: BTreeMap<Arc<str>, watch::Sender<u64>>,
    revision: u64,
}

impl Touched {
    /// Wakes the watches. To be called without the lock: thousands of watches may read the state at once.
    pub(crate) fn notify(self) {
        for changed in self.collections.into_values() {
            changed.send_replace(self.revision);
        }
    }
}

/// Place of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ObjectKey {
    /// `group/plural`.
    pub(crate) collection: Arc<str>,
    /// `namespace/name`, or `name`.
    pub(crate) key: Arc<str>,
}

/// Current object without further use for watches.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) collection: Arc<str>,
    pub(crate) object: Arc<Object>,
}

/// Event together with its place.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) place: ObjectKey,
    pub(crate) event: Arc<Event>,
}

/// Objects of one resource.
#[derive(Debug)]
struct Collection {
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    events: VecDeque<Entry>,
    /// Revision up to which events are forgotten.
    dropped: u64,
    /// First revision for new watches.
    watched_from: u64,
    changed: watch::Sender<u64>,
}

/// Error: the requested history is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    /// Oldest available revision.
    pub(crate) oldest: u64,
}

impl State {
    pub(crate) fn new(history: usize) -> Self {
        Self {
            // Revision 0 means "any" to clients; as in etcd, 1 is the empty store.
            revision: 1,
            objects: 0,
            object_bytes: 0,
            collections: HashMap::new(),
            uids: HashMap::new(),
            dependents: HashMap::new(),
            compacted: 0,
            history,
            recent: None,
            erased: 0,
            outlived: Vec::new(),
            pack_above: usize::MAX,
            cold: Vec::new(),
            touched: BTreeMap::new(),
            notices: None,
        }
    }

    /// Packs cold objects once all objects together have more bytes than `bytes`.
    pub(crate) fn packing_above(mut self, bytes: usize) -> Self {
        self.pack_above = bytes;
        self
    }

    /// Leaves the objects of events to the file, except the latest ones, up to `recent` bytes.
    pub(crate) fn with_file(mut self, recent: usize) -> Self {
        self.recent = Some(Recent::new(recent));
        self
    }

    /// Leaves the objects of all events to the file. Watches without pending events need none.
    pub(crate) fn forget_recent(&mut self) {
        while let Some((collection, revision)) = self.recent.as_mut().and_then(Recent::pop) {
            self.forget(&collection, revision);
        }
        for found in self.collections.values_mut() {
            found.events.shrink_to_fit();
        }
    }

    fn forget(&mut self, collection: &Arc<str>, revision: u64) {
        let Some(found) = self.collections.get_mut(collection) else {
            return;
        };
        let place = found
            .events
            .partition_point(|entry| entry.revision() < revision);
        let entry = found.events.get_mut(place);
        let entry = entry.filter(|entry| entry.revision() == revision);
        if let Some(event) = entry.and_then(Entry::forget) {
            self.cool(collection, &event);
        }
    }

    /// Records an object without a reference from an [`Event`] in memory.
    fn cool(&mut self, collection: &Arc<str>, event: &Event) {
        if self.packs() && event.change != Change::Deleted {
            self.cold.push(Cold {
                collection: Arc::clone(collection),
                object: Arc::clone(&event.object),
            });
        }
    }

    /// Size in bytes of memory that serves the past alone: logs, lines of watches, and objects that are not current.
    pub(crate) fn past_bytes(&self) -> usize {
        let mut count = Count::default();
        for found in self.collections.values() {
            count.add(&found.events, |object| {
                let current = found.objects.get(&object.key);
                current.is_some_and(|current| Arc::ptr_eq(current, object))
            });
        }
        count.bytes
    }

    /// True if watches can resume from before an event of a collection.
    pub(super) fn remembers(&self, collection: &str, revision: u64) -> bool {
        let found = self.collections.get(collection);
        found.is_some_and(|found| found.dropped < revision)
    }

    /// Events that left the history, but not the file at its last compaction.
    pub(super) fn take_outlived(&mut self) -> Vec<Past> {
        std::mem::take(&mut self.outlived)
    }

    pub(super) fn put_back_outlived(&mut self, outlived: Vec<Past>) {
        self.outlived.extend(outlived);
    }

    /// Records a compaction of the file up to `through`.
    pub(super) fn erased(&mut self, through: u64) {
        self.erased = through;
    }

    /// True above the size at which objects are packed.
    pub(crate) fn packs(&self) -> bool {
        self.object_bytes > self.pack_above
    }

    /// Cold objects since the last call.
    pub(crate) fn take_cold(&mut self) -> Vec<Cold> {
        std::mem::take(&mut self.cold)
    }

    /// Collections with watches to notify since the last call.
    pub(crate) fn take_touched(&mut self) -> Touched {
        Touched {
            collections: std::mem::take(&mut self.touched),
            revision: self.revision,
        }
    }

    /// Puts the packed form of an [`Object`] in its place, unless it was changed in the meantime.
    pub(crate) fn replace(&mut self, cold: &Cold, packed: Arc<Object>) {
        let found = self.collections.get_mut(&cold.collection);
        let Some(place) = found.and_then(|found| found.objects.get_mut(&cold.object.key)) else {
            return;
        };
        if Arc::ptr_eq(place, &cold.object) {
            *place = packed;
        }
    }

    /// Replaces an [`Object`] by its form under a changed schema, unless written again in the meantime.
    pub(crate) fn convert(&mut self, collection: &str, converted: Arc<Object>) {
        let found = self.collections.get_mut(collection);
        let Some(place) = found.and_then(|found| found.objects.get_mut(&converted.key)) else {
            return;
        };
        // By revision: the object may have been packed in the meantime.
        if place.revision == converted.revision {
            self.object_bytes = self.object_bytes - place.length() + converted.length();
            *place = converted;
        }
    }

    /// Forgets everything but the current objects up to the revision `compacted`. The next write has a greater
    /// revision, even if the last write has a smaller one: so a restored database continues.
    pub(crate) fn continue_after(&mut self, compacted: u64) {
        self.compacted = compacted;
        self.erased = compacted;
        self.revision = self.revision.max(compacted);
    }

    pub(crate) fn notify(&mut self, notices: mpsc::UnboundedSender<Arc<Notice>>) {
        self.notices = Some(notices);
    }

    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<&Arc<Object>> {
        self.collections.get(collection)?.objects.get(key)
    }

    /// True if an object exists at a [`ObjectKey`], and is not being deleted.
    pub(crate) fn is_open(&self, place: &ObjectKey) -> bool {
        self.get(&place.collection, &place.key)
            .is_some_and(|object| !object.facts.deleting)
    }

    /// Current [`Object`]s with a key prefix, in order, without the objects up to and including `after`.
    pub(crate) fn range<'a>(
        &'a self,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
    ) -> impl Iterator<Item = &'a Arc<Object>> {
        let from = match after {
            Some(key) if key >= prefix => Bound::Excluded(key),
            _ => Bound::Included(prefix),
        };
        self.collections
            .get(collection)
            .into_iter()
            .flat_map(move |found| found.objects.range::<str, _>((from, Bound::Unbounded)))
            .take_while(move |(key, _)| key.starts_with(prefix))
            .map(|(_, object)| object)
    }

    /// Current [`Object`]s selected by `at`.
    pub(super) fn range_of<'a>(&'a self, at: &'a At) -> impl Iterator<Item = &'a Arc<Object>> {
        self.range(&at.collection, &at.prefix, at.after.as_deref())
    }

    /// [`Object`]s in their former state; `None` if the file has to be read.
    pub(crate) fn range_at(&self, at: &At) -> Result<Option<Vec<Arc<Object>>>, Gone> {
        let events = self.events(&at.collection, at.revision, usize::MAX)?;
        Ok(events.map(|events| at.rewind(self.range_of(at).cloned(), &events)))
    }

    /// At most `limit` [`Event`]s of a collection after `revision`; `None` if some have to be read from the file.
    pub(crate) fn events(
        &self,
        collection: &str,
        revision: u64,
        limit: usize,
    ) -> Result<Option<Vec<Arc<Event>>>, Gone> {
        let entries = self.known_since(collection, revision)?.take(limit);
        Ok(entries.map(|entry| entry.here().cloned()).collect())
    }

    /// Same, with references to entries in the file.
    pub(super) fn log(
        &self,
        collection: &str,
        revision: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, Gone> {
        let entries = self.known_since(collection, revision)?.take(limit);
        Ok(entries.cloned().collect())
    }

    /// Events of a collection after `revision`, or [`Gone`] if some of them are unknown.
    fn known_since(
        &self,
        collection: &str,
        revision: u64,
    ) -> Result<impl Iterator<Item = &Entry>, Gone> {
        let found = self.collections.get(collection);
        let oldest = found.map_or(self.compacted, |found| found.dropped);
        if revision < oldest {
            return Err(Gone { oldest });
        }
        let events = found.map(|found| {
            let first = found
                .events
                .partition_point(|entry| entry.revision() <= revision);
            found.events.range(first..)
        });
        Ok(events.into_iter().flatten())
    }

    /// Ends watches from before `revision`, where the definition of the collection changed: kube-apiserver has filled
    /// another watch cache from then on. Lists of older revisions are read from the history as before.
    pub(crate) fn restart_watches(&mut self, collection: &Arc<str>, revision: u64) {
        self.collection(collection).watched_from = revision;
    }

    /// Fails if a watch of a collection cannot go on after `revision`, because of a changed definition.
    pub(crate) fn can_be_watched(&self, collection: &str, revision: u64) -> Result<(), Gone> {
        let found = self.collections.get(collection);
        let oldest = found.map_or(0, |found| found.watched_from);
        match revision < oldest {
            true => Err(Gone { oldest }),
            false => Ok(()),
        }
    }

    /// Receiver of notifications of every write to a collection.
    pub(crate) fn subscribe(&mut self, collection: &Arc<str>) -> watch::Receiver<u64> {
        self.collection(collection).changed.subscribe()
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&ObjectKey> {
        self.uids.get(uid)
    }

    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &ObjectKey> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Objects that are being deleted or have owners: possible work for the controllers.
    pub(crate) fn unfinished(&self) -> Vec<ObjectKey> {
        let mut places = Vec::new();
        for (name, found) in &self.collections {
            for object in found.objects.values() {
                if object.facts.deleting || !object.facts.owners.is_empty() {
                    let key = Arc::clone(&object.key);
                    places.push(ObjectKey {
                        collection: Arc::clone(name),
                        key,
                    });
                }
            }
        }
        places
    }

    /// Names of all non-empty collections.
    pub(crate) fn populated(&self) -> impl Iterator<Item = &Arc<str>> {
        self.collections
            .iter()
            .filter(|(_, c)| !c.objects.is_empty())
            .map(|(name, _)| name)
    }

    /// Makes a committed write visible. `object` carries its revision; with `deleted`, `object` is the last state.
    /// Watches see the write after a notification by the result of [`take_touched`](Self::take_touched).
    pub(crate) fn publish(&mut self, collection: &Arc<str>, object: Arc<Object>, deleted: bool) {
        self.revision = self.revision.max(object.revision);
        let place = ObjectKey {
            collection: Arc::clone(collection),
            key: Arc::clone(&object.key),
        };
        let found = self.collection(collection);
        let previous = if deleted {
            found.objects.remove(&object.key)
        } else {
            found
                .objects
                .insert(Arc::clone(&object.key), Arc::clone(&object))
        };
        let change = match (&previous, deleted) {
            (_, true) => Change::Deleted,
            (None, false) => Change::Added,
            (Some(_), false) => Change::Modified,
        };
        self.index(&place, previous.as_deref(), (!deleted).then_some(&*object));
        let event = Arc::new(Event::new(change, object, previous));
        self.remember(&place, event);
    }

    fn remember(&mut self, place: &ObjectKey, event: Arc<Event>) {
        let history = self.history;
        let mut left = Vec::new();
        let found = self.collection(&place.collection);
        found.events.push_back(Entry::Here(Arc::clone(&event)));
        if let Some(served) = found.events.len().checked_sub(FRAMES + 1)
            && let Some(event) = found.events[served].here()
        {
            event.forget_frame();
        }
        while found.events.len() > history {
            left.extend(found.events.pop_front());
        }
        if let Some(last) = left.last() {
            // Rows of a compacted file are older than the revision up to which the past is unknown.
            found.dropped = found.dropped.max(last.revision());
        }
        let changed = found.changed.clone();
        if changed.receiver_count() > 0 {
            self.touched.insert(Arc::clone(&place.collection), changed);
        }
        for entry in left {
            self.leave(&place.collection, entry);
        }
        if let Some(recent) = &mut self.recent {
            recent.push(&place.collection, &event);
        }
        while let Some((collection, revision)) = self.recent.as_mut().and_then(Recent::pop_surplus)
        {
            self.forget(&collection, revision);
        }
        if let Some(notices) = &self.notices {
            // Nobody listens any more once the server closes.
            let _ = notices.send(Arc::new(Notice {
                place: place.clone(),
                event,
            }));
        }
    }

    /// Records the work after an event has left the history.
    fn leave(&mut self, collection: &Arc<str>, entry: Entry) {
        let past = entry.past();
        if past.revision <= self.erased && (past.previous > 0 || past.deleted) {
            self.outlived.push(past);
        }
        if let Entry::Here(event) = entry {
            self.cool(collection, &event);
        }
    }

    fn index(&mut self, place: &ObjectKey, before: Option<&Object>, after: Option<&Object>) {
        if let Some(before) = before {
            self.objects -= 1;
            self.object_bytes -= before.length();
            self.uids.remove(&before.facts.uid);
            for owner in &before.facts.owners {
                if let Some(places) = self.dependents.get_mut(owner) {
                    places.remove(place);
                    if places.is_empty() {
                        self.dependents.remove(owner);
                    }
                }
            }
        }
        if let Some(after) = after {
            self.objects += 1;
            self.object_bytes += after.length();
            self.uids
                .insert(Arc::clone(&after.facts.uid), place.clone());
            for owner in &after.facts.owners {
                self.dependents
                    .entry(Arc::clone(owner))
                    .or_default()
                    .insert(place.clone());
            }
        }
    }

    fn collection(&mut self, name: &Arc<str>) -> &mut Collection {
        let compacted = self.compacted;
        self.collections
            .entry(Arc::clone(name))
            .or_insert_with(|| Collection {
                objects: BTreeMap::new(),
                events: VecDeque::new(),
                dropped: compacted,
                watched_from: 0,
                changed: watch::Sender::new(0),
            })
    }
}
