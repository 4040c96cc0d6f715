//! Format of the file: creation, recognition, checks, migration and reading.
//!
//! SQLite finds damage to its own structure, not to the stored content; so every row carries a checksum. A file with
//! one wrong byte is either rejected or has exactly the written content.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use ring::digest;
use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _, Transaction};

use super::{signed, unsigned};
use crate::options::Synchronous;
use crate::store::OpenError;
use crate::store::object::Object;
use crate::store::state::State;

/// Current format, in `PRAGMA user_version`. 1: rows without checksums.
pub(crate) const FORMAT: i64 = 2;
/// `PRAGMA application_id` from format 2 on: "FeSt".
const APPLICATION: i64 = 0x4665_5374;

const SCHEMA: &str = "
    CREATE TABLE log (
        rev        INTEGER PRIMARY KEY,
        collection TEXT NOT NULL,
        key        TEXT NOT NULL,
        prev       INTEGER NOT NULL,
        deleted    INTEGER NOT NULL,
        value      BLOB NOT NULL,
        sum        INTEGER NOT NULL
    );
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL, sum INTEGER NOT NULL) WITHOUT ROWID;
";

/// Migration of a file from format `n` to `n + 1`, at place `n - 1`.
const MIGRATIONS: [fn(&Transaction<'_>) -> rusqlite::Result<()>; 1] = [add_sums];

/// One row of the log, without the checksum.
pub(super) struct Row<'a> {
    pub(super) revision: i64,
    pub(super) collection: &'a str,
    pub(super) key: &'a str,
    pub(super) previous: i64,
    pub(super) deleted: i64,
    pub(super) value: &'a [u8],
}

impl Row<'_> {
    /// Required value of the column `sum`.
    pub(super) fn sum(&self) -> i64 {
        let length = |text: &str| signed(text.len() as u64).to_le_bytes();
        sum(&[
            &self.revision.to_le_bytes(),
            &self.previous.to_le_bytes(),
            &self.deleted.to_le_bytes(),
            &length(self.collection),
            self.collection.as_bytes(),
            &length(self.key),
            self.key.as_bytes(),
            self.value,
        ])
    }
}

/// Opens or creates the file, checks and reads the rows. From then on, no other process can open the file.
pub(crate) fn prepare(
    path: &Path,
    synchronous: Synchronous,
    state: State,
) -> Result<(Connection, State), OpenError> {
    make(path).map_err(|error| unmade(path, error))?;
    // SQLite takes a file shorter than its header for a new one.
    let length = std::fs::metadata(path).map_or(0, |found| found.len());
    if (1..512).contains(&length) {
        return Err(damaged(path, format!("only {length} bytes are left of it")));
    }
    let failed = |source| refused(path, source);
    let mut connection = Connection::open(path).map_err(failed)?;
    configure(&connection, synchronous).map_err(failed)?;
    check_structure(&connection, path)?;
    bring_up_to_date(&mut connection, path)?;
    let state = load(&connection, path, state)?;
    Ok((connection, state))
}

/// Opens a file that this process has prepared and closed. The file must exist, without another user.
pub(super) fn reopen(path: &Path, synchronous: Synchronous) -> rusqlite::Result<Connection> {
    let there = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, there)?;
    configure(&connection, synchronous)?;
    Ok(connection)
}

/// Creates a missing file, empty: here and not in SQLite, so that no other user can ever read the file.
pub(crate) fn make(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Rejects a file with inconsistent pages.
pub(crate) fn check_structure(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let problem: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|source| refused(path, source))?;
    if problem == "ok" {
        return Ok(());
    }
    Err(damaged(path, problem))
}

/// Creates the tables of a new file, and migrates an older format to the current one, in one transaction.
pub(crate) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let found = found(connection, path)?;
    if found == FORMAT {
        return Ok(());
    }
    let result = (|| {
        let transaction = connection.transaction()?;
        let steps = usize::try_from(found).unwrap_or(0);
        if found == 0 {
            transaction.execute_batch(SCHEMA)?;
            set_meta(&transaction, "compacted", 0)?;
        } else {
            for step in &MIGRATIONS[steps - 1..] {
                step(&transaction)?;
            }
        }
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", FORMAT)?;
        transaction.commit()
    })();
    result.map_err(|source| refused(path, source))
}

