//! The current state in memory, and the recent past of each collection.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::log::{At, Count, Entry, Past, Recent};
use super::object::{Change, Event, Object};

/// The number of events of a collection whose lines are shared by watchers. Others are serialised when they are needed:
/// each line is a copy of an object.
const FRAMES: usize = 16;

/// All current objects, and the events that watches can still resume from.
#[derive(Debug)]
pub(crate) struct State {
    /// The revision of the last write.
    pub(crate) revision: u64,
    /// Objects stored, and the bytes of their JSON.
    pub(crate) objects: usize,
    pub(crate) object_bytes: usize,
    collections: HashMap<Arc<str>, Collection>,
    /// Where the object of a uid is.
    uids: HashMap<Arc<str>, Place>,
    /// The objects that name a uid as owner.
    dependents: HashMap<Arc<str>, BTreeSet<Place>>,
    /// Nothing is known of what happened up to this revision.
    compacted: u64,
    history: usize,
    /// Where there is a file: the events whose objects are in memory.
    recent: Option<Recent>,
    /// Up to this revision, what is superseded and in no history has left the file.
    erased: u64,
    /// Events that left the history after the file was compacted above them.
    outlived: Vec<Past>,
    /// Objects are packed once all together have more bytes than this.
    pack_above: usize,
    /// What left the events in memory since it was last asked for, when objects are packed.
    cold: Vec<Cold>,
    /// Collections that were written to since watches were last notified.
    touched: BTreeMap<Arc<str>, watch::Sender<u64>>,
    /// Receives each event that the collectors care about.
    notices: Option<mpsc::UnboundedSender<Arc<Notice>>>,
}

/// Watches that have something to read.
#[must_use = "watches wait until they are notified"]
#[derive(Debug)]
pub(crate) struct Touched {
    collections: BTreeMap<Arc<str>, watch::Sender<u64>>,
    revision: u64,
}

impl Touched {
    /// Wakes them. To be called without the lock: they read the state at once, and there may be thousands.
    pub(crate) fn notify(self) {
        for changed in self.collections.into_values() {
            changed.send_replace(self.revision);
        }
    }
}

/// Where an object is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// `group/plural`.
    pub(crate) collection: Arc<str>,
    /// `namespace/name`, or `name`.
    pub(crate) key: Arc<str>,
}

/// A current object that watches have no use for any more.
#[derive(Debug)]
pub(crate) struct Cold {
    pub(crate) collection: Arc<str>,
    pub(crate) object: Arc<Object>,
}

/// An event together with its place.
#[derive(Debug)]
pub(crate) struct Notice {
    pub(crate) place: Place,
    pub(crate) event: Arc<Event>,
}

/// The objects of one resource.
#[derive(Debug)]
struct Collection {
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    events: VecDeque<Entry>,
    /// Events up to this revision are no longer known.
    dropped: u64,
    /// Watches begin at this revision or later.
    watched_from: u64,
    changed: watch::Sender<u64>,
}

