//! Time of the cloud: the machine's time plus the time added or skipped by tests, and the formats of the services.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// Clock of a cloud: the machine's, unless a test changes it.
#[derive(Debug)]
pub(crate) struct Clock {
    ahead_milliseconds: AtomicI64,
    /// The same moment by the machine's clock and by the timers' clock, which runs on from there: a test may pause
    /// time, a resource due with a timer must be due when the timer fires, and time never goes back.
    started: (Timestamp, Instant),
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            ahead_milliseconds: AtomicI64::default(),
            started: (Timestamp::now(), Instant::now()),
        }
    }
}

impl Clock {
    /// Returns the time now.
    pub(crate) fn now(&self) -> Timestamp {
        let (machine, timers) = self.started;
        let ahead = self.ahead_milliseconds.load(Ordering::Relaxed);
        let passed = ahead.saturating_add(milliseconds(timers.elapsed()));
        let now = machine.as_millisecond().saturating_add(passed);
        Timestamp::from_millisecond(now).unwrap_or(machine)
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, by: Duration) {
        self.ahead_milliseconds
            .fetch_add(milliseconds(by), Ordering::Relaxed);
    }
}

fn milliseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(0)
}

/// Formats `2024-05-01T10:00:00Z`: Nova, Neutron, Glance.
pub(crate) fn zulu(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Formats `2024-05-01T10:00:00`: Octavia.
pub(crate) fn naive(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// Formats `2024-05-01T10:00:00.000000`: Cinder.
pub(crate) fn naive_micros(time: Timestamp) -> String {
    format!("{}.{:06}", naive(time), time.subsec_nanosecond() / 1000)
}

/// Formats `2024-05-01T10:00:00.000000Z`: Keystone.
pub(crate) fn zulu_micros(time: Timestamp) -> String {
    format!("{}.000000Z", naive(time))
}
