//! What a project contains, read in bulk and shared by all who want to know.
//!
//! A reconciler asks for a [`View`] of the kinds it needs, no older than it can bear. All who ask
//! at once share one list request per kind. Our own writes are folded in as they return, so that
//! everyone reads them at once, and a list that began before a write cannot undo it. The difference
//! between two lists is a stream of [`Change`]s. In the background the kinds in use are read again:
//! soon while something is pending, seldom when nothing is.

mod cell;
mod fetch;
mod kind;
mod members;
mod pace;
mod poll;
mod resource;
mod table;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::future::join_all;
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::Result;
use crate::session::Session;

pub use kind::{Kind, View};
pub use pace::Intervals;
pub use resource::{Quota, Resource};
pub use table::Table;
pub use write::Taggable;

use cell::Cell;
use fetch::Fetch;
use kind::Cells;
use members::PoolMarks;

/// Enough for a burst of a thousand servers; a receiver that lags is told so.
const CHANGES: usize = 4096;
/// Tells inventories of equally named clouds apart.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// How an inventory behaves.
#[derive(Clone, Debug)]
pub struct InventoryOptions {
    /// How often lists are read in the background.
    pub intervals: Intervals,
    /// Whether lists are read in the background at all.
    pub background: bool,
    /// Where changes go; a channel of its own if absent.
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

/// A difference between two lists of one kind. Our own writes are not changes; what the cloud
/// makes of them afterwards is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Inventory it comes from: see [`Inventory::scope`].
    pub scope: Arc<str>,
    /// Kind of the object.
    pub kind: Kind,
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its description, where owners are marked on resources without tags.
    pub description: String,
    /// What it belongs to: see [`Resource::parent`].
    pub parent: Option<String>,
    /// What happened.
    pub what: What,
}

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It was not there before.
    Appeared,
    /// It is different.
    Changed,
    /// It is not there any more.
    Gone,
}

/// An observed project. Clones share everything.
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
    /// Wakes the background reader when there is more to do.
    wake: Arc<Notify>,
    _stop: DropGuard,
}

impl Inventory {
    /// An inventory that has read nothing yet. Its background reader runs on the current tokio
    /// runtime until the last clone is dropped.
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

    /// The session, for calls that the inventory does not cover. Whoever writes with it should
    /// [`Inventory::fold`] the result.
    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// Name of this inventory, unique in the process: cloud, region and a number.
    pub fn scope(&self) -> &Arc<str> {
        &self.inner.scope
    }

    /// What is known of the kinds in `needs`, none of it older than `max_age`: the age of a list
    /// counts from the start of its request. Kinds that are not needed show what is known of them,
    /// possibly nothing. Flavors, images and the like may be some minutes older
    /// ([`Intervals::slow`]) unless `max_age` is zero.
    ///
    /// # Errors
    /// Those of the list requests.
    pub async fn view(&self, needs: &[Kind], max_age: Duration) -> Result<Arc<View>> {
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
            // No such moment: the process is younger than `max_age`, anything read will do.
            self.inner.refresh(*kind, asked.checked_sub(max_age)).await
        });
        for result in join_all(wanted).await {
            result?;
        }
        Ok(Arc::new(self.inner.snapshot()))
    }

    /// What is known without asking.
    pub fn known(&self) -> Arc<View> {
        Arc::new(self.inner.snapshot())
    }

    /// Changes from now on.
    pub fn changes(&self) -> broadcast::Receiver<Change> {
        self.inner.changes.subscribe()
    }

    /// Takes over an object as the cloud has just described it.
    pub fn fold<T: Observed>(&self, item: T) -> Arc<T> {
        let pending = item.is_pending();
        let item = T::cell(&self.inner.cells).fold(item);
        if pending {
            self.inner.hurry(T::KIND);
        }
        item
    }

    /// Takes note that an object is gone.
    pub fn fold_gone<T: Observed>(&self, id: &str) {
        T::cell(&self.inner.cells).fold_gone(id);
    }

    /// Changes what is known of an object, after a write whose answer does not show it.
    pub fn fold_with<T: Observed>(&self, id: &str, change: impl FnOnce(&mut T)) {
        if T::cell(&self.inner.cells).fold_with(id, change) {
            self.inner.hurry(T::KIND);
        }
    }

    /// Makes the next view read this kind again whatever its age, after a write whose effect
    /// cannot be told from its answer.
    pub fn stale(&self, kind: Kind) {
        self.inner.pace(kind).stale(Instant::now());
        self.inner.wake.notify_one();
    }

    /// Says that someone waits for this object to change although nothing about it looks pending.
    /// Holds until it changes, for some minutes at most.
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

/// A resource that inventories observe. Implemented for the types of [`View`]'s tables only.
pub trait Observed: Resource + Fetch + Stored {}

impl<T: Resource + Fetch + Stored> Observed for T {}

/// Where an inventory keeps a type.
#[doc(hidden)]
pub trait Stored: Resource {
    #[doc(hidden)]
    fn cell(cells: &Cells) -> &Cell<Self>;
}

impl Inner {
    /// Reads a kind unless it was read at or after `since` (`None`: ever).
    async fn refresh_as<T: Observed>(&self, since: Option<Instant>) -> Result<()> {
        let cell = T::cell(&self.cells);
        let pace = self.pace(T::KIND);
        let ready = || pace.is_read_since(since).then_some(());
        let work = async || {
            let started = Instant::now();
            let mark = cell.begin();
            pace.begin(started);
            let fetched = T::fetch(self, pace.bound(since)).await;
            let items = fetched.inspect_err(|error| pace.failed(error))?;
            let changes = cell.apply(mark, items, pace.was_read());
            let as_of = T::as_of(self).map_or(started, |other| started.min(other));
            pace.done(as_of, Instant::now() - started, !changes.is_empty());
            for (change, item) in changes {
                self.tell(change, &*item);
            }
            Ok(())
        };
        cell.flight.run(ready, work).await
    }

    fn tell<T: Observed>(&self, (id, what): (String, What), item: &T) {
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
        // Nobody may be listening.
        let _ = self.changes.send(change);
    }

    /// Something of this kind became pending.
    fn hurry(&self, kind: Kind) {
        self.pace(kind).hurry(Instant::now());
        self.wake.notify_one();
    }
}
