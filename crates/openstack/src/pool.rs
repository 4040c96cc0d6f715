//! Sessions and inventories, shared by all users of the same credential.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::broadcast;
use tokio::time::Instant;

use crate::config::CloudConfig;
use crate::error::Result;
use crate::flight::Flight;
use crate::inventory::{Change, Intervals, Inventory, InventoryOptions, Kind, View};
use crate::session::{Session, SessionOptions};

/// Number of changes in all clouds that a receiver may lag behind.
const CHANGES: usize = 16_384;

/// Options of a pool.
#[derive(Clone, Debug)]
pub struct PoolOptions {
    /// Options of all sessions.
    pub session: SessionOptions,
    /// Intervals of all inventories.
    pub intervals: Intervals,
    /// True if inventories list in the background.
    pub background: bool,
    /// Time without requests and users after which a cloud is dropped.
    pub idle: Duration,
    /// Hints from a source about changed kinds; kinds in use are listed at once.
    pub hints: Option<broadcast::Sender<Kind>>,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            session: SessionOptions::default(),
            intervals: Intervals::default(),
            background: true,
            idle: Duration::from_secs(3600),
            hints: None,
        }
    }
}

/// Session and the inventory of its project.
#[derive(Clone, Debug)]
pub struct Cloud {
    /// Login.
    pub session: Session,
    /// Inventory of the project.
    pub inventory: Inventory,
    /// Counts the users of the cloud.
    users: Arc<()>,
}

/// All clouds in use. Clones share the clouds.
///
/// Two configurations share a session only if they agree in every field, secrets, region and CA included.
#[derive(Clone, Debug)]
pub struct CloudPool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    options: PoolOptions,
    changes: broadcast::Sender<Change>,
    entries: Mutex<HashMap<CloudConfig, Arc<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    flight: Flight,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    cloud: Option<Cloud>,
    used: Instant,
}

impl CloudPool {
    /// Creates an empty pool.
    pub fn new(options: PoolOptions) -> Self {
        let changes = broadcast::Sender::new(CHANGES);
        Self {
            shared: Arc::new(Shared {
                options,
                changes,
                entries: Mutex::default(),
            }),
        }
    }

    /// Returns the cloud of a configuration with a valid token. Concurrent requests cause one login.
    ///
    /// # Errors
    /// The errors of [`Session::connect`].
    pub fn get<'a>(&'a self, config: &'a CloudConfig) -> BoxFuture<'a, Result<Cloud>> {
        self.connected(config).boxed()
    }

    async fn connected(&self, config: &CloudConfig) -> Result<Cloud> {
        let entry = self.entry(config, Instant::now());
        let ready = || entry.state.lock().cloud.clone();
        let work = async || {
            let shared = &self.shared;
            let session = Session::connect(config.clone(), &shared.options.session).await?;
            let options = InventoryOptions {
                intervals: shared.options.intervals,
                background: shared.options.background,
                changes: Some(shared.changes.clone()),
            };
            let inventory = Inventory::new(session.clone(), options);
            if let Some(hints) = &shared.options.hints {
                inventory.follow(hints.subscribe());
            }
            let cloud = Cloud {
                session,
                inventory,
                users: Arc::default(),
            };
            entry.state.lock().cloud = Some(cloud.clone());
            Ok(cloud)
        };
        entry.flight.run(ready, work).await
    }

    /// Returns a receiver of changes in all clouds from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.shared.changes.subscribe()
    }

    /// Returns the current view of the inventory with this scope ([`Change::scope`]), without a request.
    pub fn known(&self, scope: &str) -> Option<Arc<View>> {
        let entries = self.shared.entries.lock();
        let found = entries.values().find_map(|entry| {
            let state = entry.state.lock();
            let cloud = state.cloud.as_ref()?;
            (&**cloud.inventory.scope() == scope).then(|| cloud.inventory.clone())
        });
        drop(entries);
        found.map(|inventory| inventory.known())
    }

    /// Returns the number of clouds.
    pub fn len(&self) -> usize {
        self.shared.entries.lock().len()
    }

    /// True without any cloud.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn entry(&self, config: &CloudConfig, now: Instant) -> Arc<Entry> {
        let mut entries = self.shared.entries.lock();
        let idle = self.shared.options.idle;
        entries.retain(|other, entry| other == config || !entry.is_idle(now, idle));
        let new = || {
            Arc::new(Entry {
                flight: Flight::default(),
                state: Mutex::new(State {
                    cloud: None,
                    used: now,
                }),
            })
        };
        let entry = entries.entry(config.clone()).or_insert_with(new);
        entry.state.lock().used = now;
        Arc::clone(entry)
    }
}

impl Entry {
    /// True if the cloud has no users and was not requested recently.
    fn is_idle(self: &Arc<Self>, now: Instant, idle: Duration) -> bool {
        let state = self.state.lock();
        let held = state
            .cloud
            .as_ref()
            .is_some_and(|cloud| Arc::strong_count(&cloud.users) > 1)
            || Arc::strong_count(self) > 1;
        !held && now.duration_since(state.used) >= idle
    }
}
