//! Times at which this process looked at the application credentials of a cluster in Keystone.

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::identity::Identity;

/// Interval between looks: a credential deleted by hand is noticed.
const LOOK: Duration = Duration::from_secs(3600);

/// Times of the last looks, by cluster.
#[derive(Debug, Default)]
pub(crate) struct Looks(Mutex<HashMap<Identity, Instant>>);

impl Looks {
    /// True for a cluster without a look in the last hour.
    pub(crate) fn is_due(&self, cluster: Identity) -> bool {
        let known = self.0.lock().get(&cluster).copied();
        known.is_none_or(|at| at.elapsed() >= LOOK)
    }

    /// Remembers a look.
    pub(crate) fn note(&self, cluster: Identity) {
        self.0.lock().insert(cluster, Instant::now());
    }

    /// Forgets a cluster.
    pub(crate) fn forget(&self, cluster: Identity) {
        self.0.lock().remove(&cluster);
    }
}
