//! The current state in memory, and the recent past of each collection.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

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
    /// Objects are packed once all together have more bytes than this.
    pack_above: usize,
    /// What left the history since it was last asked for, when objects are packed.
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
    events: VecDeque<Arc<Event>>,
    /// Events up to this revision are no longer known.
    dropped: u64,
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

    /// Whether there is so much that objects are to be packed.
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
        self.revision = self.revision.max(compacted);
    }

    pub(crate) fn notify(&mut self, notices: mpsc::UnboundedSender<Arc<Notice>>) {
        self.notices = Some(notices);
    }

    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<&Arc<Object>> {
        self.collections.get(collection)?.objects.get(key)
    }

    /// Whether there is an object at a place, and it is not being deleted.
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

    /// The objects under `prefix` as they were at `revision`.
    pub(crate) fn range_at<'a>(
        &'a self,
        collection: &'a str,
        prefix: &'a str,
        after: Option<&'a str>,
        revision: u64,
    ) -> Result<Vec<Arc<Object>>, Gone> {
        let mut objects: BTreeMap<&str, &Arc<Object>> = self
            .range(collection, prefix, after)
            .map(|object| (&*object.key, object))
            .collect();
        let events = self.known_since(collection, revision)?;
        for event in events
            .into_iter()
            .flatten()
            .rev()
            .take_while(|e| e.object.revision > revision)
        {
            let key = &*event.object.key;
            if !key.starts_with(prefix) || after.is_some_and(|after| key <= after) {
                continue;
            }
            match &event.previous {
                Some(previous) => objects.insert(key, previous),
                None => objects.remove(key),
            };
        }
        Ok(objects.into_values().cloned().collect())
    }

    /// At most `limit` events of a collection after `revision`.
    pub(crate) fn events(
        &self,
        collection: &str,
        revision: u64,
        limit: usize,
    ) -> Result<Vec<Arc<Event>>, Gone> {
        let Some(events) = self.known_since(collection, revision)? else {
            return Ok(Vec::new());
        };
        let first = events.partition_point(|event| event.object.revision <= revision);
        Ok(events.range(first..).take(limit).cloned().collect())
    }

    /// The events of a collection, which must be known from `revision` on. None when nothing was ever written to it.
    fn known_since(
        &self,
        collection: &str,
        revision: u64,
    ) -> Result<Option<&VecDeque<Arc<Event>>>, Gone> {
        let found = self.collections.get(collection);
        let oldest = found.map_or(self.compacted, |found| found.dropped);
        if revision < oldest {
            return Err(Gone { oldest });
        }
        Ok(found.map(|found| &found.events))
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
        let packs = self.packs();
        let mut left = Vec::new();
        let found = self.collection(&place.collection);
        found.events.push_back(Arc::clone(&event));
        if let Some(served) = found.events.len().checked_sub(FRAMES + 1) {
            found.events[served].forget_frame();
        }
        while found.events.len() > history {
            if let Some(oldest) = found.events.pop_front() {
                found.dropped = oldest.object.revision;
                if packs && oldest.change != Change::Deleted {
                    left.push(Cold {
                        collection: Arc::clone(&place.collection),
                        object: Arc::clone(&oldest.object),
                    });
                }
            }
        }
        let changed = found.changed.clone();
        if changed.receiver_count() > 0 {
            self.touched.insert(Arc::clone(&place.collection), changed);
        }
        self.cold.append(&mut left);
        if let Some(notices) = &self.notices {
            // Nobody listens any more once the server closes.
            let _ = notices.send(Arc::new(Notice {
                place: place.clone(),
                event,
            }));
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
                changed: watch::Sender::new(0),
            })
    }
}
