//! Status of a deployment.

use std::sync::Arc;

use api::conditions::{self, Reason, Type, Verdict};
use api::core::v1beta2::{Machine, MachineDeployment, MachineDeploymentPhase, MachineSet};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::runtime::controller::Action;
use api::selector;
use operator::controller::RESYNC;
use operator::patch;

use super::{Duties, machines_of, of, rollout};
use crate::duties::reported;
use crate::error::{Doing, Error, is_absent};
use crate::news::{self, BLOCKED};
use crate::{Context, counts, pause};

/// Reports the pause of the deployment.
pub(super) async fn paused(
    ctx: &Context,
    deployment: &MachineDeployment,
    why: &str,
) -> Result<Action, Error> {
    let mut after = deployment.clone();
    let status = after.status.get_or_insert_default();
    let generation = deployment.metadata.generation;
    pause::record(&mut status.conditions, Some(why), generation, ctx.now());
    store(ctx, deployment, &after).await?;
    let news = news::pause(deployment.conditions(), after.conditions());
    news::publish(ctx, deployment, news).await;
    Ok(Action::requeue(RESYNC))
}

/// Writes the status of the deployment; `applied` is the result of creating, changing and deleting its sets. Returns
/// the error for a repeated reconcile.
pub(super) async fn write(
    ctx: &Context,
    deployment: &MachineDeployment,
    sets: &[Arc<MachineSet>],
    (applied, mut duties): (Result<Vec<String>, Error>, Duties),
) -> Result<(), Error> {
    let machines = machines_of(ctx, sets);
    let hindrance = applied.as_ref().err().and_then(reported);
    let hindrance = hindrance.map(|line| format!("* {line}"));
    let hindrance = hindrance.unwrap_or_default();
    let replaced = duties.note(applied).unwrap_or_default();
    let seen = (sets, machines.as_slice(), replaced.as_slice());
    let after = observed(deployment, seen, &hindrance, &duties, ctx.now());
    let stored = store(ctx, deployment, &after).await;
    if stored.is_ok() {
        let news = news::of_deployment(deployment, &after);
        news::publish(ctx, deployment, news).await;
    }
    duties.done().and(stored)
}

/// Deployment with the derived status of its sets and [`Machine`]s, and reasons against an update in place.
pub(super) fn observed(
    deployment: &MachineDeployment,
    (sets, machines, replaced): (&[Arc<MachineSet>], &[Arc<Machine>], &[String]),
    hindrance: &str,
    duties: &Duties,
    now: Timestamp,
) -> MachineDeployment {
    let mut after = deployment.clone();
    let numbers = counts::of(machines);
    let wanted = if deployment.is_deleting() {
        0
    } else {
        deployment.replicas()
    };
    let status = after.status.get_or_insert_default();
    status.replicas = Some(numbers.replicas);
    status.ready_replicas = Some(numbers.ready);
    status.available_replicas = Some(numbers.available);
    status.up_to_date_replicas = Some(numbers.up_to_date);
    status.versions = counts::versions(machines);
    let text = selector::to_query(&deployment.spec.selector);
    status.selector = Some(text).filter(|text| !text.is_empty());
    status.phase = Some(phase(numbers.replicas, wanted));
    if duties.report(&mut status.conditions, deployment.metadata.generation, now) {
        status.observed_generation = deployment.metadata.generation;
    }
    let blocked = [hindrance.to_owned(), obstacles(sets)];
    let blocked: Vec<_> = blocked
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect();
    let blocked = blocked.join("\n");
    let [up, down] = counts::scaling(numbers.replicas, wanted, [&blocked, hindrance]);
    let left = format!("{} MachineSets are left", sets.len());
    let verdicts = [
        available(deployment, numbers.available),
        rolling_out(machines, replaced, &blocked),
        up,
        down,
        counts::machines_ready(machines),
        counts::machines_up_to_date(machines),
        counts::remediating(machines),
        counts::deleting(deployment.is_deleting(), &left),
        pause::verdict(None),
    ];
    for verdict in verdicts {
        conditions::set(
            &mut status.conditions,
            verdict,
            deployment.metadata.generation,
            now,
        );
    }
    after
}

fn phase(there: i32, wanted: i32) -> MachineDeploymentPhase {
    match there.cmp(&wanted) {
        std::cmp::Ordering::Less => MachineDeploymentPhase::ScalingUp,
        std::cmp::Ordering::Equal => MachineDeploymentPhase::Running,
        std::cmp::Ordering::Greater => MachineDeploymentPhase::ScalingDown,
    }
}

fn available(deployment: &MachineDeployment, available: i32) -> Verdict {
    if deployment.is_deleting() {
        return Verdict::new(Type::Available, false, Reason::NotAvailable)
            .because("Deletion in progress");
    }
    let bounds = rollout::bounds(deployment);
    let least = bounds.replicas - bounds.unavailable;
    if available >= least {
        return Verdict::new(Type::Available, true, Reason::Available);
    }
    Verdict::new(Type::Available, false, Reason::NotAvailable).because(format!(
        "{available} available replicas, at least {least} required"
    ))
}

/// Obstacles of `sets` to the creation of machines, one line each.
fn obstacles(sets: &[Arc<MachineSet>]) -> String {
    let scaling = sets.iter().filter(|set| !set.is_deleting());
    let scaling = scaling.filter_map(|set| conditions::find(set.conditions(), Type::ScalingUp));
    let mut lines: Vec<_> = scaling
        .flat_map(|condition| news::list_of_obstacles(&condition.message))
        .map(|line| format!("* {line}"))
        .collect();
    lines.dedup();
    lines.join("\n")
}

fn rolling_out(machines: &[Arc<Machine>], replaced: &[String], blocked: &str) -> Verdict {
    let outdated: Vec<_> = machines
        .iter()
        .filter_map(|machine| conditions::find(machine.conditions(), Type::UpToDate))
        .filter(|condition| condition.status == "False")
        .collect();
    let Some(first) = outdated.first() else {
        return Verdict::new(Type::RollingOut, false, Reason::NotRollingOut);
    };
    let mut text = format!(
        "Rolling out {} not up-to-date replicas\n{}",
        outdated.len(),
        first.message
    );
    for reason in replaced {
        text = format!("{text}\n* Replaced, not updated in place: {reason}");
    }
    if !blocked.is_empty() {
        text = format!("{text}\nThe roll-out {BLOCKED}\n{blocked}");
    }
    Verdict::new(Type::RollingOut, true, Reason::RollingOut).because(text)
}

async fn store(
    ctx: &Context,
    before: &MachineDeployment,
    after: &MachineDeployment,
) -> Result<(), Error> {
    let api = ctx.api::<MachineDeployment>(&before.namespace().unwrap_or_default());
    match patch::status(&api, before, after).await {
        Err(error) if is_absent(&error) && before.is_deleting() => Ok(()),
        // A conflict if `note` has just written the deployment: the retry writes the status.
        other => other
            .map(|_| ())
            .doing(|| of("writing the status of", before)),
    }
}
