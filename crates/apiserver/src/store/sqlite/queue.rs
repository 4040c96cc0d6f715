//! Queue of a database. At most one thread works on a database, and none while nothing waits.

use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::super::object::Object;
use super::super::{Shared, Write, WriteError};
use super::{Database, beside, pool};

/// Maximum number of messages in one batch.
const BATCH: usize = 256;
/// Time without a message after which a database is at rest.
const AT_REST: Duration = Duration::from_secs(5);

pub(super) type Read = Box<dyn FnOnce(Result<&Connection, String>, &Shared) + Send>;
pub(super) type Answer = oneshot::Sender<Result<Arc<Object>, WriteError>>;

pub(super) enum Message {
    Write(Box<Write>, Answer),
    Read(Read),
    Backup(oneshot::Sender<Result<File, String>>),
    /// Answered once the file is closed. No message follows.
    Close(oneshot::Sender<()>),
}

/// Sender to a database.
pub(crate) struct Writer {
    queue: Arc<Queue>,
    path: PathBuf,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut text = f.debug_struct("Writer");
        text.field("path", &self.path).finish_non_exhaustive()
    }
}

struct Queue {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    messages: VecDeque<Message>,
    /// Number of messages so far.
    sent: u64,
    /// [`Database`], while no thread works on it.
    database: Option<Box<Database>>,
    /// True if a delayed check of the database is scheduled, to let an idle one rest.
    watched: bool,
    /// True if the database is closed for good: messages are dropped, and senders treat the drop as an error.
    closed: bool,
}

impl Writer {
    pub(super) fn new(path: PathBuf, database: Database) -> Self {
        let queue = Arc::new(Queue {
            state: Mutex::new(State {
                database: Some(Box::new(database)),
                ..State::default()
            }),
        });
        queue.watch(&mut queue.state.lock());
        Self { queue, path }
    }

    pub(crate) fn send(&self, write: Write, answer: Answer) {
        self.queue.send(Message::Write(Box::new(write), answer));
    }

    /// Result of `read`, called between writes, after all earlier writes. `read` gets the file, or the reason why it
    /// cannot be opened. `None` if the database is closed.
    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(Result<&Connection, String>, &Shared) -> T + Send + 'static,
    ) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        let read: Read = Box::new(move |connection, shared| {
            let _ = answer.send(read(connection, shared));
        });
        self.queue.send(Message::Read(read));
        answered.await.ok()
    }

    /// Copy of the [`File`] after all earlier writes, open and already without a name.
    pub(crate) async fn backup(&self) -> Result<File, String> {
        let (answer, answered) = oneshot::channel();
        self.queue.send(Message::Backup(answer));
        let closed = |_| Err("the store is closed".to_owned());
        answered.await.unwrap_or_else(closed)
    }

    /// Closes the database after all earlier writes.
    pub(crate) async fn close(&self) {
        let (done, closed) = oneshot::channel();
        self.queue.send(Message::Close(done));
        // Dropped unanswered if it is closed already.
        let _ = closed.await;
    }

    /// Bytes of the file and its log.
    pub(crate) fn bytes(&self) -> u64 {
        let size = |path: &Path| std::fs::metadata(path).map_or(0, |found| found.len());
        size(&self.path) + size(&beside(&self.path, "-wal"))
    }

    /// Lets the database rest at once.
    #[cfg(test)]
    pub(crate) async fn rest(&self) {
        // The current worker puts the database back soon after the last answer.
        loop {
            let database = self.queue.state.lock().database.take();
            if let Some(mut database) = database {
                database.rest();
                self.queue.work(database, true);
                return;
            }
            tokio::task::yield_now().await;
        }
    }
}

impl Queue {
    fn send(self: &Arc<Self>, message: Message) {
        let mut state = self.state.lock();
        if state.closed {
            return;
        }
        state.messages.push_back(message);
        state.sent += 1;
        let database = state.database.take();
        drop(state);
        if let Some(database) = database {
            self.start(database);
        }
    }

    fn start(self: &Arc<Self>, database: Box<Database>) {
        let working = Working(Arc::clone(self));
        pool::run(move || working.0.work(database, false));
    }

    /// Handles messages until none waits. `rested`: true if nothing has happened since the [`Database`] was put to rest.
    fn work(self: &Arc<Self>, mut database: Box<Database>, mut rested: bool) {
        loop {
            let mut state = self.state.lock();
            if state.messages.is_empty() {
                state.messages.shrink_to_fit();
                state.database = Some(database);
                if !rested {
                    self.watch(&mut state);
                }
                return;
            }
            let count = state.messages.len().min(BATCH);
            let messages: Vec<_> = state.messages.drain(..count).collect();
            drop(state);
            rested = false;
            if let Some(done) = handle(&mut database, messages) {
                database.close();
                let mut state = self.state.lock();
                state.closed = true;
                state.messages.clear();
                drop(state);
                let _ = done.send(());
                return;
            }
        }
    }

    /// Schedules a check for messages after a while.
    fn watch(self: &Arc<Self>, state: &mut MutexGuard<'_, State>) {
        if std::mem::replace(&mut state.watched, true) {
            return;
        }
        let (queue, sent) = (Arc::downgrade(self), state.sent);
        pool::run_after(AT_REST, move || {
            if let Some(queue) = queue.upgrade() {
                queue.rest_if_idle(sent);
            }
        });
    }

    /// Puts the database to rest, if no message came after the first `sent`.
    fn rest_if_idle(self: &Arc<Self>, sent: u64) {
        let mut state = self.state.lock();
        state.watched = false;
        // The current worker takes care of it afterwards.
        let Some(mut database) = state.database.take() else {
            return;
        };
        if state.sent != sent {
            state.database = Some(database);
            self.watch(&mut state);
            return;
        }
        drop(state);
        let working = Working(Arc::clone(self));
        database.rest();
        working.0.work(database, true);
    }
}

/// Handles messages up to the one that closes the [`Database`]; returns the sender of the closing message.
fn handle(database: &mut Database, mut messages: Vec<Message>) -> Option<oneshot::Sender<()>> {
    let is_close = |message: &Message| matches!(message, Message::Close(_));
    let close = messages.iter().position(is_close);
    let close = close.and_then(|at| messages.drain(at..).next());
    database.handle(messages);
    match close? {
        Message::Close(done) => Some(done),
        Message::Write(..) | Message::Read(_) | Message::Backup(_) => None,
    }
}

/// Guard of the work on the database of a [`Queue`]. After a panic, the database is gone.
struct Working(Arc<Queue>);

impl Drop for Working {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut state = self.0.state.lock();
            state.closed = true;
            state.messages.clear();
        }
    }
}