/// History that a request asks for is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone {
    /// The oldest revision that can be asked for.
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

    /// Packs what grows cold once all objects together have more bytes than `bytes`.
    pub(crate) fn packing_above(mut self, bytes: usize) -> Self {
        self.pack_above = bytes;
        self
    }

    /// Leaves the objects of events to the file, but for the latest ones with at most so many bytes together.
    pub(crate) fn with_file(mut self, recent: usize) -> Self {
        self.recent = Some(Recent::new(recent));
        self
    }

    /// Leaves the objects of all events to the file. Watches that have nothing to read need none of them.
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

    /// Notes an object that no event in memory refers to.
    fn cool(&mut self, collection: &Arc<str>, event: &Event) {
        if self.packs() && event.change != Change::Deleted {
            self.cold.push(Cold {
                collection: Arc::clone(collection),
                object: Arc::clone(&event.object),
            });
        }
    }

    /// The bytes in memory that are there for the past alone: logs, lines of watches, and objects that are not current.
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

    /// The events that left the history, but not the file when it was compacted.
    pub(super) fn take_outlived(&mut self) -> Vec<Past> {
        std::mem::take(&mut self.outlived)
    }

    pub(super) fn put_back_outlived(&mut self, outlived: Vec<Past>) {
        self.outlived.extend(outlived);
    }

    /// The file is compacted up to `through`.
    pub(super) fn erased(&mut self, through: u64) {
        self.erased = through;
    }

    /// True if there is so much that objects are to be packed.
    pub(crate) fn packs(&self) -> bool {
        self.object_bytes > self.pack_above
    }

    /// What has grown cold since the last time.
    pub(crate) fn take_cold(&mut self) -> Vec<Cold> {
        std::mem::take(&mut self.cold)
    }

    /// The collections whose watches are to be notified since the last call.
    pub(crate) fn take_touched(&mut self) -> Touched {
        Touched {
            collections: std::mem::take(&mut self.touched),
            revision: self.revision,
        }
    }

    /// Puts the packed form of an object in its place, unless it was changed in the meantime.
    pub(crate) fn replace(&mut self, cold: &Cold, packed: Arc<Object>) {
        let found = self.collections.get_mut(&cold.collection);
        let Some(place) = found.and_then(|found| found.objects.get_mut(&cold.object.key)) else {
            return;
        };
        if Arc::ptr_eq(place, &cold.object) {
            *place = packed;
        }
    }

    /// Replaces an object by its form under a changed schema, unless it was written again in the meantime.
    pub(crate) fn convert(&mut self, collection: &str, converted: Arc<Object>) {
        let found = self.collections.get_mut(collection);
        let Some(place) = found.and_then(|found| found.objects.get_mut(&converted.key)) else {
            return;
        };
        // By its revision: it may have been packed in the meantime.
        if place.revision == converted.revision {
            self.object_bytes = self.object_bytes - place.length() + converted.length();
            *place = converted;
        }
    }

    /// Nothing but the current objects is known up to the revision `compacted`. The next write has a greater one, even if
    /// that of the last write is less: so a restored database continues.
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

    /// True if there is an object at a place, and it is not being deleted.
    pub(crate) fn is_open(&self, place: &Place) -> bool {
        self.get(&place.collection, &place.key)
            .is_some_and(|object| !object.facts.deleting)
    }

    /// The current objects whose key starts with `prefix`, in order, those up to and including `after` left out.
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

    /// The current objects of what `at` selects.
    pub(super) fn range_of<'a>(&'a self, at: &'a At) -> impl Iterator<Item = &'a Arc<Object>> {
        self.range(&at.collection, &at.prefix, at.after.as_deref())
    }

    /// The objects as they were; `None` when that is to be read from the file.
    pub(crate) fn range_at(&self, at: &At) -> Result<Option<Vec<Arc<Object>>>, Gone> {
        let events = self.events(&at.collection, at.revision, usize::MAX)?;
        Ok(events.map(|events| at.rewind(self.range_of(at).cloned(), &events)))
    }

    /// At most `limit` events of a collection after `revision`; `None` when some are to be read from the file.
    pub(crate) fn events(
        &self,
        collection: &str,
        revision: u64,
        limit: usize,
    ) -> Result<Option<Vec<Arc<Event>>>, Gone> {
        let entries = self.known_since(collection, revision)?.take(limit);
        Ok(entries.map(|entry| entry.here().cloned()).collect())
    }

    /// The same, with references to what is in the file.
    pub(super) fn log(
        &self,
        collection: &str,
        revision: u64,
        limit: usize,
    ) -> Result<Vec<Entry>, Gone> {
        let entries = self.known_since(collection, revision)?.take(limit);
        Ok(entries.cloned().collect())
    }

    /// The events of a collection after `revision`, which must be known from then on.
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

    /// No watch goes on from before `revision`, where the definition of the collection changed: kube-apiserver has filled
    /// another watch cache from then on. Lists of older revisions are read from the history as before.
    pub(crate) fn restart_watches(&mut self, collection: &Arc<str>, revision: u64) {
        self.collection(collection).watched_from = revision;
    }

    /// Fails if a watch of a collection cannot go on after `revision`, since its definition has changed.
    pub(crate) fn can_be_watched(&self, collection: &str, revision: u64) -> Result<(), Gone> {
        let found = self.collections.get(collection);
        let oldest = found.map_or(0, |found| found.watched_from);
        match revision < oldest {
            true => Err(Gone { oldest }),
            false => Ok(()),
        }
    }

    /// A receiver that is notified of every write to a collection.
    pub(crate) fn subscribe(&mut self, collection: &Arc<str>) -> watch::Receiver<u64> {
        self.collection(collection).changed.subscribe()
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Place> {
        self.uids.get(uid)
    }

    pub(crate) fn dependents(&self, uid: &str) -> impl Iterator<Item = &Place> {
        self.dependents.get(uid).into_iter().flatten()
    }

    /// Objects that are being deleted or have owners: there may be something to do for them.
    pub(crate) fn unfinished(&self) -> Vec<Place> {
        let mut places = Vec::new();
        for (name, found) in &self.collections {
            for object in found.objects.values() {
                if object.facts.deleting || !object.facts.owners.is_empty() {
                    let key = Arc::clone(&object.key);
                    places.push(Place {
                        collection: Arc::clone(name),
                        key,
                    });
                }
            }
        }
        places
    }

    /// The names of all collections that are not empty.
    pub(crate) fn populated(&self) -> impl Iterator<Item = &Arc<str>> {
        self.collections
            .iter()
            .filter(|(_, c)| !c.objects.is_empty())
            .map(|(name, _)| name)
    }

    /// Makes a committed write visible. `object` carries its revision; with `deleted` it is the last state.
    /// Watches see it once they are notified, by what [`take_touched`](Self::take_touched) returns.
    pub(crate) fn publish(&mut self, collection: &Arc<str>, object: Arc<Object>, deleted: bool) {
        self.revision = self.revision.max(object.revision);
        let place = Place {
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

    fn remember(&mut self, place: &Place, event: Arc<Event>) {
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
            // What was read from a compacted file is older than what is known to be gone.
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

    /// Notes what is to be done for an event that left the history.
    fn leave(&mut self, collection: &Arc<str>, entry: Entry) {
        let past = entry.past();
        if past.revision <= self.erased && (past.previous > 0 || past.deleted) {
            self.outlived.push(past);
        }
        if let Entry::Here(event) = entry {
            self.cool(collection, &event);
        }
    }

    fn index(&mut self, place: &Place, before: Option<&Object>, after: Option<&Object>) {
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
