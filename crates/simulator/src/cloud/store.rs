//! The persistent form of the cloud: one SQLite table, one transaction per request.
//!
//! In write-ahead mode with `synchronous = NORMAL`, a committed transaction survives the end of the process at any
//! moment (SQLite, "PRAGMA synchronous"); only a loss of power may lose the last ones.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::Value;

use super::kind::Kind;
use super::state::{Change, State};

const SCHEMA_VERSION: i64 = 1;

/// Why a cloud cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Failure of SQLite, mostly for an unreadable file, or a file that another process has open.
    #[error("the simulated cloud's store {} cannot be used; is another ferrostack running on it?", path.display())]
    Store {
        /// File.
        path: PathBuf,
        /// SQLite's message.
        source: rusqlite::Error,
    },
    /// File from a newer version of this program.
    #[error("the simulated cloud's store {} has format {found}, newer than {SCHEMA_VERSION}, the newest this version reads; use a newer ferrostack or another data directory", path.display())]
    Newer {
        /// File.
        path: PathBuf,
        /// Version in the file.
        found: i64,
    },
    /// A row cannot be parsed.
    #[error("the simulated cloud's store {} has a damaged row: {kind} {key}", path.display())]
    Damaged {
        /// File.
        path: PathBuf,
        /// Kind of the row.
        kind: String,
        /// Key of the row.
        key: String,
    },
}

/// Open store.
pub(crate) struct Store {
    path: PathBuf,
    connection: Connection,
}

impl Store {
    /// Opens or creates the file and loads the content.
    pub(crate) fn open(path: &Path, state: &mut State) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Store {
            path: path.to_owned(),
            source,
        };
        let connection = Connection::open(path).map_err(failed)?;
        connection
            .busy_timeout(std::time::Duration::from_secs(2))
            .map_err(failed)?;
        // The lock makes a second process fail at once; SQLite then needs no shared memory file.
        connection
            .execute_batch(
                "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;",
            )
            .map_err(failed)?;
        let found: i64 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .map_err(failed)?;
        if found > SCHEMA_VERSION {
            return Err(OpenError::Newer {
                path: path.to_owned(),
                found,
            });
        }
        connection
            .execute_batch(&format!(
                "BEGIN IMMEDIATE;
                 CREATE TABLE IF NOT EXISTS resource (
                     kind TEXT NOT NULL, id TEXT NOT NULL, json TEXT NOT NULL,
                     PRIMARY KEY (kind, id)) WITHOUT ROWID;
                 CREATE TABLE IF NOT EXISTS counter (one INTEGER PRIMARY KEY, value INTEGER NOT NULL);
                 PRAGMA user_version = {SCHEMA_VERSION};
                 COMMIT;"
            ))
            .map_err(failed)?;
        let store = Self {
            path: path.to_owned(),
            connection,
        };
        store.load(state)?;
        Ok(store)
    }

    /// Commits the changes of one request atomically.
    pub(crate) fn write(&mut self, changes: &[Change], counter: u64) -> Result<(), OpenError> {
        let written = write(&mut self.connection, changes, counter);
        written.map_err(|source| self.failed(source))
    }

    fn load(&self, state: &mut State) -> Result<(), OpenError> {
        let failed = |source| self.failed(source);
        let mut rows = self
            .connection
            .prepare("SELECT kind, id, json FROM resource")
            .map_err(failed)?;
        let mut rows = rows.query([]).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            let kind: String = row.get(0).map_err(failed)?;
            let key: String = row.get(1).map_err(failed)?;
            let json: String = row.get(2).map_err(failed)?;
            match (Kind::named(&kind), serde_json::from_str(&json)) {
                (Some(known), Ok(Value::Object(doc))) => state.load(known, &key, doc),
                _ => {
                    return Err(OpenError::Damaged {
                        path: self.path.clone(),
                        kind,
                        key,
                    });
                }
            }
        }
        let counter: i64 = self
            .connection
            .query_row("SELECT coalesce(max(value), 0) FROM counter", [], |row| {
                row.get(0)
            })
            .map_err(failed)?;
        state.set_counter(counter.unsigned_abs());
        Ok(())
    }

    fn failed(&self, source: rusqlite::Error) -> OpenError {
        OpenError::Store {
            path: self.path.clone(),
            source,
        }
    }
}

fn write(
    connection: &mut Connection,
    changes: &[Change],
    counter: u64,
) -> Result<(), rusqlite::Error> {
    let transaction = connection.transaction()?;
    {
        let mut put = transaction.prepare_cached(
            "INSERT INTO resource (kind, id, json) VALUES (?1, ?2, ?3)
             ON CONFLICT (kind, id) DO UPDATE SET json = excluded.json",
        )?;
        let mut remove =
            transaction.prepare_cached("DELETE FROM resource WHERE kind = ?1 AND id = ?2")?;
        for change in changes {
            match &change.doc {
                Some(doc) => {
                    let json = serde_json::to_string(&**doc).unwrap_or_default();
                    put.execute(params![change.kind.name(), &*change.key, json])?;
                }
                None => {
                    remove.execute(params![change.kind.name(), &*change.key])?;
                }
            }
        }
        transaction
            .prepare_cached("INSERT OR REPLACE INTO counter (one, value) VALUES (1, ?1)")?
            .execute(params![i64::try_from(counter).unwrap_or(i64::MAX)])?;
    }
    transaction.commit()
}
