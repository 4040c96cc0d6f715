//! Failed servers for want of room, and load balancers whose driver has no health monitors, as seen by this process.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Time that a server is remembered: longer than any pause before its replacement.
const REMEMBERED: Duration = Duration::from_secs(1200);

/// Ids of load balancers without health monitors, which Octavia has refused because of the driver. Such load balancers
/// serve without.
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

/// Failed servers of machines by id, with the time of the first sight in this process, and true for a server without
/// later actions.
#[derive(Debug, Default)]
pub(crate) struct Failures {
    known: Mutex<HashMap<String, (Instant, bool)>>,
    /// Times at which failed servers without a fault were first seen.
    unexplained: Mutex<HashMap<String, Instant>>,
}

impl Failures {
    /// Time since the first sight of this failed server; zero for an unknown one.
    pub(crate) fn since(&self, server: &str) -> Duration {
        let since = self.known.lock().get(server).map(|(since, _)| *since);
        since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    /// True for a server without later actions; `None` for an unknown one.
    pub(crate) fn is_untouched(&self, server: &str) -> Option<bool> {
        self.known.lock().get(server).map(|(_, verdict)| *verdict)
    }

    /// Remembers a failed server, and forgets irrelevant ones.
    pub(crate) fn note(&self, server: &str, is_untouched: bool) {
        let mut all = self.known.lock();
        all.retain(|_, (since, _)| since.elapsed() < REMEMBERED);
        all.insert(server.to_owned(), (Instant::now(), is_untouched));
    }

    /// Forgets a deleted server.
    pub(crate) fn forget(&self, server: &str) {
        self.known.lock().remove(server);
    }

    /// The time since this failed server was first seen without a fault, which Nova records after the state.
    pub(crate) fn unexplained(&self, server: &str) -> Duration {
        let mut all = self.unexplained.lock();
        all.retain(|id, since| id == server || since.elapsed() < REMEMBERED);
        let since = all.entry(server.to_owned()).or_insert_with(Instant::now);
        since.elapsed()
    }
}
