//! Plan of a health check: counts, permission to replace machines, and time of the next check.

use std::time::Duration;

use api::conditions::{Reason, Type, Verdict};
use api::core::v1beta2::{Cluster, MachineHealthCheck, RemediationTrigger};
use api::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;

use super::verdict::{Cause, Health, Target, health};
use crate::machinedeployment::rollout::scaled;

/// Result of a check.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    /// Names of all checked machines, sorted.
    pub(super) targets: Vec<String>,
    /// Healthy machines.
    pub(super) healthy: Vec<Target>,
    /// Unhealthy machines.
    pub(super) unhealthy: Vec<(Target, Cause)>,
    /// Permission to replace unhealthy machines.
    pub(super) allowed: Allowed,
    /// Time until the next machine may become unhealthy.
    pub(super) next: Option<Duration>,
}

/// Permission to replace unhealthy machines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Allowed {
    /// Yes, with the number of further machines that may become unhealthy.
    Yes(i32),
    /// No, because of this limit.
    No(String),
}

/// Checks `targets` at `now`.
pub(super) fn plan(
    check: &MachineHealthCheck,
    cluster: &Cluster,
    targets: &[Target],
    now: Timestamp,
) -> Plan {
    let checks = check.spec.checks.clone().unwrap_or_default();
    let (mut healthy, mut unhealthy, mut next) = (Vec::new(), Vec::new(), None::<Duration>);
    for target in targets {
        match health(target, cluster, &checks, now) {
            Health::Healthy => healthy.push(target.clone()),
            Health::Unhealthy(cause) => unhealthy.push((target.clone(), cause)),
            Health::Undecided(None) => {}
            Health::Undecided(Some(left)) => next = Some(next.map_or(left, |next| next.min(left))),
        }
    }
    let mut names: Vec<_> = targets
        .iter()
        .map(|target| target.machine.name_any())
        .collect();
    names.sort();
    let remediation = check.spec.remediation.as_ref();
    let trigger = remediation.and_then(|remediation| remediation.trigger_if.as_ref());
    Plan {
        allowed: allowed(trigger, count(names.len()), count(healthy.len())),
        targets: names,
        healthy,
        unhealthy,
        next,
    }
}

/// Starting machines count as unhealthy: their state is unknown.
fn allowed(trigger: Option<&RemediationTrigger>, expected: i32, healthy: i32) -> Allowed {
    let ill = expected - healthy;
    let range = trigger.and_then(|trigger| trigger.unhealthy_in_range.as_deref());
    if let Some((text, (least, most))) =
        range.and_then(|text| Some((text, api::core::unhealthy_range(text)?)))
    {
        return if (least..=most).contains(&ill) {
            Allowed::Yes(most - ill)
        } else {
            Allowed::No(refusal(
                "is not in the range",
                expected,
                ill,
                "unhealthyInRange",
                text,
            ))
        };
    }
    let most = trigger.and_then(|trigger| trigger.unhealthy_less_than_or_equal_to.as_ref());
    let all = IntOrString::String("100%".to_owned());
    let most = most.unwrap_or(&all);
    let left = scaled(most, expected, false) - ill;
    if left >= 0 {
        return Allowed::Yes(left);
    }
    let text = match most {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    let limit = "unhealthyLessThanOrEqualTo";
    Allowed::No(refusal("exceeds the limit", expected, ill, limit, &text))
}

fn refusal(how: &str, expected: i32, ill: i32, limit: &str, value: &str) -> String {
    format!(
        "Remediation is not allowed, the number of not started or unhealthy machines {how} (total: {expected}, unhealthy: {ill}, {limit}: {value})"
    )
}

/// Conditions of the check.
pub(super) fn verdict(allowed: &Allowed) -> Verdict {
    let type_ = Type::RemediationAllowed;
    match allowed {
        Allowed::Yes(_) => Verdict::new(type_, true, Reason::RemediationAllowed),
        Allowed::No(why) => {
            Verdict::new(type_, false, Reason::TooManyUnhealthy).because(why.clone())
        }
    }
}

pub(super) fn count(length: usize) -> i32 {
    i32::try_from(length).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
