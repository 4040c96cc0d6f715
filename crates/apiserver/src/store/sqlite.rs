//! The log in one SQLite file, owned by one thread.
//!
//! A row is one write, numbered by its revision; what it replaced is named by `prev`. Writes that wait
//! are committed together, and answered after the commit. The file is read when it is opened, and then
//! for past events alone, which memory does not hold.

mod compaction;
pub(crate) mod format;
pub(crate) mod past;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::RwLock;
use rusqlite::{Connection, ErrorCode, params};
use tokio::sync::oneshot;

use self::format::Row;
use super::object::Object;
use super::packing;
use super::state::{Cold, Place, State};
use super::{Shared, Write, WriteError};
use crate::kinds::Registry;
use crate::options::Synchronous;
use crate::server::OpenError;

pub(crate) use compaction::{Retention, continue_after};

/// Writes committed together at most.
const BATCH: usize = 256;
/// A database that has had no message for this long is at rest.
const AT_REST: Duration = Duration::from_secs(5);

type Read = Box<dyn FnOnce(&Connection, &Shared) + Send>;
type Answer = oneshot::Sender<Result<Arc<Object>, WriteError>>;

enum Message {
    Write(Box<Write>, Answer),
    Read(Read),
    Backup(oneshot::Sender<Result<File, String>>),
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
        // If the thread has ended, the answer is dropped, which the receiver treats as an error.
        let _ = self.queue.send(Message::Write(Box::new(write), answer));
    }

    /// What `read` returns when the thread calls it, after what was asked to be written before. `None` if the thread has
    /// ended.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, &Shared) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let read: Read = Box::new(move |connection, shared| {
            let _ = answer.send(read(connection, shared));
        });
        let _ = self.queue.send(Message::Read(read));
        answered.await.ok()
    }

    /// A copy of the file as it is after what was asked to be written before, open and already without a name.
    pub(crate) async fn backup(&self) -> Result<File, String> {
        let (answer, answered) = oneshot::channel();
        let _ = self.queue.send(Message::Backup(answer));
        let closed = |_| Err("the store is closed".to_owned());
        answered.await.unwrap_or_else(closed)
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
        size(&self.path) + size(&beside(&self.path, "-wal"))
    }
}