/// Format of a file: 0 for an empty one.
pub(crate) fn found(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let number = |sql: &str| -> Result<i64, OpenError> {
        let found = connection.query_row(sql, [], |row| row.get(0));
        found.map_err(|source| refused(path, source))
    };
    let found = number("PRAGMA user_version")?;
    let application = number("PRAGMA application_id")?;
    let tables = number("SELECT count(*) FROM sqlite_schema")?;
    let logs = number("SELECT count(*) FROM sqlite_schema WHERE name = 'log'")?;
    let ours = match found {
        0 => tables == 0,
        1 => application == 0 && logs == 1,
        _ => application == APPLICATION,
    };
    let path = path.to_owned();
    match found {
        found if !ours || found < 0 => Err(OpenError::Foreign { path }),
        found if found > FORMAT => Err(OpenError::Newer {
            path,
            found,
            known: FORMAT,
        }),
        found => Ok(found),
    }
}

/// Format 2: a checksum in every row.
fn add_sums(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute_batch(
        "ALTER TABLE log ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;
         ALTER TABLE meta ADD COLUMN sum INTEGER NOT NULL DEFAULT 0;",
    )?;
    let compacted: Option<i64> = transaction
        .query_row("SELECT value FROM meta WHERE name = 'compacted'", [], |r| {
            r.get(0)
        })
        .optional()?;
    set_meta(transaction, "compacted", compacted.unwrap_or(0))?;
    let revisions: Vec<i64> = transaction
        .prepare("SELECT rev FROM log")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut find = transaction
        .prepare("SELECT collection, key, prev, deleted, value FROM log WHERE rev = ?1")?;
    let mut mark = transaction.prepare("UPDATE log SET sum = ?2 WHERE rev = ?1")?;
    for revision in revisions {
        let sum = find.query_row([revision], |row| {
            let row = Row {
                revision,
                collection: row.get_ref(0)?.as_str()?,
                key: row.get_ref(1)?.as_str()?,
                previous: row.get(2)?,
                deleted: row.get(3)?,
                value: row.get_ref(4)?.as_blob()?,
            };
            Ok(row.sum())
        })?;
        mark.execute([revision, sum])?;
    }
    Ok(())
}

/// Revision up to which superseded rows are gone.
pub(super) fn compacted(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("SELECT value FROM meta WHERE name = 'compacted'", [], |r| {
        r.get(0)
    })
}

pub(super) fn set_meta(connection: &Connection, name: &str, value: i64) -> rusqlite::Result<()> {
    connection.execute(
        "INSERT OR REPLACE INTO meta (name, value, sum) VALUES (?1, ?2, ?3)",
        rusqlite::params![name, value, meta_sum(name, value)],
    )?;
    Ok(())
}

fn meta_sum(name: &str, value: i64) -> i64 {
    sum(&[name.as_bytes(), &value.to_le_bytes()])
}

fn configure(connection: &Connection, synchronous: Synchronous) -> rusqlite::Result<()> {
    // A server that has just been dropped needs a moment to let go of the file.
    connection.busy_timeout(std::time::Duration::from_secs(2))?;
    connection.pragma_update(None, "locking_mode", "EXCLUSIVE")?;
    connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
    let level = match synchronous {
        Synchronous::Full => "FULL",
        Synchronous::Normal => "NORMAL",
    };
    connection.pragma_update(None, "synchronous", level)?;
    // In KiB if negative. Reads are served from memory, so pages of the file are hardly read twice. A process can
    // have many databases that need not survive a loss of power.
    let cache = match synchronous {
        Synchronous::Full => -256,
        Synchronous::Normal => -64,
    };
    connection.pragma_update(None, "cache_size", cache)?;
    // Takes the lock now and not at the first write.
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")
}

