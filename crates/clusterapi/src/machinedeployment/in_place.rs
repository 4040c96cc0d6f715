//! Rolling updates in place: machines move to the MachineSet of the current template, and keep their servers.
//!
//! One machine at a time, and a machine under an update is unavailable, so that `maxUnavailable` must be at least 1. The
//! numbers of the sets follow their machines, as with the strategy OnDelete: a set of a former template never creates a
//! machine, and the current one creates what is missing.

use std::sync::Arc;

use api::conditions::{self, Type};
use api::core::v1beta2::{Machine, MachineDeployment, MachineSet};
use api::in_place::Strategy;
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::names::{IN_PLACE_UPDATE_ANNOTATION, RECEIVE_MACHINES_ANNOTATION};

use super::rollout::{self, Bounds};
use crate::{Context, Error, owners, update};

/// Machine of a deployment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    /// Name of the Machine.
    pub(crate) name: String,
    /// Time of its creation.
    pub(crate) created: Option<Timestamp>,
    /// True for a machine of a former template.
    pub(crate) is_old: bool,
    /// True for an available machine.
    pub(crate) is_available: bool,
    /// True for a machine that is being deleted.
    pub(crate) is_deleting: bool,
    /// True for a machine under an update.
    pub(crate) is_updating: bool,
    /// Cause of the failure of the update.
    pub(crate) failure: Option<String>,
    /// Reasons against an update in place.
    pub(crate) obstacles: Vec<String>,
}

/// Next step of an update in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// All machines have the current template.
    Finished,
    /// A machine is under its update, or too many are unavailable.
    Wait,
    /// Begin the update of this machine.
    Begin(String),
    /// Delete this machine, for these reasons; the current set creates another one.
    Replace(String, Vec<String>),
    /// Replace all machines, for these reasons, as without updates in place.
    Roll(Vec<String>),
    /// Nothing can be done in place, and nothing else may be done.
    Refused(Vec<String>),
}

/// Decides the next [`Step`].
pub(crate) fn step(strategy: Strategy, bounds: Bounds, machines: &[Seen]) -> Step {
    let staying = || machines.iter().filter(|machine| !machine.is_deleting);
    if let Some(updating) = staying().find(|machine| machine.is_updating) {
        let why = |text: &String| vec![format!("{}: {text}", updating.name)];
        return match (&updating.failure, strategy) {
            (None, _) => Step::Wait,
            (Some(text), Strategy::Prefer) => Step::Replace(updating.name.clone(), why(text)),
            (Some(text), _) => Step::Refused(why(text)),
        };
    }
    let mut old: Vec<_> = staying().filter(|machine| machine.is_old).collect();
    if old.is_empty() {
        return Step::Finished;
    }
    let prefers = strategy == Strategy::Prefer;
    if bounds.unavailable == 0 {
        let text = "maxUnavailable is 0, and a machine is unavailable while it is updated in place: set \
                    rollout.strategy.rollingUpdate.maxUnavailable to 1";
        return or_refused(prefers, vec![text.to_owned()]);
    }
    if old.iter().all(|machine| !machine.obstacles.is_empty()) {
        return or_refused(prefers, reasons(&old));
    }
    // Machines that are unavailable anyway come first, then the oldest.
    old.sort_by_key(|machine| (machine.is_available, machine.created, machine.name.clone()));
    let mut candidates = old
        .iter()
        .filter(|machine| prefers || machine.obstacles.is_empty());
    let Some(next) = candidates.next() else {
        return Step::Wait;
    };
    let available = staying().filter(|machine| machine.is_available).count();
    let least = usize::try_from(bounds.replicas - bounds.unavailable).unwrap_or(0);
    if next.is_available && available <= least {
        return Step::Wait;
    }
    match next.obstacles.is_empty() {
        true => Step::Begin(next.name.clone()),
        false => Step::Replace(next.name.clone(), reasons(&[next])),
    }
}

fn or_refused(prefers: bool, reasons: Vec<String>) -> Step {
    match prefers {
        true => Step::Roll(reasons),
        false => Step::Refused(reasons),
    }
}

/// Reasons of the machines, each once, with the first machine that has it.
fn reasons(machines: &[&Seen]) -> Vec<String> {
    let mut lines: Vec<(&str, &str)> = Vec::new();
    for machine in machines {
        for obstacle in &machine.obstacles {
            if !lines.iter().any(|(_, known)| known == obstacle) {
                lines.push((&machine.name, obstacle));
            }
        }
    }
    let line = |(name, obstacle): (&str, &str)| format!("{name}: {obstacle}");
    lines.into_iter().map(line).collect()
}

/// Message for machines that must be updated in place and cannot be, and what to do.
pub(crate) fn refusal(reasons: &[String]) -> String {
    format!(
        "{IN_PLACE_UPDATE_ANNOTATION} is Require, and machines cannot be updated in place ({}): set it to Prefer or Never, \
         and they are replaced",
        reasons.join("; ")
    )
}

/// Next [`Step`] towards the template of `current`; `None` without updates in place.
///
/// # Errors
/// For an unknown strategy, and when templates or infrastructure objects cannot be read.
pub(crate) async fn next(
    ctx: &Context,
    deployment: &MachineDeployment,
    current: &MachineSet,
    machines: &[Arc<Machine>],
) -> Result<Option<Step>, Error> {
    let rollout = deployment.spec.rollout.as_ref();
    let kind = rollout.and_then(|rollout| rollout.strategy.as_ref());
    let strategy = update::strategy(&deployment.metadata)
        .map_err(|error| Error::NotInPlace(format!("{IN_PLACE_UPDATE_ANNOTATION}: {error}")))?;
    if strategy == Strategy::Never || !rollout::is_rolling(kind) {
        return Ok(None);
    }
    let mut seen = Vec::new();
    for machine in machines {
        seen.push(look(ctx, current, machine).await?);
    }
    Ok(Some(step(strategy, rollout::bounds(deployment), &seen)))
}

async fn look(ctx: &Context, current: &MachineSet, machine: &Machine) -> Result<Seen, Error> {
    let is_old = !owners::is_controlled_by(&machine.metadata, current);
    let template = &current.spec.template.spec;
    let obstacles = match is_old && !machine.is_deleting() {
        true => update::obstacles(ctx, machine, template).await?,
        false => Vec::new(),
    };
    Ok(Seen {
        name: machine.name_any(),
        created: machine.creation_timestamp().map(|time| time.0),
        is_old,
        is_available: conditions::is_true(machine.conditions(), Type::Available),
        is_deleting: machine.is_deleting(),
        is_updating: update::is_under_way(machine),
        failure: update::failure(machine).map(str::to_owned),
        obstacles,
    })
}

/// True for a set that takes over machines of former ones.
pub(crate) fn receives(set: &MachineSet) -> bool {
    set.annotations().contains_key(RECEIVE_MACHINES_ANNOTATION)
}

/// Sets or removes the annotation of a set that takes over machines. It stays until the set has room for all of its
/// machines: without it, the set would delete a machine that has just come.
pub(crate) fn let_receive(set: &mut MachineSet, from: Option<Vec<String>>) {
    let there = set.status.as_ref().and_then(|status| status.replicas);
    let has_room = there.unwrap_or(0) <= set.replicas();
    let annotations = set.metadata.annotations.get_or_insert_default();
    let name = RECEIVE_MACHINES_ANNOTATION.to_owned();
    match from {
        Some(names) => drop(annotations.insert(name, names.join(","))),
        None if has_room => drop(annotations.remove(&name)),
        None => {}
    }
}

#[cfg(test)]
mod tests;
