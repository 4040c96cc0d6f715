//! Servers that Nova failed for want of room, and load balancers whose driver has no health monitors, as this process has
//! seen them.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a server is remembered: longer than any pause before it is replaced.
const REMEMBERED: Duration = Duration::from_secs(1200);

/// Load balancers, by id, for which Octavia has answered that their driver has no health monitors. They serve without.
#[derive(Debug, Default)]
pub(crate) struct Unmonitored(Mutex<BTreeSet<String>>);

impl Unmonitored {
    /// True if the driver of this load balancer has refused a health monitor.
    pub(crate) fn has(&self, balancer: &str) -> bool {
        self.0.lock().contains(balancer)
    }

    /// Remembers a load balancer.
    pub(crate) fn note(&self, balancer: &str) {
        self.0.lock().insert(balancer.to_owned());
    }
}

/// The failed servers of machines by id, with the time at which this process has first seen one, and whether nothing was
/// made of it.
#[derive(Debug, Default)]
pub(crate) struct Failures(Mutex<HashMap<String, (Instant, bool)>>);

impl Failures {
    /// The time since this server was first seen as failed; zero for one that is not known.
    pub(crate) fn since(&self, server: &str) -> Duration {
        let since = self.0.lock().get(server).map(|(since, _)| *since);
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// True if nothing was made of this server; `None` for one that is not known.
    pub(crate) fn is_untouched(&self, server: &str) -> Option<bool> {
        self.0.lock().get(server).map(|(_, verdict)| *verdict)
    }

    /// Remembers a failed server, and forgets those that are no concern any more.
    pub(crate) fn note(&self, server: &str, is_untouched: bool) {
        let mut all = self.0.lock();
        all.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        all.insert(server.to_owned(), (Instant::now(), is_untouched));
    }

    /// Forgets a server that is deleted.
    pub(crate) fn forget(&self, server: &str) {
        self.0.lock().remove(server);
    }
}
