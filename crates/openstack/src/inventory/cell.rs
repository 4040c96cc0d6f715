//! Objects of one kind, and the merging of lists with our own writes.
//!
//! A counter numbers every write and the start of every list. A list updates an object only if the object was not
//! written after the list began.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::pace::Pace;
use super::table::Table;
use super::{Resource, What};
use crate::flight::Flight;

/// Objects of one kind.
#[doc(hidden)]
pub struct Cell<T> {
    pub(super) flight: Flight,
    pub(super) pace: Pace,
    state: Mutex<State<T>>,
}

struct State<T> {
    /// Objects, each with the number of the write that returned the object; 0 for an object from a list.
    rows: BTreeMap<ById<T>, u64>,
    /// Objects deleted by us, with the number of the deletion.
    gone: HashMap<String, u64>,
    counter: u64,
    snapshot: Option<Arc<Table<T>>>,
}

/// Object as a key: found by its id, without a second copy of the id.
struct ById<T>(Arc<T>);

impl<T: Resource> Borrow<str> for ById<T> {
    fn borrow(&self) -> &str {
        self.0.id()
    }
}

impl<T: Resource> PartialEq for ById<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0.id() == other.0.id()
    }
}

impl<T: Resource> Eq for ById<T> {}

impl<T: Resource> PartialOrd for ById<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Resource> Ord for ById<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.id().cmp(other.0.id())
    }
}

/// Difference between two lists: the id of the object, the type of the change, and the last known state.
pub(super) type Difference<T> = ((String, What), Arc<T>);

impl<T> Default for Cell<T> {
    fn default() -> Self {
        let state = State {
            rows: BTreeMap::new(),
            gone: HashMap::new(),
            counter: 0,
            snapshot: None,
        };
        Self {
            flight: Flight::default(),
            pace: Pace::default(),
            state: Mutex::new(state),
        }
    }
}

impl<T: Resource> Cell<T> {
    /// Returns the number of a list that begins now.
    pub(super) fn begin(&self) -> u64 {
        self.state.lock().next()
    }

    /// Applies a list that began at `mark`. New objects are changes only if the kind was `known` before.
    pub(super) fn apply(&self, mark: u64, items: Vec<Arc<T>>, known: bool) -> Vec<Difference<T>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut before = std::mem::take(&mut state.rows);
        let mut changes = Vec::new();
        for mut item in items {
            // One that is shared is ours already.
            if let Some(item) = Arc::get_mut(&mut item) {
                item.sort();
            }
            let id = item.id();
            // Objects may move from one page to the next between requests.
            if state.rows.contains_key(id) {
                continue;
            }
            if state.gone.get(id).is_some_and(|deleted| *deleted > mark) {
                continue;
            }
            let (row, written) = match before.remove_entry(id) {
                Some((old, written)) if written > mark || *old.0 == *item => (old, written),
                Some(_) => {
                    changes.push(((id.to_owned(), What::Changed), Arc::clone(&item)));
                    (ById(item), 0)
                }
                None => {
                    if known {
                        changes.push(((id.to_owned(), What::Appeared), Arc::clone(&item)));
                    }
                    (ById(item), 0)
                }
            };
            state.rows.insert(row, written);
        }
        for (row, written) in before {
            if written > mark {
                state.rows.insert(row, written);
            } else {
                changes.push(((row.0.id().to_owned(), What::Gone), row.0));
            }
        }
        state.gone.retain(|_, deleted| *deleted > mark);
        state.snapshot = None;
        changes
    }

    /// Updates an object that was written.
    pub(super) fn fold(&self, mut item: T) -> Arc<T> {
        item.sort();
        let mut state = self.state.lock();
        let written = state.next();
        let item = Arc::new(item);
        state.gone.remove(item.id());
        // The key is the object: an insertion alone would keep the one before.
        state.rows.remove(item.id());
        state.rows.insert(ById(Arc::clone(&item)), written);
        state.snapshot = None;
        item
    }

    /// Removes an object that was deleted.
    pub(super) fn fold_gone(&self, id: &str) {
        let mut state = self.state.lock();
        let deleted = state.next();
        state.rows.remove(id);
        state.gone.insert(id.to_owned(), deleted);
        state.snapshot = None;
    }

    /// Changes a known object; returns true if the object is pending afterwards.
    pub(super) fn fold_with(&self, id: &str, change: impl FnOnce(&mut T)) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let written = state.next();
        let Some((mut row, _)) = state.rows.remove_entry(id) else {
            return false;
        };
        state.snapshot = None;
        let item = Arc::make_mut(&mut row.0);
        change(item);
        item.sort();
        let is_pending = item.is_pending();
        state.rows.insert(row, written);
        is_pending
    }

    /// True if any object is pending.
    pub(super) fn has_pending(&self) -> bool {
        self.state.lock().rows.keys().any(|row| row.0.is_pending())
    }

    /// Returns the objects as an immutable table, shared until something changes.
    pub(super) fn snapshot(&self) -> Arc<Table<T>> {
        let mut state = self.state.lock();
        let is_read = self.pace.was_read();
        let State { rows, snapshot, .. } = &mut *state;
        match snapshot {
            Some(table) if table.is_read() == is_read => Arc::clone(table),
            _ => {
                let items = rows.keys().map(|row| Arc::clone(&row.0)).collect();
                Arc::clone(snapshot.insert(Arc::new(Table::with(items, is_read))))
            }
        }
    }
}

impl<T> State<T> {
    fn next(&mut self) -> u64 {
        self.counter += 1;
        self.counter
    }
}
