//! The status of a set, and the condition `UpToDate` of its machines.

use std::sync::Arc;

use api::conditions::{self, Status, Verdict};
use api::core::v1beta2::{Machine, MachineSet};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::selector;
use operator::controller::RESYNC;
use operator::patch;
use operator::words::chain;

use super::{is_current, patch_status};
use crate::error::{Doing, Error};
use crate::{Context, counts, news, pause};

/// Reports that the set is paused.
pub(super) async fn paused(ctx: &Context, set: &MachineSet, why: &str) -> Result<Action, Error> {
    let mut after = set.clone();
    let status = after.status.get_or_insert_default();
    pause::record(
        &mut status.conditions,
        Some(why),
        set.metadata.generation,
        ctx.now(),
    );
    patch_status(ctx, set, &after).await?;
    Ok(Action::requeue(RESYNC))
}

/// Writes the status of the set and the condition `UpToDate` of its machines.
pub(super) async fn write(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    problems: &[String],
    error: Option<&Error>,
) -> Result<(), Error> {
    let now = ctx.now();
    let freshness = freshness(ctx, set);
    for machine in machines {
        let mut after = machine.as_ref().clone();
        let status = after.status.get_or_insert_default();
        let verdict = freshness.clone();
        conditions::set(
            &mut status.conditions,
            verdict,
            machine.metadata.generation,
            now,
        );
        if conditions::find(machine.conditions(), "UpToDate").map(brief)
            == conditions::find(&status.conditions, "UpToDate").map(brief)
        {
            continue;
        }
        let api = ctx.api::<Machine>(&machine.namespace().unwrap_or_default());
        match patch::status(&api, machine, &after).await {
            Err(gone) if crate::error::is_absent(&gone) => {}
            other => {
                let name = machine.name_any();
                other.doing(|| format!("writing the status of Machine {name}"))?;
            }
        }
    }
    let mut hindrances: Vec<_> = problems.iter().map(|line| format!("* {line}")).collect();
    hindrances.extend(error.map(|error| format!("* {}", chain(error))));
    let after = observed(set, machines, &hindrances.join("\n"), error.is_none(), now);
    patch_status(ctx, set, &after).await?;
    // A failed creation has an event of its own.
    if error.is_none() {
        let blocked = news::blocked(set.conditions(), after.conditions(), "PreflightCheckFailed");
        news::publish(ctx, set, blocked).await;
    }
    Ok(())
}

/// The set with the status derived from its machines.
pub(super) fn observed(
    set: &MachineSet,
    machines: &[Arc<Machine>],
    hindrance: &str,
    succeeded: bool,
    now: Timestamp,
) -> MachineSet {
    let mut after = set.clone();
    let status = after.status.get_or_insert_default();
    let numbers = counts::of(machines);
    status.replicas = Some(numbers.replicas);
    status.ready_replicas = Some(numbers.ready);
    status.available_replicas = Some(numbers.available);
    status.up_to_date_replicas = Some(numbers.up_to_date);
    status.versions = counts::versions(machines);
    status.selector = Some(selector::to_query(&set.spec.selector)).filter(|text| !text.is_empty());
    if succeeded {
        status.observed_generation = set.metadata.generation;
    }
    let wanted = if set.is_deleting() { 0 } else { set.replicas() };
    let left = format!("{} Machines are left", machines.len());
    let [up, down] = counts::scaling(numbers.replicas, wanted, hindrance);
    let verdicts = [
        up,
        down,
        counts::machines_ready(machines),
        counts::machines_up_to_date(machines),
        counts::remediating(machines),
        counts::deleting(set.is_deleting(), &left),
        pause::verdict(None),
    ];
    for verdict in verdicts {
        conditions::set(
            &mut status.conditions,
            verdict,
            set.metadata.generation,
            now,
        );
    }
    after
}

/// The condition `UpToDate` of the machines of this set.
fn freshness(ctx: &Context, set: &MachineSet) -> Verdict {
    match is_current(ctx, set) {
        None => Verdict::new("UpToDate", Status::Unknown, "UpToDateUnknown")
            .because("The MachineDeployment is not known yet"),
        Some(lines) if lines.is_empty() => Verdict::new("UpToDate", true, "UpToDate"),
        Some(lines) => {
            let lines: Vec<_> = lines.iter().map(|line| format!("* {line}")).collect();
            Verdict::new("UpToDate", false, "NotUpToDate").because(lines.join("\n"))
        }
    }
}

fn brief(condition: &Condition) -> (&str, &str, &str) {
    (&condition.status, &condition.reason, &condition.message)
}
