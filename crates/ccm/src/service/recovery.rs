//! Load balancers in ERROR that have served: failover, and then a new creation, as allowed in cloud.conf.

use std::collections::HashMap;
use std::time::Duration;

use cloud_conf::Recovery;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::Work;
use super::observed::{Observed, Role};
use crate::context::Error;

/// Maximum number of failovers of a load balancer that stays in ERROR.
const MOST: u32 = 3;
/// Minimum time between two failovers.
const PAUSE: Duration = Duration::from_secs(300);

/// Measure against a load balancer in ERROR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Remedy {
    Failover,
    /// The last failover was not long ago.
    Wait,
    Recreate,
    Report,
}

/// Requested failovers, by load balancer. Lost at a restart, which allows as many again.
#[derive(Debug, Default)]
pub(crate) struct Recoveries(Mutex<HashMap<String, (u32, Instant)>>);

impl Recoveries {
    /// Forgets a load balancer outside of ERROR.
    pub(crate) fn forget(&self, id: &str) {
        self.0.lock().remove(id);
    }

    fn remedy(&self, id: &str, policy: Recovery, now: Instant) -> Remedy {
        let known = self.0.lock().get(id).copied();
        match (policy, known) {
            (Recovery::None, _) => Remedy::Report,
            (_, None) => Remedy::Failover,
            (_, Some((count, last))) if count < MOST => match now.duration_since(last) < PAUSE {
                true => Remedy::Wait,
                false => Remedy::Failover,
            },
            (Recovery::Recreate, _) => Remedy::Recreate,
            (Recovery::Failover, _) => Remedy::Report,
        }
    }

    /// Records a failover; a forbidden one counts as the last one.
    fn record(&self, id: &str, is_allowed: bool, now: Instant) {
        let mut all = self.0.lock();
        let (count, last) = all.entry(id.to_owned()).or_insert((0, now));
        *count = if is_allowed { *count + 1 } else { MOST };
        *last = now;
    }
}

/// Takes the next measure against the ERROR of a load balancer, with an event.
pub(crate) async fn run(work: &Work<'_>, observed: &Observed) -> Result<(), Error> {
    let id = observed.balancer.id.as_str();
    let policy = work.settings.conf.load_balancer.recovery;
    let balancer = &observed.balancer;
    let others = work.identity.others(&balancer.name, &balancer.tags);
    let is_alone = others.is_empty();
    // Others are responsible for a load balancer of another Service or of a user.
    let remedy = match observed.role {
        Role::Owner => work.shared.recoveries.remedy(id, policy, Instant::now()),
        Role::Guest | Role::Applicant => Remedy::Report,
    };
    match remedy {
        Remedy::Wait => Ok(()),
        Remedy::Failover => failover(work, id).await,
        Remedy::Recreate if is_alone => recreate(work, id).await,
        Remedy::Recreate | Remedy::Report => {
            let note = format!(
                "load balancer {id} is in ERROR, and nothing is changed in it: `openstack loadbalancer failover {id}` \
                 repairs it, which an administrator can do"
            );
            work.warn("SyncLoadBalancerFailed", &note).await;
            Ok(())
        }
    }
}

async fn failover(work: &Work<'_>, id: &str) -> Result<(), Error> {
    let result = work.cloud.inventory.failover(id).await;
    let is_denied = |error: &openstack::Error| error.kind() == openstack::ErrorKind::Denied;
    let note = match &result {
        Ok(()) => format!("load balancer {id} is in ERROR: requested its failover"),
        Err(error) if is_denied(error) => format!(
            "load balancer {id} is in ERROR, and the credentials in cloud.conf may not request its failover: {}",
            error.words()
        ),
        Err(_) => {
            let doing = format!("requesting the failover of load balancer {id}");
            return result.map_err(Error::cloud(doing));
        }
    };
    work.shared
        .recoveries
        .record(id, result.is_ok(), Instant::now());
    work.warn("LoadBalancerFailover", &note).await;
    Ok(())
}

/// Deletes the load balancer; the next reconciles create a new one, and attach the floating IP.
async fn recreate(work: &Work<'_>, id: &str) -> Result<(), Error> {
    let deleted = work.cloud.inventory.delete_load_balancer(id).await;
    deleted.map_err(Error::cloud("deleting the load balancer in ERROR"))?;
    // The following differences are not the work of others.
    work.shared.settled.forget(work.identity);
    let note = format!(
        "load balancer {id} stays in ERROR: it is deleted and created again, as error-recovery in cloud.conf says"
    );
    work.warn("LoadBalancerRecreated", &note).await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failovers_are_bounded_and_followed_by_what_cloud_conf_allows() {
        let (all, start) = (Recoveries::default(), Instant::now());
        let at = |seconds| start + Duration::from_secs(seconds);
        assert_eq!(all.remedy("a", Recovery::None, start), Remedy::Report);
        for count in 0..u64::from(MOST) {
            let now = at(count * 300);
            assert_eq!(all.remedy("a", Recovery::Failover, now), Remedy::Failover);
            all.record("a", true, now);
        }
        let last = u64::from(MOST - 1) * 300;
        assert_eq!(
            all.remedy("a", Recovery::Failover, at(last + 1)),
            Remedy::Report
        );
        assert_eq!(
            all.remedy("a", Recovery::Recreate, at(last + 1)),
            Remedy::Recreate
        );
        // The load balancer was ACTIVE again.
        all.forget("a");
        assert_eq!(
            all.remedy("a", Recovery::Failover, at(last + 2)),
            Remedy::Failover
        );
        all.record("a", true, at(last + 2));
        assert_eq!(
            all.remedy("a", Recovery::Failover, at(last + 3)),
            Remedy::Wait
        );
        // Without the right to request failovers, none is tried again.
        all.record("b", false, start);
        assert_eq!(all.remedy("b", Recovery::Failover, at(900)), Remedy::Report);
        assert_eq!(all.remedy("b", Recovery::Recreate, start), Remedy::Recreate);
    }
}
