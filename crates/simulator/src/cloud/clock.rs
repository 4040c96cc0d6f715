//! The time of the cloud: that of the machine plus what tests have added, and the formats of the services.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// A clock that is never behind that of the machine.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    ahead_milliseconds: AtomicI64,
}

impl Clock {
    /// The time now.
    pub(crate) fn now(&self) -> Timestamp {
        let ahead = self.ahead_milliseconds.load(Ordering::Relaxed);
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond().saturating_add(ahead)).unwrap_or(now)
    }

    /// Advances the clock.
    pub(crate) fn advance(&self, by: Duration) {
        let by = i64::try_from(by.as_millis()).unwrap_or(0);
        self.ahead_milliseconds.fetch_add(by, Ordering::Relaxed);
    }
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
