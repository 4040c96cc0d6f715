//! Load balancers that stay PENDING: start of the status, and messages.

use std::collections::HashMap;
use std::time::Duration;

use api::k8s_openapi::jiff::Timestamp;
use openstack::loadbalancer::LoadBalancer;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{FALLBACK, Work};
use crate::metrics::Operation;

/// Interval between messages: API servers keep events for an hour.
const AGAIN: Duration = Duration::from_secs(3600);

/// Start of PENDING by load balancer, with the tag of the Service. Lost at a restart, which only delays the event.
#[derive(Debug, Default)]
pub(crate) struct Pendings(Mutex<HashMap<String, Spell>>);

#[derive(Clone, Debug)]
struct Spell {
    id: String,
    status: String,
    since: Instant,
    /// Same as a time of day.
    seen: Timestamp,
    reported: Option<Instant>,
}

impl Pendings {
    /// Records the status of a [`LoadBalancer`]. Returns the start of the PENDING status if a message is due: once after
    /// `limit`, and then once in an hour.
    fn observe(
        &self,
        tag: &str,
        balancer: &LoadBalancer,
        limit: Duration,
        now: (Instant, Timestamp),
    ) -> Option<Timestamp> {
        let mut all = self.0.lock();
        let status = balancer.provisioning_status.as_str();
        if !status.starts_with("PENDING_") {
            all.remove(tag);
            return None;
        }
        let (now, seen) = now;
        let same = |spell: &&mut Spell| spell.id == balancer.id && spell.status == status;
        let Some(spell) = all.get_mut(tag).filter(same) else {
            let spell = Spell {
                id: balancer.id.clone(),
                status: status.to_owned(),
                since: now,
                seen,
                reported: None,
            };
            all.insert(tag.to_owned(), spell);
            return None;
        };
        let is_due = match spell.reported {
            None => now.duration_since(spell.since) >= limit,
            Some(reported) => now.duration_since(reported) >= AGAIN,
        };
        is_due.then(|| {
            spell.reported = Some(now);
            spell.seen
        })
    }

    /// Forgets the load balancer of a Service without one.
    fn forget(&self, tag: &str) {
        self.0.lock().remove(tag);
    }
}

/// Emits an event about a [`LoadBalancer`] that is PENDING for too long. `None`: there is no load balancer.
pub(super) async fn watch(work: &Work<'_>, operation: Operation, balancer: Option<&LoadBalancer>) {
    let tag = work.identity.service_tag();
    let Some(balancer) = balancer else {
        return work.shared.pendings.forget(&tag);
    };
    let limit = work.ctx.options.pending_limit;
    let now = (Instant::now(), Timestamp::now());
    if let Some(since) = work.shared.pendings.observe(&tag, balancer, limit, now) {
        work.warn(operation.failed(), &words(balancer, since)).await;
    }
}

/// Time of the next reconcile of a waiting Service.
pub(super) fn next_look(work: &Work<'_>) -> Duration {
    FALLBACK.min(work.ctx.options.pending_limit)
}

fn words(balancer: &LoadBalancer, since: Timestamp) -> String {
    let LoadBalancer {
        id,
        name,
        provisioning_status: status,
        ..
    } = balancer;
    let effect = match status.as_str() {
        "PENDING_CREATE" => "the Service has no address",
        "PENDING_DELETE" => "neither a new load balancer is created nor is the Service released",
        _ => "new ports, members and settings of the Service are not served",
    };
    // Counted from the second of the first observation.
    let since = since.strftime("%Y-%m-%dT%H:%M:%SZ");
    format!(
        "load balancer {id} ({name}) is in {status}, since {since} or longer; until it is ACTIVE or ERROR, Octavia refuses \
         every change, and {effect}. Ask the cloud's operator why Octavia's workers do not end it (`openstack loadbalancer \
         status show {id}` shows what is pending)"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn balancer(id: &str, status: &str) -> LoadBalancer {
        LoadBalancer {
            id: id.to_owned(),
            provisioning_status: status.to_owned(),
            ..LoadBalancer::default()
        }
    }

    #[test]
    fn a_spell_is_reported_after_the_limit_and_once_in_an_hour() {
        let (all, start) = (Pendings::default(), Instant::now());
        let limit = Duration::from_secs(300);
        let look = |seconds: u64, balancer: &LoadBalancer| {
            let now = start + Duration::from_secs(seconds);
            let time = Timestamp::from_second(i64::try_from(seconds).unwrap()).unwrap();
            let since = all.observe("s", balancer, limit, (now, time));
            since.map(Timestamp::as_second)
        };
        let updated = balancer("a", "PENDING_UPDATE");
        assert_eq!(look(10, &updated), None);
        assert_eq!(look(309, &updated), None);
        assert_eq!(look(310, &updated), Some(10));
        assert_eq!(look(325, &updated), None);
        assert_eq!(look(3909, &updated), None);
        assert_eq!(look(3910, &updated), Some(10));
        // The load balancer was ready in between, the next spell has another status, or the load balancer is a new
        // one.
        assert_eq!(look(3915, &balancer("a", "ACTIVE")), None);
        assert_eq!(look(4000, &updated), None);
        assert_eq!(look(4290, &balancer("a", "PENDING_DELETE")), None);
        assert_eq!(look(4580, &balancer("b", "PENDING_DELETE")), None);
        assert_eq!(look(4590, &balancer("b", "PENDING_DELETE")), None);
        assert_eq!(look(4880, &balancer("b", "PENDING_DELETE")), Some(4580));
    }

    #[test]
    fn the_words_name_load_balancer_status_time_effect_and_whom_to_ask() {
        let since = "2026-07-01T08:00:00.25Z".parse().unwrap();
        for (status, effect) in [
            ("PENDING_CREATE", "the Service has no address"),
            ("PENDING_UPDATE", "new ports, members and settings"),
            ("PENDING_DELETE", "nor is the Service released"),
        ] {
            let balancer = LoadBalancer {
                name: "kube_service_a".to_owned(),
                ..balancer("lb-1", status)
            };
            let words = words(&balancer, since);
            let start = format!(
                "load balancer lb-1 (kube_service_a) is in {status}, since 2026-07-01T08:00:00Z or"
            );
            assert!(words.starts_with(&start), "{words}");
            for part in [effect, "Ask the cloud's operator", "status show lb-1"] {
                assert!(words.contains(part), "{words}");
            }
        }
    }
}
