//! Circuit breaker for a Keystone that does not answer.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

/// Consecutive questions without an answer before a pause.
const FAILURES: u32 = 3;
/// Minimum and maximum of the pause.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);

#[derive(Default)]
pub(super) struct Circuit {
    failures: u32,
    open: Option<Open>,
}

struct Open {
    reason: Arc<str>,
    until: Instant,
    /// Pause after the next failure.
    next: Duration,
}

impl Circuit {
    /// Reason why Keystone is not asked; stays until a question is answered.
    pub(super) fn open(&self) -> Option<Arc<str>> {
        self.open.as_ref().map(|open| Arc::clone(&open.reason))
    }

    /// Reason against a question; after the end of the pause, one question is allowed.
    pub(super) fn enter(&mut self, now: Instant) -> Option<Arc<str>> {
        let open = self.open.as_mut()?;
        if now < open.until {
            return Some(Arc::clone(&open.reason));
        }
        // The other questions wait for the answer or the failure of this one.
        open.until = now + open.next;
        None
    }

    pub(super) fn answered(&mut self) {
        *self = Self::default();
    }

    pub(super) fn failed(&mut self, reason: Arc<str>, retry_after: Option<Duration>, now: Instant) {
        self.failures = self.failures.saturating_add(1);
        let wait = self.open.as_ref().map_or(SHORTEST, |open| open.next);
        let wait = retry_after.map_or(wait, |asked| asked.clamp(wait, LONGEST));
        if self.open.is_none() && retry_after.is_none() && self.failures < FAILURES {
            return;
        }
        self.open = Some(Open {
            reason,
            until: now + wait,
            next: (wait * 2).min(LONGEST),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn after_three_failures_one_question_at_a_time_is_asked() {
        let start = Instant::now();
        let at = |millis: u64| start + Duration::from_millis(millis);
        let mut circuit = Circuit::default();
        for _ in 0..3 {
            assert_eq!(circuit.enter(at(0)), None);
            circuit.failed("down".into(), None, at(0));
        }
        assert_eq!(circuit.enter(at(500)).as_deref(), Some("down"));
        assert_eq!(circuit.enter(at(999)).as_deref(), Some("down"));
        assert_eq!(circuit.enter(at(1000)), None);
        assert!(circuit.enter(at(1001)).is_some());
        circuit.failed("still down".into(), None, at(1500));
        assert_eq!(circuit.enter(at(3000)).as_deref(), Some("still down"));
        // Not ready until there is an answer.
        assert!(circuit.open().is_some());
        assert_eq!(circuit.enter(at(10_000)), None);
        circuit.answered();
        assert_eq!(circuit.open(), None);
        assert_eq!(circuit.enter(at(10_000)), None);
    }

    #[tokio::test(start_paused = true)]
    async fn a_wait_that_keystone_asks_for_is_kept_within_bounds() {
        let now = Instant::now();
        for (asked, seconds) in [(7, 7), (0, 1), (9999, 30)] {
            let mut circuit = Circuit::default();
            circuit.failed("429".into(), Some(Duration::from_secs(asked)), now);
            let at = |millis: u64| now + Duration::from_millis(millis);
            let before = circuit.enter(at(seconds * 1000 - 1));
            assert_eq!(before.as_deref(), Some("429"), "{asked}");
            assert_eq!(circuit.enter(at(seconds * 1000)), None, "{asked}");
        }
        let mut circuit = Circuit::default();
        for _ in 0..50 {
            circuit.failed("down".into(), None, now);
        }
        assert_eq!(circuit.enter(now + LONGEST), None);
    }
}
