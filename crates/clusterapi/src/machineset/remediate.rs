//! Remediation: replacement of machines that failed their health check.

use std::cmp::Reverse;
use std::sync::Arc;

use api::conditions::{self, Verdict};
use api::core::v1beta2::{Machine, MachineSet};
use api::kube::ResourceExt;
use operator::patch;

use super::{apply, is_current, waits_for_remediation};
use crate::error::{Doing, Error};
use crate::machinedeployment::rollout;
use crate::{Context, owners};

/// Deletes machines that wait for remediation, newest first, up to `maxInFlight`; the set creates their replacements. A
/// set with an outdated template does nothing, because its machines are replaced anyway.
pub(super) async fn run(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    problems: &[String],
) -> Result<(), Error> {
    if !problems.is_empty() || is_current(ctx, set).is_none_or(|lines| !lines.is_empty()) {
        return Ok(());
    }
    for machine in chosen(machines, limit(ctx, set)) {
        let verdict = Verdict::new("OwnerRemediated", true, "MachineDeleting")
            .because("The Machine failed its health check and is being replaced");
        let mut after = machine.as_ref().clone();
        let now = ctx.now();
        let status = after.status.get_or_insert_default();
        conditions::set(
            &mut status.conditions,
            verdict,
            machine.metadata.generation,
            now,
        );
        let api = ctx.api::<Machine>(&machine.namespace().unwrap_or_default());
        patch::status(&api, machine, &after)
            .await
            .doing(|| format!("marking Machine {} as remediated", machine.name_any()))?;
        apply::delete_machine(ctx, set, machine).await?;
    }
    Ok(())
}

/// The machines to delete now.
fn chosen(machines: &[Arc<Machine>], limit: usize) -> Vec<&Arc<Machine>> {
    let under_way = machines
        .iter()
        .filter(|machine| machine.is_deleting())
        .filter(|machine| conditions::is_true(machine.conditions(), "OwnerRemediated"))
        .count();
    let mut waiting: Vec<_> = machines
        .iter()
        .filter(|machine| !machine.is_deleting())
        .filter(|machine| waits_for_remediation(machine) || is_interrupted(machine))
        .collect();
    waiting.sort_by_key(|machine| Reverse(machine.creation_timestamp().map(|time| time.0)));
    waiting.truncate(limit.saturating_sub(under_way));
    waiting
}

/// Whether the machine was marked as remediated, but not deleted: the controller was stopped in between.
fn is_interrupted(machine: &Machine) -> bool {
    conditions::find(machine.conditions(), "HealthCheckSucceeded")
        .is_some_and(|found| found.status == "False")
        && conditions::is_true(machine.conditions(), "OwnerRemediated")
}

/// `maxInFlight` of the set's deployment; unlimited if unset.
fn limit(ctx: &Context, set: &MachineSet) -> usize {
    let owner = owners::controller_of(&set.metadata);
    let deployment = owner.and_then(|owner| {
        ctx.machinedeployments
            .get(&set.namespace().unwrap_or_default(), &owner.name)
    });
    let value = deployment.as_ref().and_then(|deployment| {
        let remediation = deployment.spec.remediation.as_ref()?;
        let limit = remediation.max_in_flight.as_ref()?;
        Some(rollout::scaled(limit, deployment.replicas(), true))
    });
    value.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(0))
}

#[cfg(test)]
mod tests;
