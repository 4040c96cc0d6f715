//! Status of a set, and the condition `UpToDate` of its machines.

use std::sync::Arc;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::{Machine, MachineSet};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::selector;
use operator::controller::RESYNC;
use operator::patch;

use super::{Duties, is_current, patch_status};
use crate::duties::reported;
use crate::error::{Doing, Error};
use crate::{Context, counts, news, pause};

/// Reports the pause of the set.
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
    let news = news::pause(set.conditions(), after.conditions());
    news::publish(ctx, set, news).await;
    Ok(Action::requeue(RESYNC))
}

/// Writes the condition `UpToDate` of the [`Machine`]s.
pub(super) async fn freshen(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    duties: &mut Duties,
) {
    let freshness = freshness(ctx, set);
    for machine in machines {
        duties.note(conclude(ctx, machine, freshness.clone()).await);
    }
}

/// Writes a condition of a [`Machine`], if it differs.
pub(super) async fn conclude(
    ctx: &Context,
    machine: &Machine,
    verdict: Verdict,
) -> Result<(), Error> {
    let (type_, generation) = (verdict.type_, machine.metadata.generation);
    let mut after = machine.clone();
    let status = after.status.get_or_insert_default();
    conditions::set(&mut status.conditions, verdict, generation, ctx.now());
    if conditions::find(machine.conditions(), type_).map(brief)
        == conditions::find(&status.conditions, type_).map(brief)
    {
        return Ok(());
    }
    let api = ctx.api::<Machine>(&machine.namespace().unwrap_or_default());
    match patch::status(&api, machine, &after).await {
        Err(gone) if crate::error::is_absent(&gone) => Ok(()),
        other => {
            let name = machine.name_any();
            let written = other.doing(|| format!("writing the status of Machine {name}"));
            written.map(drop)
        }
    }
}

/// Writes the status of the set, and ends its reconcile: `scaled` is the result of creating or deleting [`Machine`]s.
pub(super) async fn write(
    ctx: &Context,
    set: &MachineSet,
    machines: &[Arc<Machine>],
    problems: &[String],
    (scaled, mut duties): (Result<(), Error>, Duties),
) -> Result<Action, Error> {
    let failure = scaled.as_ref().err().and_then(reported);
    let list = |line: &String| format!("* {line}");
    let of_deletion: Vec<_> = failure.iter().map(list).collect();
    let of_creation: Vec<_> = problems.iter().chain(&failure).map(list).collect();
    let hindrances = [of_creation.join("\n"), of_deletion.join("\n")];
    duties.note(scaled);
    let after = observed(set, machines, &hindrances, &duties, ctx.now());
    let stored = patch_status(ctx, set, &after).await;
    let (before, after) = (set.conditions(), after.conditions());
    if stored.is_ok() {
        news::publish(ctx, set, news::pause(before, after)).await;
    }
    // A failed creation or deletion has an event of its own.
    if stored.is_ok() && failure.is_none() {
        let blocked = news::blocked(before, after, "PreflightCheckFailed");
        let failed = news::of_duties(before, after);
        news::publish(ctx, set, blocked.into_iter().chain(failed)).await;
    }
    duties.done().and(stored)?;
    Ok(Action::requeue(RESYNC))
}

/// Reports the reason why the machines are unknown, and ends the reconcile; the reported state of the machines stays.
pub(super) async fn unseen(
    ctx: &Context,
    set: &MachineSet,
    duties: Duties,
) -> Result<Action, Error> {
    let mut after = set.clone();
    let list = &mut after.status.get_or_insert_default().conditions;
    duties.report(list, set.metadata.generation, ctx.now());
    let stored = patch_status(ctx, set, &after).await;
    if stored.is_ok() {
        let failed = news::of_duties(set.conditions(), after.conditions());
        news::publish(ctx, set, failed).await;
    }
    duties.done().and(stored)?;
    Ok(Action::requeue(RESYNC))
}

/// Set with the derived status of its [`Machine`]s.
pub(super) fn observed(
    set: &MachineSet,
    machines: &[Arc<Machine>],
    hindrances: &[String; 2],
    duties: &Duties,
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
    if duties.report(&mut status.conditions, set.metadata.generation, now) {
        status.observed_generation = set.metadata.generation;
    }
    let wanted = if set.is_deleting() { 0 } else { set.replicas() };
    let left = format!("{} Machines are left", machines.len());
    let hindrances = hindrances.each_ref().map(String::as_str);
    let [up, down] = counts::scaling(numbers.replicas, wanted, hindrances);
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

/// Condition `UpToDate` of the machines of this set.
fn freshness(ctx: &Context, set: &MachineSet) -> Verdict {
    match is_current(ctx, set) {
        None => Verdict::new(Type::UpToDate, Status::Unknown, Reason::UpToDateUnknown)
            .because("The MachineDeployment is not known yet"),
        Some(lines) if lines.is_empty() => Verdict::new(Type::UpToDate, true, Reason::UpToDate),
        Some(lines) => {
            let lines: Vec<_> = lines.iter().map(|line| format!("* {line}")).collect();
            Verdict::new(Type::UpToDate, false, Reason::NotUpToDate).because(lines.join("\n"))
        }
    }
}

fn brief(condition: &Condition) -> (&str, &str, &str) {
    (&condition.status, &condition.reason, &condition.message)
}
