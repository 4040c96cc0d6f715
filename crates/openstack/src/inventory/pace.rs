//! Schedule of lists: the last list of a kind, and the next one.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::kind::Tempo;
use crate::error::Error;

/// Intervals of background lists.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// First interval while an object is pending, on a cloud that answers at once.
    pub pending_least: Duration,
    /// First interval while an object is pending, on a slower cloud. Between the two, the interval is ten times the
    /// duration of a list; beyond this value, `share` times the duration.
    pub pending_first: Duration,
    /// Inverse of the maximum share of time for lists of a kind with a pending object, so that lists of many objects do
    /// not take a cloud's whole time.
    pub share: u32,
    /// Maximum interval while an object is pending.
    pub pending_most: Duration,
    /// First interval when nothing is pending. Kinds that only users change are listed a fifth as often.
    pub idle: Duration,
    /// Maximum interval when nothing changes; twice as long for kinds that only users change.
    pub rest: Duration,
    /// Time to collect hints about changes before a list.
    pub hints: Duration,
    /// Maximum age at which flavors, images and the like are always recent enough.
    pub slow: Duration,
    /// Time without a request after which a kind is no longer listed in the background.
    pub forget: Duration,
}

impl Default for Intervals {
    fn default() -> Self {
        Self {
            pending_least: Duration::from_millis(50),
            pending_first: Duration::from_millis(500),
            share: 4,
            pending_most: Duration::from_secs(5),
            idle: Duration::from_secs(60),
            rest: Duration::from_secs(300),
            hints: Duration::from_secs(1),
            slow: Duration::from_secs(600),
            forget: Duration::from_secs(3600),
        }
    }
}

/// Factor of the interval for each list without a change.
const GROWTH: f64 = 1.5;
/// Factor of the idle interval for each list without a change.
const IDLE_GROWTH: u32 = 2;
/// Number of lists after which a pending object counts as stuck, and the interval grows to the idle one.
const STUCK: u32 = 60;
/// Factor between the duration of a list and the first interval.
const LATENCY_FACTOR: u32 = 10;
/// Minimum time from the start of a list to the start of the next one, as a multiple of the list's duration, even for
/// callers that need a list from now: with many objects that each need a list after a write, the callers share one.
const SPACING: u32 = 3;
/// Longest time from the end of a list to the next needed one.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// Time that a watched object counts as pending without a change.
const WATCH: Duration = Duration::from_secs(600);

/// Schedule of one kind.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    asked: Option<Instant>,
    /// Start of the last successful list.
    read: Option<Instant>,
    /// Lists that began before this time are stale.
    stale: Option<Instant>,
    /// Number of times that lists became stale; also its values when the running list and the last successful one
    /// began. Times alone do not suffice: on a coarse clock, two of these events can have the same instant.
    marks: u64,
    begun_marks: u64,
    read_marks: u64,
    was_read: bool,
    /// Start of the last list, successful or not.
    begun: Option<Instant>,
    /// First time after `begun` at which an object became pending.
    hurried: Option<Instant>,
    /// Duration of the last list.
    took: Duration,
    /// Number of lists since the last change.
    unchanged: u32,
    failures: u32,
    retry_after: Option<Duration>,
    watched: HashMap<String, Instant>,
}

impl Pace {
    /// Records a request; returns true if the background reader must be woken.
    pub(super) fn asked(&self, now: Instant) -> bool {
        self.0.lock().asked.replace(now).is_none()
    }

    /// True if a list from `since` or later succeeded.
    pub(super) fn is_read_since(&self, since: Option<Instant>) -> bool {
        let state = self.0.lock();
        // `None` is less than any bound.
        let since = since.max(state.stale);
        if state.read_marks < state.marks {
            return false;
        }
        state
            .read
            .is_some_and(|read| since.is_none_or(|since| read >= since))
    }

    /// Returns `since`, or the time before which lists are stale, if later.
    pub(super) fn bound(&self, since: Option<Instant>) -> Option<Instant> {
        // `None` is less than any bound.
        since.max(self.0.lock().stale)
    }

    /// Returns the start of the last successful list.
    pub(super) fn read(&self) -> Option<Instant> {
        self.0.lock().read
    }

    /// True if any list has succeeded.
    pub(super) fn was_read(&self) -> bool {
        self.0.lock().was_read
    }

