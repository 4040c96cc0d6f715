//! When a kind was listed, and when it is due again.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use super::kind::Tempo;
use crate::error::Error;

/// The intervals of background lists.
#[derive(Clone, Copy, Debug)]
pub struct Intervals {
    /// First interval while an object is pending, on a cloud that answers at once.
    pub pending_least: Duration,
    /// First interval while an object is pending, on a slower cloud. Between the two it is ten times the duration of a
    /// list; beyond it, `share` times that duration.
    pub pending_first: Duration,
    /// While an object is pending, at most one part in so many of the time is spent on lists of its kind, so that lists of
    /// many objects do not take a cloud's whole time.
    pub share: u32,
    /// The maximum interval while an object is pending.
    pub pending_most: Duration,
    /// First interval when nothing is pending. Kinds that change only when a user changes them are listed a fifth as
    /// often.
    pub idle: Duration,
    /// The maximum interval when nothing changes; twice as long for kinds that change only when a user changes them.
    pub rest: Duration,
    /// The time in which hints about changes are collected.
    pub hints: Duration,
    /// The age up to which flavors, images and the like are always recent enough.
    pub slow: Duration,
    /// A kind that is not requested during this time is no longer listed in the background.
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

/// The factor of the interval for each list without a change.
const GROWTH: f64 = 1.5;
/// The factor of the idle interval for each list without a change.
const IDLE_GROWTH: u32 = 2;
/// After this many lists, a pending object is considered stuck, and the interval grows to the idle one.
const STUCK: u32 = 60;
/// The factor between the duration of a list and the first interval.
const LATENCY_FACTOR: u32 = 10;
/// A list begins no sooner after the one before than so many times that one's duration, even if its callers need it to be
/// of now: with many objects, each of which needs a list of its own after a write, they share one.
const SPACING: u32 = 3;
/// The longest time from the end of a list to the next one that is needed.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// How long a watched object counts as pending without a change.
const WATCH: Duration = Duration::from_secs(600);

/// The schedule of one kind.
#[derive(Debug, Default)]
pub(super) struct Pace(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    asked: Option<Instant>,
    /// Start of the last list that succeeded.
    read: Option<Instant>,
    /// Lists that began before this time are stale.
    stale: Option<Instant>,
    /// The number of times that lists became stale; when the running list began, and when the last one that succeeded
    /// did. Two of them can be at one instant of a coarse clock.
    marks: u64,
    begun_marks: u64,
    read_marks: u64,
    was_read: bool,
    /// Start of the last list, successful or not.
    begun: Option<Instant>,
    /// The first time after that at which an object became pending.
    hurried: Option<Instant>,
    /// The duration of the last list.
    took: Duration,
    /// The number of lists since the last change.
    unchanged: u32,
    failures: u32,
    retry_after: Option<Duration>,
    watched: HashMap<String, Instant>,
}

impl Pace {
    /// Records a request; returns whether the background reader must be woken.
    pub(super) fn asked(&self, now: Instant) -> bool {
        self.0.lock().asked.replace(now).is_none()
    }

    /// True if a list that began at `since` or later succeeded.
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

    /// `since`, or the time before which lists are stale if that is later.
    pub(super) fn bound(&self, since: Option<Instant>) -> Option<Instant> {
        // `None` is less than any bound.
        since.max(self.0.lock().stale)
    }

    /// Start of the last list that succeeded.
    pub(super) fn read(&self) -> Option<Instant> {
        self.0.lock().read
    }

    /// True if any list has succeeded.
    pub(super) fn was_read(&self) -> bool {
        self.0.lock().was_read
    }

    /// How long a list that is needed at `now` waits.
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

    /// Records a list whose content is of `as_of` or later.
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

    /// Makes every list that began before `now` stale, including a running one.
    pub(super) fn stale(&self, now: Instant) {
        let mut state = self.0.lock();
        state.stale = Some(now);
        state.marks += 1;
        state.unchanged = 0;
    }

    /// Starts again with short intervals. The first one counts from now: an object that was just written is not ready
    /// yet.
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

    /// When the background reader must list the kind; `None` if the kind is not requested.
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

    /// `idle` after a change, growing with each list without a change up to `rest`.
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
