//! The observed state of a Lease. Pure functions: time is an argument.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

/// Duration of a Lease without one: the Lease expires at once.
const NO_DURATION: Duration = Duration::ZERO;

/// Holder of the Lease, relative to this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The Lease has not been read yet.
    Unknown,
    /// No holder: the Lease does not exist, was released, or has expired.
    Free,
    /// This process.
    Ours,
    /// Another process.
    Taken,
}

/// Record of a Lease, and the time of its first observation.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    seen: Option<(Record, Instant)>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Record {
    holder: Option<String>,
    renewed: Option<MicroTime>,
    duration: Duration,
}

impl Observed {
    /// Records the spec read at `now`: `None` when the Lease does not exist or is empty.
    pub(super) fn see(&mut self, spec: Option<LeaseSpec>, now: Instant) {
        let spec = spec.unwrap_or_default();
        let seconds = spec.lease_duration_seconds.unwrap_or_default();
        let record = Record {
            holder: spec.holder_identity.filter(|holder| !holder.is_empty()),
            renewed: spec.renew_time,
            duration: u64::try_from(seconds).map_or(NO_DURATION, Duration::from_secs),
        };
        if self.seen.as_ref().is_none_or(|(known, _)| *known != record) {
            self.seen = Some((record, now));
        }
    }

    /// Returns the holder of the Lease at `now`.
    pub(super) fn standing(&self, me: &str, now: Instant) -> Standing {
        let Some((record, since)) = &self.seen else {
            return Standing::Unknown;
        };
        match &record.holder {
            None => Standing::Free,
            Some(holder) if holder == me => Standing::Ours,
            Some(_) if now.duration_since(*since) >= record.duration => Standing::Free,
            Some(_) => Standing::Taken,
        }
    }

    /// Returns the time since the record changed; the maximum duration without a record.
    pub(super) fn age(&self, now: Instant) -> Duration {
        self.seen
            .as_ref()
            .map_or(Duration::MAX, |(_, since)| now.duration_since(*since))
    }

    /// Returns the identity of the holder.
    pub(super) fn holder(&self) -> Option<String> {
        self.seen
            .as_ref()
            .and_then(|(record, _)| record.holder.clone())
    }
}
