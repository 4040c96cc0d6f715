//! Backups: one file with the objects and other files of a server, created while the server runs or is stopped.
//!
//! A restored database continues at a revision that no client of the old server has seen, with a compacted history: a
//! client that is still running gets 410 Gone for remembered revisions, and lists again. Otherwise revisions would be
//! used twice, and such a client would miss changes ([why so far
//! above](../../../docs/adr/0015-revisions-after-a-restore.md)).
//!
//! A backup is a database of the same format, compact, with one more table for the files. Backups contain Secrets and
//! keys, and are created with mode 0600.
//!
//! A running server returns its database at `POST /_ferrostack/backup`, to administrators only.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use rusqlite::Connection;
use tokio::io::AsyncReadExt as _;

use crate::body::{self, Body};
use crate::core::Core;
use crate::error::ApiError;
use crate::options::Synchronous;
use crate::store::OpenError;
use crate::store::State;
use crate::store::sqlite::{self, format};

/// Path at which a running server returns its database.
pub const PATH: &str = "/_ferrostack/backup";
/// Files beside the objects, by name.
pub type Files = BTreeMap<String, Vec<u8>>;

/// Minimum distance between the revision of a backup and the first one after a restore.
const BUMP: u64 = 1_000_000_000;
/// Number of bytes of a database in one piece of the body.
const PIECE: usize = 64 << 10;

/// Error of a backup or a restore.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The database or the backup cannot be used.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// Unreadable or unwritable file.
    #[error("cannot {action} {path}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the file system.
        source: io::Error,
    },
}

/// Content of a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Number of objects.
    pub objects: usize,
    /// Revision of the last write.
    pub revision: u64,
    /// [`Files`] beside the objects.
    pub files: Files,
}

/// Copies the objects of a closed database to `backup`, a missing or empty file.
///
/// # Errors
/// When a server has the database open, when the database is damaged, or when `backup` cannot be written.
pub fn copy(database: &Path, backup: &Path) -> Result<(), BackupError> {
    let state = State::new(0);
    let (connection, _) = format::prepare(database, Synchronous::Full, state)?;
    format::make(backup).map_err(failed("write", backup))?;
    connection
        .execute("VACUUM INTO ?1", [backup.to_string_lossy()])
        .map_err(|source| format::refused(backup, source))?;
    Ok(())
}

/// Adds [`Files`] to a backup without files, checks the whole backup, and returns once all data is on disk.
///
/// # Errors
/// When the backup is damaged or cannot be written.
pub fn complete(backup: &Path, files: &Files) -> Result<Contents, BackupError> {
    let refused = |source| format::refused(backup, source);
    let mut connection = Connection::open(backup).map_err(refused)?;
    let put = |connection: &mut Connection| {
        let transaction = connection.transaction()?;
        transaction.execute_batch(
            "CREATE TABLE files (name TEXT PRIMARY KEY, content BLOB NOT NULL, sum INTEGER NOT NULL)",
        )?;
        for (name, content) in files {
            transaction.execute(
                "INSERT INTO files (name, content, sum) VALUES (?1, ?2, ?3)",
                rusqlite::params![name, content, file_sum(name, content)],
            )?;
        }
        transaction.commit()
    };
    put(&mut connection).map_err(refused)?;
    let contents = check(&mut connection, backup)?;
    drop(connection);
    sync(backup)?;
    Ok(contents)
}

