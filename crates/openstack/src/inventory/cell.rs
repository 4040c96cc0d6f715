//! The objects of one kind, and the merging of lists with our own writes.
//!
//! A counter numbers every write and the start of every list. A list updates an object only if the object was not
//! written after the list began.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

use super::pace::Pace;
use super::table::Table;
use super::{Resource, What};
use crate::flight::Flight;

/// The objects of one kind.
#[doc(hidden)]
pub struct Cell<T> {
    pub(super) flight: Flight,
    pub(super) pace: Pace,
    state: Mutex<State<T>>,
}

struct State<T> {
    rows: BTreeMap<String, Row<T>>,
    /// Objects that we deleted, and the number of the deletion.
    gone: HashMap<String, u64>,
    counter: u64,
    snapshot: Option<Arc<Table<T>>>,
}

struct Row<T> {
    item: Arc<T>,
    /// The number of the write that returned the item; 0 if it comes from a list.
    written: u64,
}

/// A difference between two lists: the id of the object, the type of the change, and its last known state.
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
    pub(super) fn apply(&self, mark: u64, items: Vec<T>, known: bool) -> Vec<Difference<T>> {
        let mut state = self.state.lock();
        let state = &mut *state;
        let mut before = std::mem::take(&mut state.rows);
        let mut changes = Vec::new();
        for mut item in items {
            item.sort();
            let id = item.id().to_owned();
            // Objects may move from one page to the next between requests.
            if state.rows.contains_key(&id) {
                continue;
            }
            if state.gone.get(&id).is_some_and(|deleted| *deleted > mark) {
                continue;
            }
            let row = match before.remove(&id) {
                Some(old) if old.written > mark || *old.item == item => old,
                Some(_) => {
                    let row = Row {
                        item: Arc::new(item),
                        written: 0,
                    };
                    changes.push(((id.clone(), What::Changed), Arc::clone(&row.item)));
                    row
                }
                None => {
                    let row = Row {
                        item: Arc::new(item),
                        written: 0,
                    };
                    if known {
                        changes.push(((id.clone(), What::Appeared), Arc::clone(&row.item)));
                    }
                    row
                }
            };
            state.rows.insert(id, row);
        }
        for (id, row) in before {
            if row.written > mark {
                state.rows.insert(id, row);
            } else {
                changes.push(((id, What::Gone), row.item));
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
        state.rows.insert(
            item.id().to_owned(),
            Row {
                item: Arc::clone(&item),
                written,
            },
        );
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

    /// Changes a known object; returns whether it is pending afterwards.
    pub(super) fn fold_with(&self, id: &str, change: impl FnOnce(&mut T)) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let written = state.next();
        let Some(row) = state.rows.get_mut(id) else {
            return false;
        };
        let item = Arc::make_mut(&mut row.item);
        change(item);
        item.sort();
        row.written = written;
        state.snapshot = None;
        row.item.is_pending()
    }

    /// Whether any object is pending.
    pub(super) fn has_pending(&self) -> bool {
        self.state
            .lock()
            .rows
            .values()
            .any(|row| row.item.is_pending())
    }

    /// The objects as an immutable table, shared until something changes.
    pub(super) fn snapshot(&self) -> Arc<Table<T>> {
        let mut state = self.state.lock();
        let is_read = self.pace.was_read();
        let State { rows, snapshot, .. } = &mut *state;
        match snapshot {
            Some(table) if table.is_read() == is_read => Arc::clone(table),
            _ => {
                let items = rows
                    .iter()
                    .map(|(id, row)| (id.clone(), Arc::clone(&row.item)))
                    .collect();
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
