//! Log of a collection: the events from which watches can resume.
//!
//! With a file, only the latest events of a store have objects in memory. An older event has only a revision, the key
//! of its rows in the file. Past objects take no memory, and watches that follow the writes read no file.

use std::collections::{BTreeMap, HashSet, VecDeque};
use std::sync::Arc;

use super::object::{Change, Event, Object};

/// Event in the log of a collection.
#[derive(Clone, Debug)]
pub(super) enum Entry {
    Here(Arc<Event>),
    OnDisk(Past),
}

/// Event with objects in the file only.
#[derive(Clone, Copy, Debug)]
pub(super) struct Past {
    pub(super) revision: u64,
    /// Replaced revision; 0 without an earlier object.
    pub(super) previous: u64,
    pub(super) deleted: bool,
}

impl Past {
    fn from_event(event: &Event) -> Self {
        Self {
            revision: event.object.revision,
            previous: event.previous.as_ref().map_or(0, |object| object.revision),
            deleted: event.change == Change::Deleted,
        }
    }
}

impl Entry {
    pub(super) fn revision(&self) -> u64 {
        match self {
            Self::Here(event) => event.object.revision,
            Self::OnDisk(past) => past.revision,
        }
    }

    pub(super) fn past(&self) -> Past {
        match self {
            Self::Here(event) => Past::from_event(event),
            Self::OnDisk(past) => *past,
        }
    }

    /// [`Event`], if the objects are in memory.
    pub(super) fn here(&self) -> Option<&Arc<Event>> {
        match self {
            Self::Here(event) => Some(event),
            Self::OnDisk(_) => None,
        }
    }

    /// Leaves the objects to the file, and returns the [`Event`] with the objects. An object in the form of a changed
    /// schema is not in the file, so such an event stays.
    pub(super) fn forget(&mut self) -> Option<Arc<Event>> {
        let event = self.here()?;
        let previous = event.previous.as_deref();
        if !previous.is_none_or(Object::is_as_written) {
            return None;
        }
        let past = Self::OnDisk(Past::from_event(event));
        match std::mem::replace(self, past) {
            Self::Here(event) => Some(event),
            Self::OnDisk(_) => None,
        }
    }
}

/// Events with objects in memory, of a store with a file, oldest first.
#[derive(Debug)]
pub(super) struct Recent {
    events: VecDeque<Retained>,
    bytes: usize,
    /// Maximum size of the objects in bytes.
    limit: usize,
}

#[derive(Debug)]
struct Retained {
    collection: Arc<str>,
    revision: u64,
    bytes: usize,
}

impl Recent {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            events: VecDeque::new(),
            bytes: 0,
            limit,
        }
    }

    pub(super) fn push(&mut self, collection: &Arc<str>, event: &Event) {
        let previous = event.previous.as_ref();
        let bytes = event.object.length() + previous.map_or(0, |object| object.length());
        self.bytes += bytes;
        self.events.push_back(Retained {
            collection: Arc::clone(collection),
            revision: event.object.revision,
            bytes,
        });
    }

    /// Collection and revision of the oldest event, as long as all events together exceed the limit.
    pub(super) fn pop_surplus(&mut self) -> Option<(Arc<str>, u64)> {
        (self.bytes > self.limit).then(|| self.pop())?
    }

    /// Collection and revision of the oldest event.
    pub(super) fn pop(&mut self) -> Option<(Arc<str>, u64)> {
        let Some(oldest) = self.events.pop_front() else {
            self.events.shrink_to_fit();
            return None;
        };
        self.bytes -= oldest.bytes;
        Some((oldest.collection, oldest.revision))
    }
}

/// Counts bytes in memory that serve the past alone.
#[derive(Debug, Default)]
pub(super) struct Count {
    seen: HashSet<*const Object>,
    pub(super) bytes: usize,
}

impl Count {
    /// Adds the log of a collection. An [`Object`] counts once, and not at all while it is `current`.
    pub(super) fn add(&mut self, log: &VecDeque<Entry>, current: impl Fn(&Arc<Object>) -> bool) {
        self.bytes += log.capacity() * size_of::<Entry>();
        for event in log.iter().filter_map(Entry::here) {
            self.bytes += size_of::<Event>() + event.line_length();
            for object in std::iter::once(&event.object).chain(&event.previous) {
                if !current(object) && self.seen.insert(Arc::as_ptr(object)) {
                    self.bytes += size_of::<Object>() + object.length();
                }
            }
        }
    }
}

/// Selection of a list at an old revision.
#[derive(Clone, Debug)]
pub(crate) struct At {
    pub(crate) collection: Arc<str>,
    /// Prefix of the keys.
    pub(crate) prefix: String,
    /// Key after which the list begins.
    pub(crate) after: Option<String>,
    pub(crate) revision: u64,
}

impl At {
    /// Selected [`Object`]s in their state at the revision, from the current ones and all [`Event`]s since.
    pub(super) fn rewind(
        &self,
        current: impl IntoIterator<Item = Arc<Object>>,
        events: &[Arc<Event>],
    ) -> Vec<Arc<Object>> {
        let current = current.into_iter();
        let mut objects: BTreeMap<Arc<str>, Arc<Object>> = current
            .map(|object| (Arc::clone(&object.key), object))
            .collect();
        for event in events.iter().rev() {
            let key = &event.object.key;
            if !key.starts_with(&self.prefix)
                || self.after.as_deref().is_some_and(|after| **key <= *after)
            {
                continue;
            }
            match &event.previous {
                Some(previous) => objects.insert(Arc::clone(key), Arc::clone(previous)),
                None => objects.remove(key),
            };
        }
        objects.into_values().collect()
    }
}

#[cfg(test)]
mod tests;
