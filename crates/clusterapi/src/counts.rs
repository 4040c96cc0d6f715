//! Numbers of machines, and the derived conditions of MachineSets, MachineDeployments and Clusters.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::{Machine, VersionCount};
use api::kube::ResourceExt;
use api::version::Version;

use crate::news::BLOCKED;
use crate::summary::{self, Reasons};

/// Numbers of machines with a condition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// All machines.
    pub(crate) replicas: i32,
    /// Machines whose `Ready` is true.
    pub(crate) ready: i32,
    /// Machines whose `Available` is true.
    pub(crate) available: i32,
    /// Machines whose `UpToDate` is true.
    pub(crate) up_to_date: i32,
}

/// Counts `machines`.
pub(crate) fn of(machines: &[Arc<Machine>]) -> Counts {
    let count = |type_: Type| {
        number(
            machines
                .iter()
                .filter(|m| conditions::is_true(m.conditions(), type_))
                .count(),
        )
    };
    Counts {
        replicas: number(machines.len()),
        ready: count(Type::Ready),
        available: count(Type::Available),
        up_to_date: count(Type::UpToDate),
    }
}

/// Numbers of `machines` by Kubernetes version, oldest first; `None` without a known version.
pub(crate) fn versions(machines: &[Arc<Machine>]) -> Option<Vec<VersionCount>> {
    let mut counts: BTreeMap<(Option<Version>, &str), i32> = BTreeMap::new();
    for version in machines
        .iter()
        .filter_map(|machine| machine.spec.version.as_deref())
    {
        *counts.entry((version.parse().ok(), version)).or_default() += 1;
    }
    let list: Vec<_> = counts
        .into_iter()
        .map(|((_, version), count)| VersionCount {
            version: version.to_owned(),
            replicas: Some(count),
        })
        .collect();
    (!list.is_empty()).then_some(list)
}

/// `MachinesReady`, aggregated from `Ready` of the [`Machine`]s.
pub(crate) fn machines_ready(machines: &[Arc<Machine>]) -> Verdict {
    let reasons = Reasons {
        good: Reason::Ready,
        bad: Reason::NotReady,
        unknown: Reason::ReadyUnknown,
    };
    joined(Type::MachinesReady, Type::Ready, machines, reasons)
}

/// `MachinesUpToDate`, aggregated from `UpToDate` of the [`Machine`]s.
pub(crate) fn machines_up_to_date(machines: &[Arc<Machine>]) -> Verdict {
    let reasons = Reasons {
        good: Reason::UpToDate,
        bad: Reason::NotUpToDate,
        unknown: Reason::UpToDateUnknown,
    };
    joined(Type::MachinesUpToDate, Type::UpToDate, machines, reasons)
}

/// `ScalingUp` and `ScalingDown`, from the existing and desired numbers of machines; `hindrances` are lists of the
/// obstacles to creations, and to deletions.
pub(crate) fn scaling(there: i32, wanted: i32, hindrances: [&str; 2]) -> [Verdict; 2] {
    let text = |direction: &str, hindrance: &str| {
        let text = format!("Scaling {direction} from {there} to {wanted} replicas");
        match hindrance {
            "" => text,
            list => format!("{text} {BLOCKED}\n{list}"),
        }
    };
    let [of_creation, of_deletion] = hindrances;
    let up = match there < wanted {
        true => {
            Verdict::new(Type::ScalingUp, true, Reason::ScalingUp).because(text("up", of_creation))
        }
        false => Verdict::new(Type::ScalingUp, false, Reason::NotScalingUp),
    };
    let down = match there > wanted {
        true => Verdict::new(Type::ScalingDown, true, Reason::ScalingDown)
            .because(text("down", of_deletion)),
        false => Verdict::new(Type::ScalingDown, false, Reason::NotScalingDown),
    };
    [up, down]
}

/// `Remediating`: [`Machine`]s with a failed health check and without a replacement.
pub(crate) fn remediating(machines: &[Arc<Machine>]) -> Verdict {
    let sick: Vec<_> = machines
        .iter()
        .filter(|machine| {
            let found = conditions::find(machine.conditions(), Type::OwnerRemediated);
            found.is_some_and(|found| found.status == "False")
        })
        .map(|machine| machine.name_any())
        .collect();
    if sick.is_empty() {
        return Verdict::new(Type::Remediating, false, Reason::NotRemediating);
    }
    let names: Vec<_> = sick.iter().map(String::as_str).collect();
    Verdict::new(Type::Remediating, true, Reason::Remediating).because(format!(
        "* Machines {}: to be replaced",
        summary::some_of(&names)
    ))
}

/// `Deleting`, with a message about the remaining objects.
pub(crate) fn deleting(is_deleting: bool, waiting_for: &str) -> Verdict {
    match is_deleting {
        true => Verdict::new(Type::Deleting, true, Reason::Deleting).because(waiting_for),
        false => Verdict::new(Type::Deleting, false, Reason::NotDeleting),
    }
}

/// Count in the type of Kubernetes.
pub(crate) fn number(count: usize) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn joined(type_: Type, from: Type, machines: &[Arc<Machine>], reasons: Reasons) -> Verdict {
    if machines.is_empty() {
        return Verdict::new(type_, Status::True, Reason::NoReplicas);
    }
    let names: Vec<_> = machines.iter().map(|machine| machine.name_any()).collect();
    let objects = names
        .iter()
        .zip(machines)
        .map(|(name, m)| (name.as_str(), m.conditions()));
    summary::aggregate(type_, from, objects, "Machine", reasons)
}
