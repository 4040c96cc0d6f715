//! The log in one SQLite file, owned by one thread.
//!
//! A row is one write, numbered by its revision; what it replaced is named by `prev`. Writes that wait
//! are committed together, and answered after the commit. Reads never come here: the file is read
//! once, when it is opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rusqlite::{Connection, ErrorCode, params};
use tokio::sync::oneshot;

use super::object::Object;
use super::state::{Place, State};
use super::{Shared, Write, WriteError};
use crate::kinds::Registry;
use crate::options::Synchronous;
use crate::server::OpenError;

/// The format that this release writes, in `PRAGMA user_version`.
const FORMAT: i64 = 1;
/// Writes committed together at most.
const BATCH: usize = 256;
/// Superseded rows are kept for this many revisions, so that watches resume after a restart.
const KEEP: u64 = 5_000;
/// Compaction runs after this many writes.
const COMPACT_EVERY: u64 = 1_000;

const SCHEMA: &str = "
    CREATE TABLE log (
        rev        INTEGER PRIMARY KEY,
        collection TEXT NOT NULL,
        key        TEXT NOT NULL,
        prev       INTEGER NOT NULL,
        deleted    INTEGER NOT NULL,
        value      BLOB NOT NULL
    );
    CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
    INSERT INTO meta VALUES ('compacted', 0);
";

type Answer = oneshot::Sender<Result<Arc<Object>, WriteError>>;

enum Message {
    Write(Box<Write>, Answer),
    Close(oneshot::Sender<()>),
}

/// The way to the thread that writes.
#[derive(Debug)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Message>,
    path: PathBuf,
}

impl Writer {
    pub(crate) fn send(&self, write: Write, answer: Answer) {
        // When the thread is gone the answer is dropped, which the asker understands.
        let _ = self.queue.send(Message::Write(Box::new(write), answer));
    }

    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        if self.queue.send(Message::Close(done)).is_ok() {
            let _ = closed.await;
        }
    }

    /// Bytes of the file and its log.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        let mut wal = self.path.clone().into_os_string();
        wal.push("-wal");
        size(&self.path) + size(Path::new(&wal))
    }
}

/// Opens or makes the file, reads it, and starts the thread that writes.
pub(crate) async fn open(
    path: PathBuf,
    synchronous: Synchronous,
    history: usize,
) -> Result<(Arc<Shared>, Writer), OpenError> {
    let (queue, requests) = mpsc::channel();
    let (ready, opened) = oneshot::channel();
    let file = path.clone();
    let thread = std::thread::Builder::new().name("apiserver-store".to_owned());
    let spawned = thread.spawn(move || match prepare(&file, synchronous, history) {
        Ok((connection, state)) => {
            let registry = ArcSwap::new(Registry::stored(&state));
            let shared = Arc::new(Shared {
                state: RwLock::new(state),
                registry,
            });
            if ready.send(Ok(Arc::clone(&shared))).is_ok() {
                Thread {
                    connection,
                    shared,
                    compacted_at: 0,
                }
                .run(&requests);
            }
        }
        Err(error) => {
            let _ = ready.send(Err(error));
        }
    });
    let problem = |problem: String| OpenError::Option {
        option: "store",
        problem,
    };
    spawned.map_err(|error| problem(error.to_string()))?;
    let shared = opened
        .await
        .map_err(|_| problem("the writer ended early".to_owned()))??;
    Ok((shared, Writer { queue, path }))
}

struct Thread {
    connection: Connection,
    shared: Arc<Shared>,
    compacted_at: u64,
}

impl Thread {
    fn run(mut self, requests: &mpsc::Receiver<Message>) {
        let mut closing = None;
        while closing.is_none() {
            let Ok(first) = requests.recv() else { break };
            let mut batch = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Write(write, answer) => batch.push((*write, answer)),
                    Message::Close(done) => {
                        closing = Some(done);
                        break;
                    }
                }
                next = if batch.len() < BATCH {
                    requests.try_recv().ok()
                } else {
                    None
                };
            }
            self.commit(batch);
            self.compact();
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::error!(%error, "the database could not be closed");
        }
        if let Some(done) = closing {
            let _ = done.send(());
        }
    }

    fn commit(&mut self, batch: Vec<(Write, Answer)>) {
        let mut accepted = Vec::with_capacity(batch.len());
        let mut refused = Vec::new();
        match self.insert(batch, &mut accepted, &mut refused) {
            Ok(()) => {
                let mut state = self.shared.state.write();
                for (publish, answer) in accepted {
                    if let Some(serve) = publish.serve {
                        self.shared.serve(serve);
                    }
                    state.publish(
                        &publish.place.collection,
                        Arc::clone(&publish.object),
                        publish.delete,
                    );
                    let _ = answer.send(Ok(publish.object));
                }
            }
            Err(error) => {
                tracing::error!(%error, "nothing could be written to the database");
                for (_, answer) in accepted {
                    let _ = answer.send(Err(WriteError::Failed(error.to_string())));
                }
            }
        }
        for answer in refused {
            let _ = answer.send(Err(WriteError::Conflict));
        }
    }

    /// Puts the writes that still fit into one transaction. A failure leaves the file as it was.
    fn insert(
        &mut self,
        batch: Vec<(Write, Answer)>,
        accepted: &mut Vec<(Publish, Answer)>,
        refused: &mut Vec<Answer>,
    ) -> rusqlite::Result<()> {
        let mut revision = self.shared.state.read().revision;
        let mut pending: HashMap<Place, u64> = HashMap::new();
        for (write, answer) in batch {
            let current = pending.get(&write.place).copied().unwrap_or_else(|| {
                let state = self.shared.state.read();
                state
                    .get(&write.place.collection, &write.place.key)
                    .map_or(0, |o| o.revision)
            });
            if current != write.expect {
                refused.push(answer);
                continue;
            }
            revision += 1;
            pending.insert(write.place.clone(), if write.delete { 0 } else { revision });
            let object = Arc::new(write.draft.at(revision, Arc::clone(&write.place.key)));
            let publish = Publish {
                place: write.place,
                object,
                previous: write.expect,
                delete: write.delete,
                serve: write.serve,
            };
            accepted.push((publish, answer));
        }
        if accepted.is_empty() {
            return Ok(());
        }
        let transaction = self.connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO log (rev, collection, key, prev, deleted, value) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?;
            for (publish, _) in &*accepted {
                insert.execute(params![
                    signed(publish.object.revision),
                    &*publish.place.collection,
                    &*publish.place.key,
                    signed(publish.previous),
                    publish.delete,
                    &*publish.object.bytes,
                ])?;
            }
        }
        transaction.commit()
    }

    /// Drops the rows that are superseded and too old to resume from.
    fn compact(&mut self) {
        let revision = self.shared.state.read().revision;
        if revision < self.compacted_at + COMPACT_EVERY || revision <= KEEP {
            return;
        }
        self.compacted_at = revision;
        if let Err(error) = compact(&mut self.connection, revision - KEEP) {
            tracing::warn!(%error, "the database could not be compacted");
        }
    }
}

