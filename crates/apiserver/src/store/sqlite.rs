//! Log in one SQLite file.
//!
//! A row is one write, numbered by its revision; `prev` is the replaced revision. Waiting writes are committed
//! together, and answered after the commit. The file is read when opened, and then only for past events that are not
//! in memory. A database at rest has no thread, and no open file if so configured: a process can have a thousand
//! databases, most of them at rest.
//!
//! ```text
//!   queue    waiting messages of a database, and its current worker
//!   pool     the threads of all databases
//! ```

mod compaction;
pub(crate) mod format;
pub(crate) mod past;
mod pool;
mod queue;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};

use apimachinery::crd;
use apimachinery::kinds::{CRD_COLLECTION, Registry};
use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rusqlite::{Connection, ErrorCode, params};
use tokio::sync::oneshot;

use self::format::Row;
use self::queue::{Answer, Message};
use super::object::Object;
use super::packing;
use super::state::{Cold, ObjectKey, State};
use super::{Shared, Write, WriteError};
use crate::options::Synchronous;
use crate::store::OpenError;

pub(crate) use compaction::{Retention, continue_after};
pub(crate) use queue::Writer;

/// Use of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Usage {
    pub(crate) synchronous: Synchronous,
    /// True if the file is closed while there is nothing to do. The lock goes with the connection.
    pub(crate) closed_at_rest: bool,
    pub(crate) retention: Retention,
}

/// Built-in kinds and those of the stored CustomResourceDefinitions.
fn registry(state: &State) -> Registry {
    let mut registry = Registry::built_in();
    for object in state.range(CRD_COLLECTION, "", None) {
        let definition = object.value();
        if !crd::names::is_served(&definition, &[]) {
            continue;
        }
        match crd::compile(&definition) {
            Ok(resource) => registry = registry.with(Arc::new(resource)),
            Err(errors) => {
                tracing::error!(
                    crd = object.name(),
                    ?errors,
                    "a stored definition cannot be served"
                );
            }
        }
    }
    registry
}

/// Opens or creates the file, and reads the rows into `state`.
pub(crate) async fn open(
    path: PathBuf,
    usage: Usage,
    state: State,
) -> Result<(Arc<Shared>, Writer), OpenError> {
    let (ready, opened) = oneshot::channel();
    let file = path.clone();
    pool::run(move || {
        let database = format::prepare(&file, usage.synchronous, state);
        let database = database.map(|(connection, state)| {
            let registry = ArcSwap::new(Arc::new(registry(&state)));
            let shared = Arc::new(Shared {
                state: RwLock::new(state),
                problem: RwLock::default(),
                registry,
            });
            Database {
                path: file,
                connection: Some(connection),
                packer: None,
                shared,
                usage,
                compacted_at: 0,
            }
        });
        // The receiver may be gone; the file is closed then.
        let _ = ready.send(database);
    });
    let database = opened.await.map_err(|_| OpenError::Option {
        option: "store",
        problem: "opening it ended early".to_owned(),
    })??;
    let shared = Arc::clone(&database.shared);
    Ok((shared, Writer::new(path, database)))
}

/// File, in the hands of its current worker.
struct Database {
    path: PathBuf,
    /// `None` at rest, if [`Usage`] closes the file then.
    connection: Option<Connection>,
    shared: Arc<Shared>,
    /// Receiver of objects to pack. The thread starts with the first object: most servers are small.
    packer: Option<mpsc::Sender<Vec<Cold>>>,
    usage: Usage,
    compacted_at: u64,
}

impl Database {
    /// Handles messages of one batch: first all writes, then reads, then backups.
    fn handle(&mut self, messages: Vec<Message>) {
        let mut batch = Vec::new();
        let mut reads = Vec::new();
        let mut copies = Vec::new();
        for message in messages {
            match message {
                Message::Write(write, answer) => batch.push((*write, answer)),
                Message::Read(read) => reads.push(read),
                Message::Backup(answer) => copies.push(answer),
                // The last message; its sender is answered once the file is closed.
                Message::Close(_) => {}
            }
        }
        if !batch.is_empty() {
            self.commit(batch);
            self.compact();
        }
        for read in reads {
            let shared = Arc::clone(&self.shared);
            match self.connection() {
                Ok(connection) => read(Ok(connection), &shared),
                Err(error) => read(Err(self.words(&error)), &shared),
            }
        }
        for answer in copies {
            let _ = answer.send(self.backup().map_err(|error| self.words(&error)));
        }
    }

