//! Servers that Nova failed for want of room, as this process has seen them.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// How long a server is remembered: longer than any pause before it is replaced.
const REMEMBERED: Duration = Duration::from_secs(1200);

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