struct Publish {
    place: Place,
    object: Arc<Object>,
    previous: u64,
    delete: bool,
    serve: Option<super::Serve>,
}

fn compact(connection: &mut Connection, through: u64) -> rusqlite::Result<()> {
    let through = signed(through);
    let transaction = connection.transaction()?;
    let from: i64 =
        transaction.query_row("SELECT value FROM meta WHERE name = 'compacted'", [], |r| {
            r.get(0)
        })?;
    transaction.execute(
        "DELETE FROM log WHERE rev IN (SELECT prev FROM log WHERE rev > ?1 AND rev <= ?2 AND prev > 0)",
        [from, through],
    )?;
    transaction.execute(
        "DELETE FROM log WHERE rev > ?1 AND rev <= ?2 AND deleted = 1",
        [from, through],
    )?;
    transaction.execute(
        "UPDATE meta SET value = ?1 WHERE name = 'compacted'",
        [through],
    )?;
    transaction.commit()
}

fn prepare(
    path: &Path,
    synchronous: Synchronous,
    history: usize,
) -> Result<(Connection, State), OpenError> {
    let failed = |source| refused(path, source);
    make(path).map_err(|error| {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CANTOPEN);
        failed(rusqlite::Error::SqliteFailure(
            code,
            Some(error.to_string()),
        ))
    })?;
    let connection = Connection::open(path).map_err(failed)?;
    configure(&connection, synchronous).map_err(failed)?;
    check_format(&connection, path)?;
    check_integrity(&connection, path)?;
    let state = load(&connection, history).map_err(failed)?;
    Ok((connection, state))
}

/// The file is made by us and not by SQLite so that nobody else can ever read it.
fn make(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
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
    // Takes the lock now and not at the first write.
    connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")
}

fn check_format(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let failed = |source| refused(path, source);
    let found: i64 = connection
        .query_row("PRAGMA user_version", [], |row| row.get(0))
        .map_err(failed)?;
    match found {
        FORMAT => Ok(()),
        0 => {
            let make = format!("BEGIN; {SCHEMA} PRAGMA user_version = {FORMAT}; COMMIT");
            connection.execute_batch(&make).map_err(failed)
        }
        found => Err(OpenError::Newer {
            path: path.to_owned(),
            found,
            known: FORMAT,
        }),
    }
}

fn check_integrity(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let problem: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(|source| refused(path, source))?;
    if problem == "ok" {
        return Ok(());
    }
    Err(OpenError::Damaged {
        path: path.to_owned(),
        problem,
    })
}

fn load(connection: &Connection, history: usize) -> rusqlite::Result<State> {
    let compacted: i64 =
        connection.query_row("SELECT value FROM meta WHERE name = 'compacted'", [], |r| {
            r.get(0)
        })?;
    let mut state = State::starting_at(history, 1, unsigned(compacted));
    let mut names: HashMap<String, Arc<str>> = HashMap::new();
    let mut rows =
        connection.prepare("SELECT rev, collection, key, deleted, value FROM log ORDER BY rev")?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let revision = unsigned(row.get(0)?);
        let name: String = row.get(1)?;
        let key: String = row.get(2)?;
        let Some(object) = Object::load(revision, key.into(), row.get(4)?) else {
            return Err(rusqlite::Error::InvalidColumnType(
                4,
                format!("value of revision {revision}"),
                rusqlite::types::Type::Blob,
            ));
        };
        let collection = names
            .entry(name)
            .or_insert_with_key(|name| name.as_str().into());
        state.publish(collection, Arc::new(object), row.get(3)?);
    }
    Ok(state)
}

fn refused(path: &Path, source: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    match source.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::InUse { path },
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => OpenError::Damaged {
            path,
            problem: source.to_string(),
        },
        _ => OpenError::Database { path, source },
    }
}

/// SQLite's integers are signed; revisions stay far below the limit.
fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}