/// Reads all rows into `state`, checking the sum of each.
pub(crate) fn load(
    connection: &Connection,
    path: &Path,
    mut state: State,
) -> Result<State, OpenError> {
    let failed = |source| refused(path, source);
    let (compacted, sum) = connection
        .query_row(
            "SELECT value, sum FROM meta WHERE name = 'compacted'",
            [],
            |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)),
        )
        .map_err(failed)?;
    if sum != meta_sum("compacted", compacted) {
        let problem = "the record of its compaction does not match its sum";
        return Err(damaged(path, problem.to_owned()));
    }
    state.continue_after(unsigned(compacted));
    let mut names: HashMap<String, Arc<str>> = HashMap::new();
    let mut rows = connection
        .prepare("SELECT rev, collection, key, prev, deleted, value, sum FROM log ORDER BY rev")
        .map_err(failed)?;
    let mut rows = rows.query([]).map_err(failed)?;
    while let Some(row) = rows.next().map_err(failed)? {
        let (object, name, deleted) = read_row(row)
            .map_err(failed)?
            .map_err(|problem| damaged(path, problem))?;
        let collection = match names.get(&name) {
            Some(known) => Arc::clone(known),
            None => Arc::clone(names.entry(name.clone()).or_insert_with(|| name.into())),
        };
        let object = if state.packs() {
            object.packed()
        } else {
            object
        };
        state.publish(&collection, Arc::new(object), deleted);
    }
    state.forget_recent();
    // Objects from the file are packed already.
    drop(state.take_cold());
    Ok(state)
}

pub(super) type Loaded = (Object, String, bool);

pub(super) fn read_row(row: &rusqlite::Row<'_>) -> rusqlite::Result<Result<Loaded, String>> {
    let found = Row {
        revision: row.get(0)?,
        collection: row.get_ref(1)?.as_str()?,
        key: row.get_ref(2)?.as_str()?,
        previous: row.get(3)?,
        deleted: row.get(4)?,
        value: row.get_ref(5)?.as_blob()?,
    };
    let place = || {
        format!(
            "{} {} at revision {}",
            found.collection, found.key, found.revision
        )
    };
    if found.sum() != row.get::<_, i64>(6)? {
        return Ok(Err(format!("{} does not match its sum", place())));
    }
    let revision = unsigned(found.revision);
    Ok(
        match Object::load(revision, found.key.into(), found.value.to_vec()) {
            Some(object) => Ok((object, found.collection.to_owned(), found.deleted != 0)),
            None => Err(format!("{} is not JSON", place())),
        },
    )
}

/// First eight bytes of the SHA-256 of the parts.
pub(crate) fn sum(parts: &[&[u8]]) -> i64 {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(part);
    }
    let found = context.finish();
    let mut first = [0; 8];
    first.copy_from_slice(&found.as_ref()[..8]);
    i64::from_le_bytes(first)
}

fn damaged(path: &Path, problem: String) -> OpenError {
    let path = path.to_owned();
    OpenError::Damaged { path, problem }
}

fn unmade(path: &Path, error: std::io::Error) -> OpenError {
    use std::io::ErrorKind;
    let path = path.to_owned();
    match error.kind() {
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => OpenError::Full { path },
        _ => {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
            let source = rusqlite::Error::SqliteFailure(code, Some(error.to_string()));
            OpenError::Database { path, source }
        }
    }
}

/// Meaning of an SQLite error for the file.
pub(crate) fn refused(path: &Path, source: rusqlite::Error) -> OpenError {
    // A value of another type than was written can only come from damage.
    let misread = matches!(
        source,
        rusqlite::Error::InvalidColumnType(..)
            | rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::QueryReturnedNoRows
            | rusqlite::Error::Utf8Error(..)
    );
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            damaged(&path, source.to_string())
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::ReadOnly { path },
        Some(ErrorCode::DiskFull) => OpenError::Full { path },
        _ if misread => damaged(&path, source.to_string()),
        _ => OpenError::Database { path, source },
    }
}
