//! Compaction: rows that are superseded leave the file once they are old and no watch can resume from them.
//!
//! A collection that is seldom written can have events in its history that are older than what the file keeps for a
//! restart. Their rows stay as long as the events do, and go with the first compaction after the events have gone.

use rusqlite::{Connection, Transaction};

use super::super::Shared;
use super::super::log::Past;
use super::{format, signed, unsigned};

/// How much of the past the file keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Retention {
    /// Superseded rows are kept for this many revisions, so that watches resume after a restart.
    pub(crate) keep: u64,
    /// Compaction runs after this many writes.
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

/// Drops the rows up to `through` that are superseded and in no history.
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

/// Drops the rows in one transaction: of two that an object had one after the other, the older must never be left alone.
/// Returns up to where the file is compacted.
fn erase(
    connection: &mut Connection,
    shared: &Shared,
    through: u64,
    outlived: &[Past],
) -> rusqlite::Result<u64> {
    let transaction = connection.transaction()?;
    let from = unsigned(format::compacted(&transaction)?);
    // After a restore, revisions continue far above those of the rows.
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

/// The rows between two revisions that replaced or deleted an object, with their collections.
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

/// Drops the row that an event replaced, and that of the event when it is a deletion.
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
