//! Conditions of a Cluster for its machines, and for the objects that replace or scale machines.
//!
//! Names, reasons and the counted objects are upstream's. None of these conditions is part of `Available`.

use std::sync::Arc;
use std::time::Duration;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::k8s_openapi::jiff::Timestamp;
use api::kube::ResourceExt;
use api::kube::api::DynamicObject;

use super::facts::Facts;
use crate::external::{Referenced, contract};
use crate::owners;
use crate::summary::{Member, Reasons, aggregate, aggregate_of_changes, some_of};

/// Age up to which a machine without the condition `UpToDate` is left out: no controller has looked at it yet.
const YOUNG: Duration = Duration::from_secs(10);

/// Descendants of a Cluster.
#[derive(Debug)]
pub(super) struct Descendants<'a> {
    /// Control plane, if any, or the reason why the control plane cannot be read.
    pub(super) control_plane: Result<Option<&'a DynamicObject>, &'a str>,
    pub(super) machines: &'a [Arc<Machine>],
    pub(super) sets: &'a [Arc<MachineSet>],
    pub(super) deployments: &'a [Arc<MachineDeployment>],
}

impl<'a> Descendants<'a> {
    pub(super) fn from_facts(facts: &'a Facts) -> Self {
        Self {
            control_plane: match &facts.control_plane {
                Referenced::There(object, _) => Ok(Some(object)),
                Referenced::Unreadable(why) => Err(why),
                Referenced::Nothing | Referenced::Missing => Ok(None),
            },
            machines: &facts.machines,
            sets: &facts.sets,
            deployments: &facts.deployments,
        }
    }
}

/// The conditions.
pub(super) fn verdicts(cluster: &Cluster, seen: &Descendants<'_>, now: Timestamp) -> Vec<Verdict> {
    let (of_plane, workers): (Vec<_>, Vec<_>) = seen
        .machines
        .iter()
        .partition(|machine| machine.is_control_plane());
    vec![
        ready(Type::ControlPlaneMachinesReady, &of_plane),
        ready(Type::WorkerMachinesReady, &workers),
        up_to_date(Type::ControlPlaneMachinesUpToDate, &of_plane, now),
        up_to_date(Type::WorkerMachinesUpToDate, &workers, now),
        changing(cluster, seen, &ROLLING_OUT),
        changing(cluster, seen, &SCALING_UP),
        changing(cluster, seen, &SCALING_DOWN),
        remediating(seen.machines),
    ]
}

/// Time until a [`Machine`] that is left out now will count.
pub(super) fn look_again(machines: &[Arc<Machine>], now: Timestamp) -> Option<Duration> {
    let young = machines.iter().filter_map(|machine| youth(machine, now));
    young.min()
}

fn ready(type_: Type, machines: &[&Arc<Machine>]) -> Verdict {
    let reasons = Reasons {
        good: Reason::Ready,
        bad: Reason::NotReady,
        unknown: Reason::ReadyUnknown,
    };
    of_machines(type_, Type::Ready, machines, reasons)
}

fn up_to_date(type_: Type, machines: &[&Arc<Machine>], now: Timestamp) -> Verdict {
    let reasons = Reasons {
        good: Reason::UpToDate,
        bad: Reason::NotUpToDate,
        unknown: Reason::UpToDateUnknown,
    };
    let seen = machines
        .iter()
        .filter(|machine| youth(machine, now).is_none());
    let seen: Vec<_> = seen.copied().collect();
    of_machines(type_, Type::UpToDate, &seen, reasons)
}

/// Remaining time in which a [`Machine`] without `UpToDate` counts as new; `None` if the machine counts.
fn youth(machine: &Machine, now: Timestamp) -> Option<Duration> {
    if conditions::find(machine.conditions(), Type::UpToDate).is_some() {
        return None;
    }
    let created = machine.metadata.creation_timestamp.as_ref()?.0;
    let age = Duration::try_from(now.duration_since(created)).unwrap_or_default();
    YOUNG.checked_sub(age).filter(|left| !left.is_zero())
}

fn of_machines(type_: Type, from: Type, machines: &[&Arc<Machine>], reasons: Reasons) -> Verdict {
    if machines.is_empty() {
        return Verdict::new(type_, true, Reason::NoReplicas);
    }
    let names: Vec<_> = machines.iter().map(|machine| machine.name_any()).collect();
    let objects = names
        .iter()
        .zip(machines)
        .map(|(name, machine)| (name.as_str(), machine.conditions()));
    aggregate(type_, from, objects, "Machine", reasons)
}

