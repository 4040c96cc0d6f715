//! Objects and their history behind one interface: in memory, or in SQLite with the current state and the latest
//! events in memory.
//!
//! As in etcd, one counter numbers all writes and never goes back. A write names the revision to replace, and is
//! rejected unless that revision is the current one. A write is acknowledged, and visible to clients, only once
//! durable.

pub(crate) mod gate;
mod log;
mod object;
mod open_error;
mod packing;
mod schema_change;
pub(crate) mod sqlite;
mod state;

use std::sync::{Arc, OnceLock};

use apimachinery::kinds::{CRD_COLLECTION, Registry, Resource};
use arc_swap::ArcSwap;
use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use rusqlite::Connection;
use serde_json::Value;
use tokio::sync::oneshot;

pub(crate) use gate::Unstorable;
pub(crate) use log::At;
pub(crate) use object::{Change, Draft, Event, Object, frame, json_at};
pub use open_error::OpenError;
pub(crate) use sqlite::past::Unread;
pub(crate) use state::{Notice, ObjectKey, State};

use crate::options::{self, Options};
use packing::PACK_ABOVE;
use sqlite::Usage;
use sqlite::past;

pub(crate) const NAMESPACES: &str = "/namespaces";

/// One write.
#[derive(Debug)]
pub(crate) struct Write {
    pub(crate) place: ObjectKey,
    /// Revision to replace; 0 if there must be no object.
    pub(crate) expect: u64,
    /// New object, or the last state of a deleted one.
    pub(crate) draft: Draft,
    pub(crate) delete: bool,
    /// For a CustomResourceDefinition: the resource served from the moment of the write.
    pub(crate) serve: Option<Serve>,
}

impl Write {
    /// New object as the server itself creates it.
    pub(crate) fn create(collection: &str, key: &str, object: &Value) -> Result<Self, WriteError> {
        Ok(Self {
            place: ObjectKey {
                collection: collection.into(),
                key: key.into(),
            },
            expect: 0,
            draft: gate::pass(object, None)?,
            delete: false,
            serve: None,
        })
    }

    /// Containers that must exist, and must not be about to be deleted, for a new object to be stored: the namespace
    /// and the definition. Both are emptied before they go, so nothing may be added during the deletion.
    fn containers(&self) -> impl Iterator<Item = ObjectKey> {
        let place = (self.expect == 0).then_some(&self.place);
        let namespace = place.and_then(|place| place.key.split_once('/'));
        let namespace = namespace.map(|(namespace, _)| ObjectKey {
            collection: NAMESPACES.into(),
            key: namespace.into(),
        });
        let kind = place.and_then(|place| place.collection.split_once('/'));
        let kind = kind.filter(|(group, plural)| !Registry::has_built_in(group, plural));
        let definition = kind.map(|(group, plural)| ObjectKey {
            collection: CRD_COLLECTION.into(),
            key: format!("{plural}.{group}").into(),
        });
        namespace.into_iter().chain(definition)
    }
}

/// Change of the served resources.
#[derive(Clone, Debug)]
pub(crate) enum Serve {
    Set(Arc<Resource>),
    Remove { group: String, plural: String },
}

/// Reason for the failure of a write.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WriteError {
    /// The current revision is not the expected one.
    #[error("the object was changed by another request")]
    Conflict,
    /// The namespace or the definition of a new object is being deleted, or gone.
    #[error("{} {} is being deleted", .0.collection.trim_start_matches('/'), .0.key)]
    Closed(ObjectKey),
    /// The object may not be stored.
    #[error(transparent)]
    Unstorable(#[from] Unstorable),
    /// The [`options::Backend`] takes no writes now.
    #[error("{0}")]
    Refused(String),
    /// Error of the disk, in SQLite's words.
    #[error("{0}")]
    Failed(String),
}

/// State shared between requests and the writer.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) state: RwLock<State>,
    /// Reason for the failure of the latest write, in the words of the answer; `None` after a success.
    pub(crate) problem: RwLock<Option<String>>,
    pub(crate) registry: ArcSwap<Registry>,
}

/// Backend with a veto before every write.
struct Guard(Arc<dyn options::Backend>);

impl std::fmt::Debug for Guard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Guard")
    }
}

/// Store of one server.
#[derive(Debug)]
pub(crate) struct Store {
    guard: OnceLock<Guard>,
    shared: Arc<Shared>,
    writer: Option<sqlite::Writer>,
    /// Locked during the conversion of objects to a changed schema.
    applying_schema: tokio::sync::Mutex<()>,
}

impl Store {
    /// Opens the store; reads all current objects into memory.
    pub(crate) async fn open(options: &Options) -> Result<Self, OpenError> {
        let state = State::new(options.history);
        match &options.store {
            options::Store::Memory => {
                let registry = ArcSwap::from_pointee(Registry::built_in());
                let state = RwLock::new(state);
                let problem = RwLock::default();
                let shared = Shared {
                    state,
                    problem,
                    registry,
                };
                Ok(Self::new(Arc::new(shared), None))
            }
            options::Store::Sqlite { path, synchronous } => {
                let state = state.packing_above(PACK_ABOVE).with_file(options.recent);
                let usage = Usage {
                    synchronous: *synchronous,
                    closed_at_rest: options.closed_at_rest,
                    ..Usage::default()
                };
                let (shared, writer) = sqlite::open(path.clone(), usage, state).await?;
                let store = Self::new(shared, Some(writer));
                store.apply_schemas().await;
                Ok(store)
            }
        }
    }

