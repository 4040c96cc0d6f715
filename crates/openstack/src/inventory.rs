//! Resources of a project, listed in bulk and shared by all callers.
//!
//! A reconciler requests a [`View`] of the kinds that it needs, with a maximum age. Concurrent callers share one list
//! request per kind. The results of our own writes are folded into the view at once, visible to all callers, and a list
//! that began before a write cannot undo them. The differences between two lists are sent as [`Change`]s. In the
//! background, the kinds in use are listed again: often while an object is pending, rarely otherwise.

mod batches;
mod cell;
mod fetch;
mod hints;
mod kind;
mod members;
mod pace;
mod poll;
mod resource;
mod table;
#[cfg(test)]
mod tests;
mod write;
mod write_descriptions;
mod write_groups;
mod write_networks;
mod write_volumes;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::future::join_all;
use tokio::sync::{Notify, broadcast};
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::Result;
use crate::session::Session;

pub use batches::batches;
pub use kind::{Kind, View};
pub use pace::Intervals;
pub use resource::{Quota, QuotaOfVolumes, Resource};
pub use table::Table;
pub use write::Taggable;
pub use write_descriptions::Described;

use cell::Cell;
use fetch::Fetch;
use kind::Cells;
use members::PoolMarks;

/// Capacity of the channel, enough for a burst of a thousand servers; a receiver that lags gets an error.
const CHANGES: usize = 4096;
/// Number of the next inventory, which distinguishes inventories of clouds with the same name.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Options of an inventory.
#[derive(Clone, Debug)]
pub struct InventoryOptions {
    /// Intervals of background lists.
    pub intervals: Intervals,
    /// True if kinds are listed in the background.
    pub background: bool,
    /// Channel for changes; a new one if absent.
    pub changes: Option<broadcast::Sender<Change>>,
}

impl Default for InventoryOptions {
    fn default() -> Self {
        Self {
            intervals: Intervals::default(),
            background: true,
            changes: None,
        }
    }
}

/// Difference between two lists of one kind. Our own writes are not changes; later changes by the cloud are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Scope of the inventory: see [`Inventory::scope`].
    pub scope: Arc<str>,
    /// Kind of the object.
    pub kind: Kind,
    /// Id of the object.
    pub id: String,
    /// Name of the object.
    pub name: String,
    /// Tags of the object.
    pub tags: Vec<String>,
    /// Description of the object, which marks the owner of resources without tags.
    pub description: String,
    /// Parent of the object: see [`Resource::parent`].
    pub parent: Option<String>,
    /// Type of the change.
    pub what: What,
}

/// Type of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The object is new.
    Appeared,
    /// The object is different.
    Changed,
    /// The object no longer exists.
    Gone,
}

/// Inventory of a project. Clones share the state.
#[derive(Clone)]
pub struct Inventory {
    inner: Arc<Inner>,
}

#[doc(hidden)]
pub struct Inner {
    session: Session,
    polling: Session,
    scope: Arc<str>,
    cells: Cells,
    pool_marks: PoolMarks,
    intervals: Intervals,
    changes: broadcast::Sender<Change>,
    /// Wakes the background reader when an interval becomes shorter.
    wake: Arc<Notify>,
    _stop: DropGuard,
}