/// Creates the database of a backup at the free path `database`, and returns once all data is on disk.
///
/// # Errors
/// When the file is damaged, of a newer format or not a backup, or when the database cannot be written.
pub fn restore(backup: &Path, database: &Path) -> Result<Contents, BackupError> {
    let mut from = std::fs::File::open(backup).map_err(failed("read", backup))?;
    format::make(database).map_err(failed("write", database))?;
    let mut to = std::fs::OpenOptions::new()
        .write(true)
        .open(database)
        .map_err(failed("write", database))?;
    io::copy(&mut from, &mut to).map_err(failed("write", database))?;
    drop(to);
    // Errors name the backup, since users do not know the copy.
    let refused = |source| format::refused(backup, source);
    let mut connection = Connection::open(database).map_err(refused)?;
    let contents = check(&mut connection, backup)?;
    connection
        .execute_batch("DROP TABLE IF EXISTS files")
        .map_err(refused)?;
    let next = continued(contents.revision, jiff::Timestamp::now());
    sqlite::continue_after(&mut connection, next).map_err(refused)?;
    drop(connection);
    sync(database)?;
    Ok(contents)
}

/// Revision after which a restored database continues. Far above the revision of the backup, as with
/// `etcdutl snapshot restore --bump-revision`, since the old server went on after the backup. Bumped by the clock in
/// microseconds, so that a second restore of the same backup is above all revisions of the first.
fn continued(revision: u64, now: jiff::Timestamp) -> u64 {
    let by_clock = u64::try_from(now.as_microsecond()).unwrap_or(0);
    by_clock.max(revision + BUMP)
}

/// Checks every row of a backup, and migrates older formats.
fn check(connection: &mut Connection, path: &Path) -> Result<Contents, OpenError> {
    format::check_structure(connection, path)?;
    if format::found(connection, path)? == 0 {
        let path = path.to_owned();
        return Err(OpenError::Foreign { path });
    }
    format::bring_up_to_date(connection, path)?;
    let state = format::load(connection, path, State::new(0))?;
    let files = files(connection).map_err(|source| format::refused(path, source))?;
    let files = files.map_err(|name| OpenError::Damaged {
        path: path.to_owned(),
        problem: format!("{name} does not match its sum"),
    })?;
    Ok(Contents {
        objects: state.objects,
        revision: state.revision,
        files,
    })
}

/// [`Files`] of a backup, or the name of a damaged one.
fn files(connection: &Connection) -> rusqlite::Result<Result<Files, String>> {
    let mut all = Files::new();
    if !connection.table_exists(None, "files")? {
        return Ok(Ok(all));
    }
    let mut rows = connection.prepare("SELECT name, content, sum FROM files")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (name, content): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if file_sum(&name, &content) != row.get::<_, i64>(2)? {
            return Ok(Err(name));
        }
        all.insert(name, content);
    }
    Ok(Ok(all))
}

fn file_sum(name: &str, content: &[u8]) -> i64 {
    format::sum(&[name.as_bytes(), &[0], content])
}

fn sync(path: &Path) -> Result<(), BackupError> {
    let synced = std::fs::File::open(path).and_then(|file| file.sync_all());
    synced.map_err(failed("write", path))
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BackupError {
    let path = path.to_owned();
    move |source| BackupError::Io {
        action,
        path,
        source,
    }
}

/// Answers a request for the database.
pub(crate) async fn answer(core: &Core) -> Result<Response<Body>, ApiError> {
    let file = match core.store.backup().await {
        Some(copied) => copied.map_err(ApiError::internal)?,
        None => {
            return Err(ApiError::bad_request(
                "this server keeps its objects in memory; there is nothing to back up",
            ));
        }
    };
    let length = file.metadata().map_err(ApiError::internal)?.len();
    let mut file = tokio::fs::File::from_std(file);
    let pieces = async_stream::stream! {
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            match file.read_buf(&mut piece).await {
                Ok(1..) => yield Bytes::from(piece),
                Ok(0) => return,
                // The client detects the error by the announced length.
                Err(error) => {
                    tracing::error!(%error, "a backup could not be read");
                    return;
                }
            }
        }
    };
    let mut response = Response::new(body::stream(pieces));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let sqlite = HeaderValue::from_static("application/vnd.sqlite3");
    headers.insert(header::CONTENT_TYPE, sqlite);
    Ok(response)
}