    fn new(shared: Arc<Shared>, writer: Option<sqlite::Writer>) -> Self {
        Self {
            guard: OnceLock::new(),
            shared,
            writer,
            applying_schema: tokio::sync::Mutex::default(),
        }
    }

    /// Sets the `backend` that is asked before every write.
    pub(crate) fn guard(&self, backend: Arc<dyn options::Backend>) {
        // A server has one, and opens once.
        let _ = self.guard.set(Guard(backend));
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        self.shared.state.read()
    }

    /// For subscriptions only: writes go through [`write`](Self::write).
    pub(crate) fn subscribe(&self) -> RwLockWriteGuard<'_, State> {
        self.shared.state.write()
    }

    pub(crate) fn registry(&self) -> arc_swap::Guard<Arc<Registry>> {
        self.shared.registry.load()
    }

    pub(crate) fn get(&self, collection: &str, key: &str) -> Option<Arc<Object>> {
        self.read().get(collection, key).cloned()
    }

    /// At most `limit` [`Event`]s of a collection after `revision`, and the revision of the store at the same moment: if
    /// there are fewer events, no event lies between the last one and the revision.
    pub(crate) async fn events(
        &self,
        collection: &Arc<str>,
        revision: u64,
        limit: usize,
    ) -> Result<(Vec<Arc<Event>>, u64), Unread> {
        {
            let state = self.read();
            if let Some(events) = state.events(collection, revision, limit)? {
                return Ok((events, state.revision));
            }
        }
        let collection = Arc::clone(collection);
        self.read_file(move |file, shared| past::events(file, shared, &collection, revision, limit))
            .await
    }

    /// [`Object`]s in their state at an old revision.
    pub(crate) async fn range_at(&self, at: At) -> Result<Vec<Arc<Object>>, Unread> {
        if let Some(objects) = self.read().range_at(&at)? {
            return Ok(objects);
        }
        self.read_file(move |file, shared| past::range_at(file, shared, &at))
            .await
    }

    async fn read_file<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Connection, &Shared) -> Result<T, Unread> + Send + 'static,
    ) -> Result<T, Unread> {
        let read = move |file: Result<&Connection, String>, shared: &Shared| match file {
            Ok(file) => read(file, shared),
            Err(problem) => Err(Unread::Failed(problem)),
        };
        let read = match &self.writer {
            Some(writer) => writer.read(read).await,
            None => None,
        };
        read.unwrap_or_else(|| Err(Unread::Failed("the store is closed".to_owned())))
    }

    /// Writes, and returns once the write is durable and visible.
    pub(crate) async fn write(&self, write: Write) -> Result<Arc<Object>, WriteError> {
        if let Some(Guard(backend)) = self.guard.get() {
            backend.takes_writes().map_err(WriteError::Refused)?;
        }
        let Some(writer) = &self.writer else {
            return self.write_now(write);
        };
        let (answer, answered) = oneshot::channel();
        writer.send(write, answer);
        answered
            .await
            .unwrap_or_else(|_| Err(WriteError::Failed("the store is closed".to_owned())))
    }

    /// Reason why the disk takes no writes.
    pub(crate) fn problem(&self) -> Option<String> {
        self.shared.problem.read().clone()
    }

    /// Bytes on disk.
    pub(crate) fn database_bytes(&self) -> u64 {
        self.writer.as_ref().map_or(0, sqlite::Writer::bytes)
    }

    /// Copy of the database, complete in itself, as an open file without a name. `None` in memory.
    pub(crate) async fn backup(&self) -> Option<Result<std::fs::File, String>> {
        match &self.writer {
            Some(writer) => Some(writer.backup().await),
            None => None,
        }
    }

    /// Waits until all requested writes are on disk, and closes the file.
    pub(crate) async fn close(&self) {
        if let Some(writer) = &self.writer {
            writer.close().await;
        }
    }

    fn write_now(&self, write: Write) -> Result<Arc<Object>, WriteError> {
        let mut state = self.shared.state.write();
        let current = state.get(&write.place.collection, &write.place.key);
        if current.map_or(0, |object| object.revision) != write.expect {
            return Err(WriteError::Conflict);
        }
        if let Some(closed) = write.containers().find(|place| !state.is_open(place)) {
            return Err(WriteError::Closed(closed));
        }
        let object = Arc::new(write.draft.at(state.revision + 1, write.place.key));
        if let Some(serve) = write.serve {
            self.shared.serve(serve, &mut state, object.revision);
        }
        state.publish(&write.place.collection, Arc::clone(&object), write.delete);
        let touched = state.take_touched();
        drop(state);
        touched.notify();
        Ok(object)
    }
}

impl Shared {
    /// Changes the served resources, by the write of a definition with `revision`. The state is locked, so changes
    /// cannot overtake each other.
    fn serve(&self, serve: Serve, state: &mut State, revision: u64) {
        let registry = self.registry.load();
        self.registry.store(Arc::new(match serve {
            Serve::Set(resource) => {
                state.restart_watches(&resource.collection, revision);
                registry.with(resource)
            }
            Serve::Remove { group, plural } => registry.without(&group, &plural),
        }));
    }
}