impl Inventory {
    /// Creates an empty inventory. The background reader runs on the current tokio runtime until the last clone is
    /// dropped.
    pub fn new(session: Session, options: InventoryOptions) -> Self {
        let config = session.config();
        let region = config.region.as_deref().unwrap_or_default();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let scope = format!("{}/{region}/{number}", config.name);
        let stop = CancellationToken::new();
        let wake = Arc::new(Notify::new());
        let inner = Arc::new(Inner {
            polling: session.polling(),
            session,
            scope: scope.into(),
            cells: Cells::default(),
            pool_marks: PoolMarks::default(),
            intervals: options.intervals,
            changes: options
                .changes
                .unwrap_or_else(|| broadcast::Sender::new(CHANGES)),
            wake: Arc::clone(&wake),
            _stop: stop.clone().drop_guard(),
        });
        if options.background
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(poll::run(Arc::downgrade(&inner), wake, stop));
        }
        Self { inner }
    }

    /// Returns the session, for calls that the inventory does not offer. Callers pass the results of writes to
    /// [`Inventory::fold`].
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// Returns the name of this inventory, unique in the process: cloud, region and a number.
    pub fn scope(&self) -> &Arc<str> {
        &self.inner.scope
    }

    /// Returns a view of the kinds in `needs`, none of them older than `max_age`; the age of a list counts from the
    /// start of the request. Other kinds have their last known content, possibly none. Flavors, images and the like may
    /// be some minutes older ([`Intervals::slow`]) unless `max_age` is zero.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of a list request.
    pub fn view<'a>(
        &'a self,
        needs: &'a [Kind],
        max_age: Duration,
    ) -> BoxFuture<'a, Result<Arc<View>>> {
        self.read(needs, max_age).boxed()
    }

    async fn read(&self, needs: &[Kind], max_age: Duration) -> Result<Arc<View>> {
        let asked = Instant::now();
        let wanted = needs.iter().map(|kind| async move {
            let pace = self.inner.pace(*kind);
            if pace.asked(asked) {
                self.inner.wake.notify_one();
            }
            let slow = kind.is_slow() && !max_age.is_zero();
            let max_age = if slow {
                max_age.max(self.inner.intervals.slow)
            } else {
                max_age
            };
            // The process is younger than `max_age`, so any list is recent enough.
            self.inner.refresh(*kind, asked.checked_sub(max_age)).await
        });
        for result in join_all(wanted).await {
            result?;
        }
        Ok(Arc::new(self.inner.snapshot()))
    }

    /// Returns the current view, without a request.
    pub fn known(&self) -> Arc<View> {
        Arc::new(self.inner.snapshot())
    }

    /// Returns a receiver of changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.inner.changes.subscribe()
    }

    /// Updates an object with the answer of a request.
    pub fn fold<T: Observed>(&self, item: T) -> Arc<T> {
        let pending = item.is_pending();
        let item = T::cell(&self.inner.cells).fold(item);
        if pending {
            self.inner.hurry(T::KIND);
        }
        item
    }

    /// Removes an object that was deleted.
    pub fn fold_gone<T: Observed>(&self, id: &str) {
        T::cell(&self.inner.cells).fold_gone(id);
    }

    /// Updates an object after a write whose answer lacks the object.
    pub fn fold_with<T: Observed>(&self, id: &str, change: impl FnOnce(&mut T)) {
        if T::cell(&self.inner.cells).fold_with(id, change) {
            self.inner.hurry(T::KIND);
        }
    }

    /// Makes the next view list this kind regardless of its age, after a write with an unknown effect.
    pub fn stale(&self, kind: Kind) {
        self.inner.pace(kind).stale(Instant::now());
        self.inner.wake.notify_one();
    }

    /// Lists kinds in use when a hint names them, until the inventory or the sender is dropped. Hints during
    /// [`Intervals::hints`] cause one list.
    pub fn follow(&self, hints: broadcast::Receiver<Kind>) {
        tokio::spawn(hints::follow(Arc::downgrade(&self.inner), hints));
    }

    /// Treats an object as pending despite its status, because a caller waits for a change. Ends with the change, or
    /// after some minutes.
    pub fn watch_pending(&self, kind: Kind, id: &str) {
        self.inner.pace(kind).watch(id, Instant::now());
        self.inner.wake.notify_one();
    }
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inventory")
            .field("scope", &self.inner.scope)
            .finish_non_exhaustive()
    }
}

/// Type of a table in a [`View`]. Implemented for these types only.
pub trait Observed: Resource + Fetch + Stored {}

impl<T: Resource + Fetch + Stored> Observed for T {}

/// Place of a type in the inventory.
#[doc(hidden)]
pub trait Stored: Resource {
    #[doc(hidden)]
    fn cell(cells: &Cells) -> &Cell<Self>;
}

impl Inner {
    /// Lists a kind, unless listed at or after `since` (`None`: ever).
    async fn refresh_as<T: Observed>(&self, since: Option<Instant>) -> Result<()> {
        let cell = T::cell(&self.cells);
        let pace = self.pace(T::KIND);
        let ready = || pace.is_read_since(since).then_some(());
        let work = async || {
            // Even a sleep of no time takes until the timer's next tick.
            let rest = pace.rest(Instant::now());
            if !rest.is_zero() {
                tokio::time::sleep(rest).await;
            }
            let started = Instant::now();
            let mark = cell.begin();
            pace.begin(started);
            let fetched = T::fetch(self, pace.bound(since)).await;
            let items = fetched.inspect_err(|error| pace.failed(error))?;
            let changes = cell.apply(mark, items, pace.was_read());
            let as_of = T::as_of(self).map_or(started, |other| started.min(other));
            pace.done(as_of, Instant::now() - started, !changes.is_empty());
            for (change, item) in changes {
                self.publish(change, &*item);
            }
            Ok(())
        };
        cell.flight.run(ready, work).await
    }

    fn publish<T: Observed>(&self, (id, what): (String, What), item: &T) {
        self.pace(T::KIND).unwatch(&id);
        let change = Change {
            scope: Arc::clone(&self.scope),
            kind: T::KIND,
            id,
            name: item.name().to_owned(),
            tags: item.tags().to_vec(),
            description: item.description().to_owned(),
            parent: item.parent().map(str::to_owned),
            what,
        };
        // There may be no receivers.
        let _ = self.changes.send(change);
    }

    /// Shortens the interval of a kind because an object became pending.
    fn hurry(&self, kind: Kind) {
        self.pace(kind).hurry(Instant::now());
        self.wake.notify_one();
    }
}
