//! Remediation: replacement of machines with a failed health check.

use std::cmp::Reverse;
use std::sync::Arc;

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::{Machine, MachineSet};
use api::k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use api::kube::ResourceExt;

use super::{Duties, apply, is_current, status, waits_for_remediation};
use crate::error::Error;
use crate::machinedeployment::rollout;
use crate::news::{self, PendingEvent, WAITING};
use crate::{Context, owners};

/// Condition of a machine that waits for its replacement, with the reason.
const TYPE: Type = Type::OwnerRemediated;

/// Fate of a machine with a failed health check.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Fate {
    /// Deleted, and replaced by the set.
    Replaced,
    /// Left alone, for a reason of upstream and these sentences.
    Stays(Reason, Vec<String>),
}

/// `maxInFlight`: the number, and the value of the field.
type Limit = (usize, String);

/// Deletes [`Machine`]s that wait for remediation, newest first, up to `maxInFlight`; the set creates their
/// replacements. The others report why they stay. `problems` are the failed preflight checks.
pub(super) async fn run(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    problems: &[String],
    duties: &mut Duties,
) {
    // The deployment triggers the set once known.
    let Some(differences) = is_current(ctx, set) else {
        return;
    };
    let limit = limit(ctx, set);
    let fates = decide(machines, differences.is_empty(), limit.as_ref(), problems);
    for (machine, fate) in fates {
        let done = match fate {
            Fate::Replaced => replace(ctx, set, machine).await,
            Fate::Stays(reason, why) => defer(ctx, machine, reason, &why).await,
        };
        duties.note(done);
    }
}

/// Machines that wait for their replacement, each with its [`Fate`] now.
fn decide<'a>(
    machines: &'a [Arc<Machine>],
    is_current: bool,
    limit: Option<&Limit>,
    problems: &[String],
) -> Vec<(&'a Arc<Machine>, Fate)> {
    let under_way = machines
        .iter()
        .filter(|machine| machine.is_deleting())
        .filter(|machine| conditions::is_true(machine.conditions(), TYPE))
        .count();
    let mut waiting: Vec<_> = machines
        .iter()
        .filter(|machine| !machine.is_deleting())
        .filter(|machine| waits_for_remediation(machine) || is_interrupted(machine))
        .collect();
    waiting.sort_by_key(|machine| Reverse(machine.creation_timestamp().map(|time| time.0)));
    let room = limit.map_or(usize::MAX, |(most, _)| most.saturating_sub(under_way));
    let fate = |at: usize| {
        if !is_current {
            let why = "Machine won't be remediated because it is pending removal due to rollout";
            Fate::Stays(Reason::CannotBeRemediated, vec![why.to_owned()])
        } else if let Some((_, value)) = limit.filter(|_| at >= room) {
            let why = format!(
                "{WAITING}other machines: too many remediations are in progress \
                 (spec.remediation.maxInFlight is {value})"
            );
            Fate::Stays(Reason::RemediationDeferred, vec![why])
        } else if !problems.is_empty() {
            Fate::Stays(Reason::RemediationDeferred, problems.to_vec())
        } else {
            Fate::Replaced
        }
    };
    let fates = waiting.into_iter().enumerate();
    fates.map(|(at, machine)| (machine, fate(at))).collect()
}

/// Marks and deletes a [`Machine`].
async fn replace(ctx: &Context, set: &MachineSet, machine: &Machine) -> Result<(), Error> {
    let verdict = Verdict::new(TYPE, true, Reason::MachineDeleting)
        .because("The Machine failed its health check and is being replaced");
    status::conclude(ctx, machine, verdict).await?;
    apply::delete_machine(ctx, set, machine).await
}

/// Reports on a [`Machine`] why it is not replaced, with an event for a new reason.
async fn defer(
    ctx: &Context,
    machine: &Machine,
    reason: Reason,
    why: &[String],
) -> Result<(), Error> {
    let lines: Vec<_> = why.iter().map(|line| format!("* {line}")).collect();
    let verdict = Verdict::new(TYPE, false, reason).because(match why {
        [one] if reason != Reason::RemediationDeferred => one.clone(),
        _ => lines.join("\n"),
    });
    let known = conditions::find(machine.conditions(), TYPE);
    if known.is_some_and(|it| it.reason == verdict.reason && it.message == verdict.message) {
        return Ok(());
    }
    status::conclude(ctx, machine, verdict).await?;
    let note = format!("Not replaced: {}", why.join("; "));
    // A warning, unless it passes without intervention.
    let passes =
        reason != Reason::RemediationDeferred || why.iter().all(|it| it.starts_with(WAITING));
    let news = match passes {
        true => PendingEvent::normal(reason.as_str(), "Remediate", note),
        false => PendingEvent::warning(reason.as_str(), "Remediate", note),
    };
    news::publish(ctx, machine, [news]).await;
    Ok(())
}

/// True if the [`Machine`] was marked as remediated, but not deleted: the controller was stopped in between.
fn is_interrupted(machine: &Machine) -> bool {
    conditions::find(machine.conditions(), Type::HealthCheckSucceeded)
        .is_some_and(|found| found.status == "False")
        && conditions::is_true(machine.conditions(), TYPE)
}

/// `maxInFlight` of the set's deployment; unlimited if unset.
fn limit(ctx: &Context, set: &MachineSet) -> Option<Limit> {
    let owner = owners::controller_of(&set.metadata)?;
    let namespace = set.namespace().unwrap_or_default();
    let deployment = ctx.machinedeployments.get(&namespace, &owner.name)?;
    let limit = deployment
        .spec
        .remediation
        .as_ref()?
        .max_in_flight
        .as_ref()?;
    let most = rollout::scaled(limit, deployment.replicas(), true);
    let value = match limit {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.clone(),
    };
    Some((usize::try_from(most).unwrap_or(0), value))
}

#[cfg(test)]
mod tests;