/// Opens or creates the file, reads it into `state`, and starts the thread that writes.
pub(crate) async fn open(
    path: PathBuf,
    synchronous: Synchronous,
    state: State,
    retention: Retention,
) -> Result<(Arc<Shared>, Writer), OpenError> {
    let (queue, requests) = mpsc::channel();
    let (ready, opened) = oneshot::channel();
    let file = path.clone();
    let thread = std::thread::Builder::new().name("apiserver-store".to_owned());
    let spawned = thread.spawn(move || match format::prepare(&file, synchronous, state) {
        Ok((connection, state)) => {
            let registry = ArcSwap::new(Registry::stored(&state));
            let shared = Arc::new(Shared {
                state: RwLock::new(state),
                registry,
            });
            if ready.send(Ok(Arc::clone(&shared))).is_ok() {
                Thread {
                    path: file,
                    connection,
                    packer: None,
                    shared,
                    retention,
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
    path: PathBuf,
    connection: Connection,
    shared: Arc<Shared>,
    /// Receives objects to be packed. Its thread starts with the first of them: most servers are small.
    packer: Option<mpsc::Sender<Vec<Cold>>>,
    retention: Retention,
    compacted_at: u64,
}

impl Thread {
    fn run(mut self, requests: &mpsc::Receiver<Message>) {
        let mut closing = None;
        while closing.is_none() {
            let Some(first) = self.next(requests) else {
                break;
            };
            let mut batch = Vec::new();
            let mut reads = Vec::new();
            let mut copies = Vec::new();
            let mut next = Some(first);
            while let Some(message) = next {
                match message {
                    Message::Write(write, answer) => batch.push((*write, answer)),
                    Message::Read(read) => reads.push(read),
                    Message::Backup(answer) => {
                        copies.push(answer);
                        break;
                    }
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
            if !batch.is_empty() {
                self.commit(batch);
                self.compact();
            }
            for read in reads {
                read(&self.connection, &self.shared);
            }
            for answer in copies {
                let _ = answer.send(self.backup().map_err(|error| self.words(&error)));
            }
        }
        if let Err((_, error)) = self.connection.close() {
            tracing::error!(%error, "the database could not be closed");
        }
        if let Some(done) = closing {
            let _ = done.send(());
        }
    }

    /// The next message; `None` if there can be none. When none comes for a while, the memory of the past and of SQLite is
    /// freed: a process can have many databases, most of them at rest.
    fn next(&mut self, requests: &mpsc::Receiver<Message>) -> Option<Message> {
        match requests.recv_timeout(AT_REST) {
            Ok(message) => return Some(message),
            Err(mpsc::RecvTimeoutError::Disconnected) => return None,
            Err(mpsc::RecvTimeoutError::Timeout) => {}
        }
        let cold = {
            let mut state = self.shared.state.write();
            state.forget_recent();
            state.take_cold()
        };
        self.pack(cold);
        self.connection.flush_prepared_statement_cache();
        if let Err(error) = self.connection.execute_batch("PRAGMA shrink_memory") {
            tracing::debug!(%error, "the memory of the database could not be freed");
        }
        requests.recv().ok()
    }

    /// Has `cold` packed. Without a thread for it nothing is, and the next call tries again.
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
                let mut answers = Vec::with_capacity(accepted.len());
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
                for (_, answer) in accepted {
                    let _ = answer.send(Err(WriteError::Failed(words.clone())));
                }
            }
        }
        for (answer, why) in rejected {
            let _ = answer.send(Err(why));
        }
    }

    /// Puts the writes that still fit into one transaction. A failure leaves the file as it was.
    fn insert(
        &mut self,
        batch: Vec<(Write, Answer)>,
        accepted: &mut Vec<(Publish, Answer)>,
        rejected: &mut Vec<(Answer, WriteError)>,
    ) -> rusqlite::Result<()> {
        let mut revision = self.shared.state.read().revision;
        let mut pending: HashMap<Place, Pending> = HashMap::new();
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
        // A failing disk may have failed the end of the last transaction, too.
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        let transaction = self.connection.transaction()?;
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

    /// Checks a write against the stored state and the earlier writes of the batch.
    fn check(&self, write: &Write, pending: &HashMap<Place, Pending>) -> Result<(), WriteError> {
        let state = self.shared.state.read();
        let stored = || state.get(&write.place.collection, &write.place.key);
        let current = match pending.get(&write.place) {
            Some(pending) => pending.revision,
            None => stored().map_or(0, |object| object.revision),
        };
        if current != write.expect {
            return Err(WriteError::Conflict);
        }
        let is_open = |place: &Place| match pending.get(place) {
            Some(pending) => pending.open,
            None => state.is_open(place),
        };
        match write.containers().find(|place| !is_open(place)) {
            Some(closed) => Err(WriteError::Closed(closed)),
            None => Ok(()),
        }
    }

    /// Drops the rows that are superseded and too old to resume from.
    fn compact(&mut self) {
        let revision = self.shared.state.read().revision;
        let Retention { keep, every } = self.retention;
        if revision < self.compacted_at + every || revision <= keep {
            return;
        }
        self.compacted_at = revision;
        let through = revision - keep;
        if let Err(error) = compaction::compact(&mut self.connection, &self.shared, through) {
            tracing::warn!(%error, "the database could not be compacted");
        }
    }

    /// A compact copy. It is unlinked before it is used, so that none is left behind.
    fn backup(&self) -> rusqlite::Result<File> {
        let copy = beside(&self.path, ".backup");
        let io = |error: std::io::Error| {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR);
            rusqlite::Error::SqliteFailure(code, Some(format!("{}: {error}", copy.display())))
        };
        // The copy of a previous process that was killed.
        let _ = std::fs::remove_file(&copy);
        format::make(&copy).map_err(io)?;
        let copied = self
            .connection
            .execute("VACUUM INTO ?1", [copy.to_string_lossy()]);
        let file = copied.and_then(|_| File::open(&copy).map_err(io));
        let _ = std::fs::remove_file(&copy);
        file
    }

    /// The message for a disk error, which the client of the write receives.
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

/// The state of a place after a write that is not committed yet.
struct Pending {
    /// 0 when the object is gone.
    revision: u64,
    /// Whether the object is there and not being deleted.
    open: bool,
}

struct Publish {
    place: Place,
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

/// The path of a file with `suffix` after its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