/// Condition with the status true while one of the objects changes.
struct Change {
    type_: Type,
    reasons: Reasons,
    /// True if MachineSets without a MachineDeployment count.
    of_sets: bool,
}

const ROLLING_OUT: Change = Change {
    type_: Type::RollingOut,
    reasons: Reasons {
        good: Reason::NotRollingOut,
        bad: Reason::RollingOut,
        unknown: Reason::RollingOutUnknown,
    },
    of_sets: false,
};

const SCALING_UP: Change = Change {
    type_: Type::ScalingUp,
    reasons: Reasons {
        good: Reason::NotScalingUp,
        bad: Reason::ScalingUp,
        unknown: Reason::ScalingUpUnknown,
    },
    of_sets: true,
};

const SCALING_DOWN: Change = Change {
    type_: Type::ScalingDown,
    reasons: Reasons {
        good: Reason::NotScalingDown,
        bad: Reason::ScalingDown,
        unknown: Reason::ScalingDownUnknown,
    },
    of_sets: true,
};

fn changing(cluster: &Cluster, seen: &Descendants<'_>, change: &Change) -> Verdict {
    let type_ = change.type_;
    let plane = match seen.control_plane {
        Ok(plane) => plane,
        Err(why) => {
            return Verdict::new(type_, Status::Unknown, Reason::InternalError).because(why);
        }
    };
    let mut members = Vec::new();
    // By the contract, the condition is optional for a control plane.
    if let Some((plane, found)) = plane.and_then(|it| Some((it, contract::condition(it, type_)?))) {
        members.push(Member {
            kind: plane.types.as_ref().map_or("", |types| &types.kind),
            name: plane.metadata.name.as_deref().unwrap_or_default(),
            condition: Some((
                Status::parse(&found.status),
                match found.message.is_empty() {
                    true => found.reason,
                    false => found.message,
                },
            )),
        });
    }
    for deployment in seen.deployments {
        let name = deployment.metadata.name.as_deref().unwrap_or_default();
        let list = deployment.conditions();
        members.push(Member::new("MachineDeployment", name, list, type_));
    }
    let alone = |set: &&Arc<MachineSet>| owners::is_owned_by(&set.metadata, cluster);
    for set in seen.sets.iter().filter(|set| change.of_sets && alone(set)) {
        let name = set.metadata.name.as_deref().unwrap_or_default();
        members.push(Member::new("MachineSet", name, set.conditions(), type_));
    }
    aggregate_of_changes(type_, members, change.reasons)
}

fn remediating(machines: &[Arc<Machine>]) -> Verdict {
    let failed = |machine: &&Arc<Machine>, type_| {
        let found = conditions::find(machine.conditions(), type_);
        found.is_some_and(|found| found.status == "False")
    };
    let ill = machines
        .iter()
        .filter(|machine| failed(machine, Type::HealthCheckSucceeded));
    let (due, left): (Vec<_>, Vec<_>) =
        ill.partition(|machine| failed(machine, Type::OwnerRemediated));
    if due.is_empty() {
        let quiet = Verdict::new(Type::Remediating, false, Reason::NotRemediating);
        return quiet.because(left_alone(&left));
    }
    let names: Vec<_> = due.iter().map(|machine| machine.name_any()).collect();
    let objects = names
        .iter()
        .zip(due)
        .map(|(name, machine)| (name.as_str(), machine.conditions()));
    let reasons = Reasons {
        good: Reason::NotRemediating,
        bad: Reason::Remediating,
        unknown: Reason::Remediating,
    };
    let found = aggregate(
        Type::Remediating,
        Type::OwnerRemediated,
        objects,
        "Machine",
        reasons,
    );
    Verdict::new(Type::Remediating, true, Reason::Remediating).because(found.message)
}

/// Message for [`Machine`]s with a failed health check and no replacement.
fn left_alone(machines: &[&Arc<Machine>]) -> String {
    let names: Vec<_> = machines
        .iter()
        .filter_map(|machine| machine.metadata.name.as_deref())
        .collect();
    match names.len() {
        0 => String::new(),
        1 => format!("Machine {} is not healthy (not to be remediated)", names[0]),
        _ => format!(
            "Machines {} are not healthy (not to be remediated)",
            some_of(&names)
        ),
    }
}

#[cfg(test)]
mod tests;