    /// Returns the wait of a list that is needed at `now`.
    pub(super) fn rest(&self, now: Instant) -> Duration {
        let state = self.0.lock();
        let spacing = (state.took * SPACING).min(state.took + LONGEST_REST);
        let begun = state.begun.map(|begun| begun + spacing);
        begun.map_or(Duration::ZERO, |next| next.saturating_duration_since(now))
    }

    pub(super) fn begin(&self, now: Instant) {
        let mut state = self.0.lock();
        state.begun = Some(now);
        state.begun_marks = state.marks;
        state.hurried = None;
    }

    /// Records a list with content of `as_of` or later.
    pub(super) fn done(&self, as_of: Instant, took: Duration, changed: bool) {
        let mut state = self.0.lock();
        state.read = Some(as_of);
        state.read_marks = state.begun_marks;
        state.was_read = true;
        state.took = took;
        state.failures = 0;
        state.retry_after = None;
        state.unchanged = if changed {
            0
        } else {
            state.unchanged.saturating_add(1)
        };
    }

    pub(super) fn failed(&self, error: &Error) {
        let mut state = self.0.lock();
        state.failures = state.failures.saturating_add(1);
        state.retry_after = error.retry_after();
    }

    /// Makes every list from before `now` stale, including a running one.
    pub(super) fn stale(&self, now: Instant) {
        let mut state = self.0.lock();
        state.stale = Some(now);
        state.marks += 1;
        state.unchanged = 0;
    }

    /// Starts again with short intervals. The first one counts from now: an object is not ready right after a write.
    pub(super) fn hurry(&self, now: Instant) {
        self.0.lock().hurry(now);
    }

    pub(super) fn watch(&self, id: &str, now: Instant) {
        let mut state = self.0.lock();
        state.hurry(now);
        state.watched.insert(id.to_owned(), now + WATCH);
    }

    pub(super) fn unwatch(&self, id: &str) {
        self.0.lock().watched.remove(id);
    }

    /// Returns the time at which the background reader must list the kind; `None` if the kind is not requested.
    pub(super) fn due(
        &self,
        now: Instant,
        tempo: Tempo,
        pending: bool,
        intervals: &Intervals,
    ) -> Option<Instant> {
        let mut state = self.0.lock();
        state.watched.retain(|_, until| *until > now);
        let pending = pending || !state.watched.is_empty();
        let wanted = state
            .asked
            .is_some_and(|asked| now < asked + intervals.forget);
        if tempo == Tempo::Slow || !(wanted || pending) {
            return None;
        }
        let Some(begun) = state.begun else {
            return Some(now);
        };
        let (idle, rest) = match tempo {
            Tempo::Lively => (intervals.idle, intervals.rest),
            Tempo::Calm | Tempo::Slow => (intervals.idle * 5, intervals.rest * 2),
        };
        let mut interval = if pending {
            state.pending_interval(intervals).min(idle)
        } else {
            state.idle_interval(idle, rest)
        };
        if state.failures > 0 {
            let doubled = intervals.pending_first * 2_u32.pow(state.failures.min(16));
            interval = interval.max(doubled.min(intervals.idle));
            interval = interval.max(state.retry_after.unwrap_or_default());
        }
        let from = if pending {
            state.hurried.map_or(begun, |hurried| begun.max(hurried))
        } else {
            begun
        };
        // A write does not postpone a list that is due.
        Some((from + interval).min(begun + idle.max(interval)))
    }
}

impl State {
    fn hurry(&mut self, now: Instant) {
        self.unchanged = 0;
        self.hurried.get_or_insert(now);
    }

    /// Returns `idle` after a change, growing with each list without a change up to `rest`.
    fn idle_interval(&self, idle: Duration, rest: Duration) -> Duration {
        let factor = IDLE_GROWTH.saturating_pow(self.unchanged.min(16));
        idle.saturating_mul(factor).min(rest.max(idle))
    }

    fn pending_interval(&self, intervals: &Intervals) -> Duration {
        let least = intervals.pending_least.min(intervals.pending_first);
        let first = (self.took * LATENCY_FACTOR).clamp(least, intervals.pending_first);
        let first = first.max(self.took * intervals.share);
        let power = i32::try_from(self.unchanged.min(100)).unwrap_or(100);
        let grown = first.as_secs_f64() * GROWTH.powi(power);
        let most = if self.unchanged < STUCK {
            intervals.pending_most
        } else {
            intervals.idle
        };
        Duration::from_secs_f64(grown.min(most.as_secs_f64())).max(first.min(most))
    }
}
