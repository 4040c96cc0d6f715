//! The time of the cloud: that of the machine plus what tests have added or skipped, and the formats of the services.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

/// A clock. Without a test that changes it, it is that of the machine.
#[derive(Debug)]
pub(crate) struct Clock {
    ahead_milliseconds: AtomicI64,
    /// The same moment by the clock of the timers and by that of the machine. They differ where a test has paused time,
    /// and what becomes due with a timer must be due when the timer has passed.
    started: (Instant, std::time::Instant),
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            ahead_milliseconds: AtomicI64::default(),
            started: (Instant::now(), std::time::Instant::now()),
        }
    }
}

impl Clock {
    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        let (timers, machine) = self.started;
        let ahead = self.ahead_milliseconds.load(Ordering::Relaxed);
        let ahead = ahead
            .saturating_add(milliseconds(timers.elapsed()))
            .saturating_sub(milliseconds(machine.elapsed()));
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond().saturating_add(ahead)).unwrap_or(now)
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

/// `2024-05-01T10:00:00Z`: Nova, Neutron, Glance.
pub(crate) fn zulu(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2024-05-01T10:00:00`: Octavia.
pub(crate) fn naive(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S").to_string()
}

/// `2024-05-01T10:00:00.000000`: Cinder.
pub(crate) fn naive_micros(time: Timestamp) -> String {
    format!("{}.{:06}", naive(time), time.subsec_nanosecond() / 1000)
}

/// `2024-05-01T10:00:00.000000Z`: Keystone.
pub(crate) fn zulu_micros(time: Timestamp) -> String {
    format!("{}.000000Z", naive(time))
}
