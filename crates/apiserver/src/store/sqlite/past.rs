//! Past events, read from the file on demand: for a watch that resumes or lags, and for a list at an old revision.

use std::collections::HashMap;
use std::sync::Arc;

use rusqlite::{Connection, OptionalExtension as _};

use super::super::Shared;
use super::super::log::{At, Entry, Past};
use super::super::object::{Change, Event, Object};
use super::super::state::Gone;
use super::{format, signed};

/// Reason why a part of the past is not available.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread {
    #[error("revisions before {} are compacted", .0.oldest)]
    Gone(Gone),
    #[error("{0}")]
    Failed(String),
}

impl From<Gone> for Unread {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone)
    }
}

/// At most `limit` [`Event`]s of a collection after `revision`, and the revision of the store. Called between writes,
/// so that the file has all objects that the state refers to.
pub(in crate::store) fn events(
    connection: &Connection,
    shared: &Shared,
    collection: &str,
    revision: u64,
    limit: usize,
) -> Result<(Vec<Arc<Event>>, u64), Unread> {
    let (entries, current) = {
        let state = shared.state.read();
        (state.log(collection, revision, limit)?, state.revision)
    };
    Ok((Reader::new(connection).events(entries)?, current))
}

/// [`Object`]s selected by `at`, in their state at its revision. Called like [`events`].
pub(in crate::store) fn range_at(
    connection: &Connection,
    shared: &Shared,
    at: &At,
) -> Result<Vec<Arc<Object>>, Unread> {
    let (entries, current) = {
        let state = shared.state.read();
        let entries = state.log(&at.collection, at.revision, usize::MAX)?;
        let current: Vec<_> = state.range_of(at).cloned().collect();
        (entries, current)
    };
    let events = Reader::new(connection).events(entries)?;
    Ok(at.rewind(current, &events))
}

/// Reads rows; an object that one event wrote and the next one replaced is read once.
struct Reader<'a> {
    connection: &'a Connection,
    objects: HashMap<u64, Arc<Object>>,
}

impl<'a> Reader<'a> {
    fn new(connection: &'a Connection) -> Self {
        Self {
            connection,
            objects: HashMap::new(),
        }
    }

    fn events(&mut self, entries: Vec<Entry>) -> Result<Vec<Arc<Event>>, Unread> {
        let event = |entry| match entry {
            Entry::Here(event) => Ok(event),
            Entry::OnDisk(past) => self.event(past),
        };
        entries.into_iter().map(event).collect()
    }

    fn event(&mut self, past: Past) -> Result<Arc<Event>, Unread> {
        let previous = (past.previous > 0).then(|| self.object(past.previous));
        let previous = previous.transpose()?;
        let object = self.object(past.revision)?;
        let change = match (&previous, past.deleted) {
            (_, true) => Change::Deleted,
            (None, false) => Change::Added,
            (Some(_), false) => Change::Modified,
        };
        Ok(Arc::new(Event::new(change, object, previous)))
    }

    fn object(&mut self, revision: u64) -> Result<Arc<Object>, Unread> {
        if let Some(object) = self.objects.get(&revision) {
            return Ok(Arc::clone(object));
        }
        let object = self
            .row(revision)
            .map_err(|error| Unread::Failed(error.to_string()))?
            .unwrap_or_else(|| Err(format!("the database has no revision {revision}")))
            .map_err(Unread::Failed)?;
        let object = Arc::new(object);
        self.objects.insert(revision, Arc::clone(&object));
        Ok(object)
    }

    fn row(&self, revision: u64) -> rusqlite::Result<Option<Result<Object, String>>> {
        let mut find = self.connection.prepare_cached(
            "SELECT rev, collection, key, prev, deleted, value, sum FROM log WHERE rev = ?1",
        )?;
        let row = find.query_row([signed(revision)], format::read_row);
        let loaded = row.optional()?;
        Ok(loaded.map(|loaded| loaded.map(|(object, _, _)| object)))
    }
}
