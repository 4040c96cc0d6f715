//! Time of the retry of a failed reconcile.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use parking_lot::Mutex;

/// Time of the retry of a failed reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// At once: after a write conflict, a retry reads the newer object.
    Now,
    /// With increasing pauses: it is unknown when a retry can succeed.
    Backoff,
    /// After this pause, for example from a `Retry-After` header.
    After(Duration),
    /// When the object or a dependency changes: before that, a retry fails in the same way.
    OnChange,
}

/// Error with a rule for the retry of the reconcile.
pub trait Retry {
    /// Returns the time of the retry.
    fn when(&self) -> When;
}

impl Retry for kube::Error {
    fn when(&self) -> When {
        match self {
            kube::Error::Api(status) if status.code == 409 => When::Now,
            kube::Error::Api(status) if status.code == 400 || status.code == 422 => When::OnChange,
            _ => When::Backoff,
        }
    }
}

/// True if `error` is a write conflict: the object has changed since the read. A retry reads the newer object at once,
/// so no condition reports a conflict. A name that is taken also answers 409, but is no conflict.
#[must_use]
pub fn is_conflict(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut causes = std::iter::successors(Some(error), |error| error.source());
    causes.any(|cause| {
        let boxed = || cause.downcast_ref::<Box<kube::Error>>().map(|it| &**it);
        let request = cause.downcast_ref::<kube::Error>().or_else(boxed);
        matches!(request, Some(kube::Error::Api(status)) if status.code == 409 && status.reason == "Conflict")
    })
}

/// Pause after the first failure.
const FIRST: Duration = Duration::from_millis(200);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(60);
/// Pause of [`When::Now`], in which the watch can receive the newer object.
const SOON: Duration = Duration::from_millis(50);

/// Consecutive failures of objects, until a success or a deletion.
#[derive(Debug)]
pub struct Failures<K> {
    counts: Mutex<HashMap<K, u32>>,
}

impl<K> Default for Failures<K> {
    fn default() -> Self {
        Self {
            counts: Mutex::new(HashMap::new()),
        }
    }
}

impl<K: Hash + Eq> Failures<K> {
    /// Removes the failures of `key`.
    pub fn forget(&self, key: &K) {
        self.counts.lock().remove(key);
    }

    /// Records a failure and returns the pause before the retry; `None` waits for a change.
    pub fn pause(&self, key: K, when: When) -> Option<Duration> {
        match when {
            When::OnChange => None,
            When::After(pause) => Some(pause),
            When::Now => {
                // A conflict that persists is treated like other failures.
                let count = self.count(key);
                Some(if count < 10 {
                    SOON
                } else {
                    pause_after(count - 9)
                })
            }
            When::Backoff => Some(pause_after(self.count(key))),
        }
    }

    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.counts.lock().is_empty()
    }

    fn count(&self, key: K) -> u32 {
        let mut counts = self.counts.lock();
        let count = counts.entry(key).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }
}

/// Returns the pause after `count` consecutive failures: exponential up to [`LONGEST`], with up to 10 % of jitter.
fn pause_after(count: u32) -> Duration {
    let doubled = FIRST
        .saturating_mul(1 << count.saturating_sub(1).min(16))
        .min(LONGEST);
    doubled.mul_f64(1.0 + rand::random::<f64>() / 10.0)
}

#[cfg(test)]
mod tests;
