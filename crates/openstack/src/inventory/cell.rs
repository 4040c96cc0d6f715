//! Objects of one kind, and the merging of lists with our own writes.
//!
//! A counter numbers every write and the start of every list. A list updates an object only if the object was not
//! written after the list began. Lists of some clouds come from a replica of the database that lags behind: for some
//! seconds after a write, a list that shows an object as it was before the write is doubted, and read again.

#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::pace::Pace;
use super::table::Table;
use super::{Resource, What};
use crate::flight::Flight;

/// Time for which a list may lag behind our writes.
const LAG: Duration = Duration::from_secs(6);

/// Objects of one kind.
#[doc(hidden)]
pub struct Cell<T> {
    pub(super) flight: Flight,
    pub(super) pace: Pace,
    state: Mutex<State<T>>,
    lag: Duration,
}

struct State<T> {
    rows: BTreeMap<ById<T>, Written<T>>,
    /// Objects deleted by us.
    gone: HashMap<String, Written<T>>,
    /// True if the last list was doubted.
    doubted: bool,
    counter: u64,
    snapshot: Option<Arc<Table<T>>>,
}

/// Our last write of an object.
struct Written<T> {
    /// Number of the write; 0 for an object from a list.
    number: u64,
    /// Versions before our writes, with the times of the writes; `None` for a creation.
    former: Vec<(Instant, Option<Arc<T>>)>,
}

impl<T> Written<T> {
    fn by_list() -> Self {
        Self {
            number: 0,
            former: Vec::new(),
        }
    }

    /// The same without writes that no list lags behind any more.
    fn without_past(mut self, lag: Duration) -> Self {
        self.former.retain(|(at, _)| at.elapsed() < lag);
        self
    }

    /// Adds a write that replaces `old`.
    fn again(self, number: u64, old: Option<Arc<T>>, lag: Duration) -> Self {
        let mut written = Self {
            number,
            ..self.without_past(lag)
        };
        written.former.push((Instant::now(), old));
        written
    }
}

impl<T: PartialEq> Written<T> {
    /// True if a list that shows `item` may lag behind a write.
    fn may_lag(&self, item: Option<&T>, lag: Duration) -> bool {
        let mut former = self.former.iter();
        former.any(|(at, old)| at.elapsed() < lag && old.as_deref() == item)
    }
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
            doubted: false,
            counter: 0,
            snapshot: None,
        };
        Self {
            flight: Flight::default(),
            pace: Pace::default(),
            state: Mutex::new(state),
            lag: LAG,
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
        state.doubted = false;
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
            if let Some(deleted) = state.gone.get(id) {
                let is_doubted = deleted.may_lag(Some(&item), self.lag);
                state.doubted |= is_doubted;
                if is_doubted || deleted.number > mark {
                    continue;
                }
            }
            let (row, written) = match before.remove_entry(id) {
                Some((old, written)) if written.number > mark || *old.0 == *item => (old, written),
                Some((old, written)) if written.may_lag(Some(&item), self.lag) => {
                    state.doubted = true;
                    (old, written)
                }
                Some(_) => {
                    changes.push(((id.to_owned(), What::Changed), Arc::clone(&item)));
                    (ById(item), Written::by_list())
                }
                None => {
                    if known {
                        changes.push(((id.to_owned(), What::Appeared), Arc::clone(&item)));
                    }
                    (ById(item), Written::by_list())
                }
            };
            state.rows.insert(row, written.without_past(self.lag));
        }
        for (row, written) in before {
            let is_doubted = written.may_lag(None, self.lag);
            state.doubted |= is_doubted;
            if is_doubted || written.number > mark {
                state.rows.insert(row, written);
            } else {
                changes.push(((row.0.id().to_owned(), What::Gone), row.0));
            }
        }
        let is_past = |deleted: &Written<T>| {
            let mut former = deleted.former.iter();
            deleted.number <= mark && former.all(|(at, _)| at.elapsed() >= self.lag)
        };
        state.gone.retain(|_, deleted| !is_past(deleted));
        state.snapshot = None;
        changes
    }

    /// Updates an object that was written.
    pub(super) fn fold(&self, mut item: T) -> Arc<T> {
        item.sort();
        let mut state = self.state.lock();
        let number = state.next();
        let item = Arc::new(item);
        state.gone.remove(item.id());
        // The key is the object: an insertion alone would keep the one before.
        let (old, written) = match state.rows.remove_entry(item.id()) {
            Some((old, written)) => (Some(old.0), written),
            None => (None, Written::by_list()),
        };
        let written = written.again(number, old, self.lag);
        state.rows.insert(ById(Arc::clone(&item)), written);
        state.snapshot = None;
        item
    }

    /// Removes an object that was deleted.
    pub(super) fn fold_gone(&self, id: &str) {
        let mut state = self.state.lock();
        let number = state.next();
        let deleted = match state.rows.remove_entry(id) {
            Some((old, written)) => written.again(number, Some(old.0), self.lag),
            None => Written {
                number,
                former: Vec::new(),
            },
        };
        state.gone.insert(id.to_owned(), deleted);
        state.snapshot = None;
    }

    /// Changes a known object; returns true if the object is pending afterwards.
    pub(super) fn fold_with(&self, id: &str, change: impl FnOnce(&mut T)) -> bool {
        let mut state = self.state.lock();
        let state = &mut *state;
        let number = state.next();
        let Some((mut row, written)) = state.rows.remove_entry(id) else {
            return false;
        };
        state.snapshot = None;
        let written = written.again(number, Some(Arc::clone(&row.0)), self.lag);
        let item = Arc::make_mut(&mut row.0);
        change(item);
        item.sort();
        let is_pending = item.is_pending();
        state.rows.insert(row, written);
        is_pending
    }

    /// True if any object is pending, or if the last list is to be read again.
    pub(super) fn has_pending(&self) -> bool {
        let state = self.state.lock();
        state.doubted || state.rows.keys().any(|row| row.0.is_pending())
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
