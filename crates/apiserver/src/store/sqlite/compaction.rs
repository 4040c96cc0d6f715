//! Compaction: superseded rows leave the file once they are old and no watch can resume from them.
//!
//! A seldom written collection can have events in its history that are older than the file keeps for a restart. The
//! rows of such events stay as long as the events, and go with the first compaction afterwards.

use rusqlite::{Connection, Transaction};

use super::super::Shared;
use super::super::log::Past;
use super::{format, signed, unsigned};

/// Retention of the past in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// Number of revisions for which superseded rows are kept, so that watches resume after a restart.
    pub(crate) keep: u64,
    /// Number of writes between two compactions.
    pub(crate) every: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            keep: 5_000,
            every: 1_000,
        }
    }
}

/// Drops superseded rows up to `through` that are in no history.
pub(super) fn compact(
    connection: &mut Connection,
    shared: &Shared,
    through: u64,
) -> rusqlite::Result<()> {
    let outlived = shared.state.write().take_outlived();
    match erase(connection, shared, through, &outlived) {
        Ok(through) => {
            shared.state.write().erased(through);
            Ok(())
        }
        Err(error) => {
            shared.state.write().put_back_outlived(outlived);
            Err(error)
        }
    }
}

/// Drops the rows in one transaction: of two consecutive rows of an object, the older one must never be left alone.
/// Returns the revision up to which the file is compacted.
fn erase(
    connection: &mut Connection,
    shared: &Shared,
    through: u64,
    outlived: &[Past],
) -> rusqlite::Result<u64> {
    let transaction = connection.transaction()?;
    let from = unsigned(format::compacted(&transaction)?);
    // After a restore, revisions continue far above the revisions of the rows.
    let through = through.max(from);
    let mut old = superseding(&transaction, from, through)?;
    {
        let state = shared.state.read();
        old.retain(|(collection, past)| !state.remembers(collection, past.revision));
    }
    let old = old.iter().map(|(_, past)| past);
    for past in outlived.iter().chain(old) {
        drop_replaced(&transaction, past)?;
    }
    if through > from {
        format::set_meta(&transaction, "compacted", signed(through))?;
    }
    transaction.commit()?;
    Ok(through)
}

/// Rows between two revisions that replaced or deleted an object, with collections.
fn superseding(
    transaction: &Transaction<'_>,
    from: u64,
    through: u64,
) -> rusqlite::Result<Vec<(String, Past)>> {
    let mut find = transaction.prepare_cached(
        "SELECT collection, rev, prev, deleted FROM log
         WHERE rev > ?1 AND rev <= ?2 AND (prev > 0 OR deleted = 1)",
    )?;
    let rows = find.query_map([signed(from), signed(through)], |row| {
        let past = Past {
            revision: unsigned(row.get(1)?),
            previous: unsigned(row.get(2)?),
            deleted: row.get::<_, i64>(3)? != 0,
        };
        Ok((row.get(0)?, past))
    })?;
    rows.collect()
}

/// Drops the row replaced by an event, and the row of the event itself if it is a deletion.
fn drop_replaced(transaction: &Transaction<'_>, past: &Past) -> rusqlite::Result<()> {
    let mut delete = transaction.prepare_cached("DELETE FROM log WHERE rev = ?1")?;
    if past.previous > 0 {
        delete.execute([signed(past.previous)])?;
    }
    if past.deleted {
        delete.execute([signed(past.revision)])?;
    }
    Ok(())
}

/// Drops all history; the next write gets a revision above `revision`.
pub(crate) fn continue_after(connection: &mut Connection, revision: u64) -> rusqlite::Result<()> {
    let transaction = connection.transaction()?;
    transaction.execute(
        "DELETE FROM log WHERE rev IN (SELECT prev FROM log WHERE prev > 0)",
        [],
    )?;
    transaction.execute("DELETE FROM log WHERE deleted = 1", [])?;
    format::set_meta(&transaction, "compacted", signed(revision))?;
    transaction.commit()
}