    /// The open file.
    fn connection(&mut self) -> rusqlite::Result<&mut Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => format::reopen(&self.path, self.usage.synchronous)?,
        };
        Ok(self.connection.insert(connection))
    }

    /// Frees memory that the next write or read fills again: of the past, and of SQLite.
    fn rest(&mut self) {
        let cold = {
            let mut state = self.shared.state.write();
            state.forget_recent();
            state.take_cold()
        };
        self.pack(cold);
        if self.usage.closed_at_rest {
            return self.close();
        }
        let Some(connection) = &self.connection else {
            return;
        };
        connection.flush_prepared_statement_cache();
        if let Err(error) = connection.execute_batch("PRAGMA shrink_memory") {
            tracing::debug!(%error, "the memory of the database could not be freed");
        }
    }

    fn close(&mut self) {
        let closed = self.connection.take().map(Connection::close);
        if let Some(Err((_, error))) = closed {
            tracing::error!(%error, "the database could not be closed");
        }
    }

    /// Packs `cold`. Without a thread nothing is packed, and the next call tries again.
    fn pack(&mut self, cold: Vec<Cold>) {
        if cold.is_empty() {
            return;
        }
        if self.packer.is_none() {
            self.packer = packing::start(&self.shared);
        }
        if let Some(packer) = &self.packer {
            let _ = packer.send(cold);
        }
    }

    fn commit(&mut self, batch: Vec<(Write, Answer)>) {
        let mut accepted = Vec::with_capacity(batch.len());
        let mut rejected = Vec::new();
        match self.insert(batch, &mut accepted, &mut rejected) {
            Ok(()) => {
                if !accepted.is_empty() {
                    self.report(None);
                }
                let mut answers = Vec::with_capacity(accepted.len());
                let mut state = self.shared.state.write();
                for (publish, answer) in accepted {
                    if let Some(serve) = publish.serve {
                        let revision = publish.object.revision;
                        self.shared.serve(serve, &mut state, revision);
                    }
                    state.publish(
                        &publish.place.collection,
                        Arc::clone(&publish.object),
                        publish.delete,
                    );
                    answers.push((answer, publish.object));
                }
                let cold = state.take_cold();
                let touched = state.take_touched();
                drop(state);
                for (answer, object) in answers {
                    let _ = answer.send(Ok(object));
                }
                touched.notify();
                self.pack(cold);
            }
            Err(error) => {
                let words = self.words(&error);
                tracing::error!(%error, "{words}");
                self.report(Some(&words));
                for (_, answer) in accepted {
                    let _ = answer.send(Err(WriteError::Failed(words.clone())));
                }
            }
        }
        for (answer, why) in rejected {
            let _ = answer.send(Err(why));
        }
    }

    /// Records the reason for failing writes, or their success.
    fn report(&self, problem: Option<&str>) {
        let known = self.shared.problem.read().as_deref() == problem;
        if !known {
            *self.shared.problem.write() = problem.map(str::to_owned);
        }
    }

    /// Puts the accepted [`Write`]s into one transaction. A failure leaves the file unchanged.
    fn insert(
        &mut self,
        batch: Vec<(Write, Answer)>,
        accepted: &mut Vec<(Publish, Answer)>,
        rejected: &mut Vec<(Answer, WriteError)>,
    ) -> rusqlite::Result<()> {
        let mut revision = self.shared.state.read().revision;
        let mut pending: HashMap<ObjectKey, Pending> = HashMap::new();
        for (write, answer) in batch {
            if let Err(why) = self.check(&write, &pending) {
                rejected.push((answer, why));
                continue;
            }
            revision += 1;
            let after = Pending {
                revision: if write.delete { 0 } else { revision },
                open: !write.delete && !write.draft.is_deleting(),
            };
            pending.insert(write.place.clone(), after);
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
        let connection = self.connection()?;
        // A failing disk may have failed the end of the last transaction, too.
        if !connection.is_autocommit() {
            connection.execute_batch("ROLLBACK")?;
        }
        let transaction = connection.transaction()?;
        {
            let mut insert = transaction.prepare_cached(
                "INSERT INTO log (rev, collection, key, prev, deleted, value, sum) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            )?;
            for (publish, _) in &*accepted {
                let json = publish.object.json();
                let row = Row {
                    revision: signed(publish.object.revision),
                    collection: &publish.place.collection,
                    key: &publish.place.key,
                    previous: signed(publish.previous),
                    deleted: publish.delete.into(),
                    value: &json,
                };
                insert.execute(params![
                    row.revision,
                    row.collection,
                    row.key,
                    row.previous,
                    row.deleted,
                    row.value,
                    row.sum(),
                ])?;
            }
        }
        transaction.commit()
    }

    /// Checks a [`Write`] against the stored state and the earlier writes of the batch.
    fn check(
        &self,
        write: &Write,
        pending: &HashMap<ObjectKey, Pending>,
    ) -> Result<(), WriteError> {
        let state = self.shared.state.read();
        let stored = || state.get(&write.place.collection, &write.place.key);
        let current = match pending.get(&write.place) {
            Some(pending) => pending.revision,
            None => stored().map_or(0, |object| object.revision),
        };
        if current != write.expect {
            return Err(WriteError::Conflict);
        }
        let is_open = |place: &ObjectKey| match pending.get(place) {
            Some(pending) => pending.open,
            None => state.is_open(place),
        };
        match write.containers().find(|place| !is_open(place)) {
            Some(closed) => Err(WriteError::Closed(closed)),
            None => Ok(()),
        }
    }

    /// Drops rows that are superseded and too old for watches to resume.
    fn compact(&mut self) {
        let revision = self.shared.state.read().revision;
        let Retention { keep, every } = self.usage.retention;
        if revision < self.compacted_at + every || revision <= keep {
            return;
        }
        self.compacted_at = revision;
        let through = revision - keep;
        let shared = Arc::clone(&self.shared);
        let compacted = self
            .connection()
            .and_then(|connection| compaction::compact(connection, &shared, through));
        if let Err(error) = compacted {
            tracing::warn!(%error, "the database could not be compacted");
        }
    }

    /// Compact copy. Unlinked before use, so that no copy is left behind.
    fn backup(&mut self) -> rusqlite::Result<File> {
        let copy = beside(&self.path, ".backup");
        let io = |error: std::io::Error| {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
            rusqlite::Error::SqliteFailure(code, Some(format!("{}: {error}", copy.display())))
        };
        // The copy of a previous process that was killed.
        let _ = std::fs::remove_file(&copy);
        format::make(&copy).map_err(io)?;
        let copied = self
            .connection()?
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()]);
        let file = copied.and_then(|_| File::open(&copy).map_err(io));
        let _ = std::fs::remove_file(&copy);
        file
    }

    /// Message for a disk error, which the client of the write receives.
    fn words(&self, error: &rusqlite::Error) -> String {
        let path = self.path.display();
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => format!(
                "there is no room for {path} ({error}); reads go on, and writes succeed again once there is room"
            ),
            _ => format!("{path} cannot be written ({error}); reads go on"),
        }
    }
}

/// State of a place after an uncommitted write.
struct Pending {
    /// 0 when the object is gone.
    revision: u64,
    /// True if the object exists and is not being deleted.
    open: bool,
}

struct Publish {
    place: ObjectKey,
    object: Arc<Object>,
    previous: u64,
    delete: bool,
    serve: Option<super::Serve>,
}

/// SQLite's integers are signed; revisions stay far below the limit.
fn signed(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(i64::MAX)
}

fn unsigned(revision: i64) -> u64 {
    u64::try_from(revision).unwrap_or(0)
}

/// Path of a file with `suffix` after its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
