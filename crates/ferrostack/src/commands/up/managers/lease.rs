//! Lease of cloud controller managers, held by the Go one and `ferrostack cloud-controller-manager`.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use tokio::time::Instant;

/// The namespace of the Lease.
pub(super) const NAMESPACE: &str = "kube-system";
/// The name of the Lease.
pub(super) const NAME: &str = "cloud-controller-manager";

/// Last observation of the [`Lease`]. The age counts from the change seen by this process, as in client-go, so the
/// clocks of machines need not agree.
#[derive(Debug, Default)]
pub(super) struct Observed(Option<(Option<LeaseSpec>, Instant)>);

/// Holder of the Lease: another process, or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// The Lease has not been read.
    Unknown,
    /// There is no other manager.
    Free,
    /// Another manager holds the Lease, at least until `until`.
    Held {
        /// Identity of the other manager.
        holder: String,
        /// Expiry of the Lease unless renewed.
        until: Instant,
    },
}

impl Observed {
    /// Takes note of the Lease, or of its absence.
    pub(super) fn see(&mut self, lease: Option<Lease>, now: Instant) {
        let spec = lease.and_then(|lease| lease.spec);
        match &self.0 {
            Some((known, _)) if *known == spec => {}
            _ => self.0 = Some((spec, now)),
        }
    }

    /// The standing at `now`.
    pub(super) fn standing(&self, now: Instant) -> Standing {
        let Some((spec, since)) = &self.0 else {
            return Standing::Unknown;
        };
        let holder = spec.as_ref().and_then(|spec| spec.holder_identity.clone());
        let Some(holder) = holder.filter(|holder| !holder.is_empty()) else {
            return Standing::Free;
        };
        let seconds = spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        // The default of the Go manager.
        let until = *since + Duration::from_secs(seconds.unwrap_or(15));
        match until > now {
            true => Standing::Held { holder, until },
            false => Standing::Free,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, transitions: i32) -> Option<Lease> {
        Some(Lease {
            spec: Some(LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: Some(10),
                lease_transitions: Some(transitions),
                ..LeaseSpec::default()
            }),
            ..Lease::default()
        })
    }

    #[test]
    fn a_lease_is_held_until_it_is_released_or_has_not_changed_for_its_duration() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let held = |seconds: u64| Standing::Held {
            holder: "go".to_owned(),
            until: at(seconds),
        };
        let mut observed = Observed::default();
        assert_eq!(observed.standing(start), Standing::Unknown);
        observed.see(None, start);
        assert_eq!(observed.standing(start), Standing::Free);
        observed.see(lease("go", 1), at(1));
        assert_eq!(observed.standing(at(2)), held(11));
        // The same Lease in a new list is not a renewal.
        observed.see(lease("go", 1), at(5));
        assert_eq!(observed.standing(at(10)), held(11));
        observed.see(lease("go", 2), at(10));
        assert_eq!(observed.standing(at(11)), held(20));
        assert_eq!(observed.standing(at(20)), Standing::Free);
        observed.see(lease("", 3), at(21));
        assert_eq!(observed.standing(at(21)), Standing::Free);
        observed.see(lease("go", 4), at(22));
        observed.see(None, at(23));
        assert_eq!(observed.standing(at(23)), Standing::Free);
    }
}
