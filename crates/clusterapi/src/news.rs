//! Events for changes of an object's status. Pure, except for [`publish`].
//!
//! Events are derived from the status before and after, and published once the new status is stored: a repeated
//! reconcile publishes nothing twice.

use std::error::Error;

use api::conditions::{self, Reason, Type};
use api::core::v1beta2::{Cluster, Machine, MachineDeployment, MachineSet};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use api::kube::{Resource, ResourceExt};
use operator::events;

use crate::{Context, duties, pause};

/// Start of the sentence for a check that passes without intervention.
pub(crate) const WAITING: &str = "Waiting for ";

/// Event to publish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PendingEvent {
    type_: events::Type,
    reason: String,
    action: &'static str,
    note: String,
}

impl PendingEvent {
    fn new(
        type_: events::Type,
        reason: &str,
        action: &'static str,
        note: impl Into<String>,
    ) -> Self {
        Self {
            type_,
            reason: reason.to_owned(),
            action,
            note: note.into(),
        }
    }

    /// Creation of the `kind` `name`, or its failure. A write conflict is no failure, because it is repeated at once.
    pub(crate) fn of_creation<E: Error + 'static>(
        kind: &str,
        name: &str,
        result: Result<(), &E>,
    ) -> Option<Self> {
        let (reason, action) = ("SuccessfulCreate", "Create");
        let Err(error) = result else {
            return Some(Self::normal(
                reason,
                action,
                format!("Created {kind} {name}"),
            ));
        };
        let why = duties::reported(error)?;
        let note = format!("{kind} cannot be created: {why}");
        Some(Self::warning("FailedCreate", action, note))
    }

    /// Deletion of the `kind` `name`, or its failure. A write conflict is no failure, because it is repeated at once.
    pub(crate) fn of_deletion<E: Error + 'static>(
        kind: &str,
        name: &str,
        result: Result<(), &E>,
    ) -> Option<Self> {
        let (reason, action) = ("SuccessfulDelete", "Delete");
        let Err(error) = result else {
            return Some(Self::normal(
                reason,
                action,
                format!("Deleted {kind} {name}"),
            ));
        };
        let why = duties::reported(error)?;
        let note = format!("{kind} {name} cannot be deleted: {why}");
        Some(Self::warning("FailedDelete", action, note))
    }

    /// New number of replicas of a [`MachineSet`], after a change.
    pub(crate) fn of_scaling(set: &MachineSet, wanted: i32) -> Option<Self> {
        let had = set.replicas();
        let direction = if wanted > had { "up" } else { "down" };
        let name = set.name_any();
        let note = format!("Scaled {direction} MachineSet {name} from {had} to {wanted} replicas");
        (wanted != had).then(|| Self::normal("SuccessfulScale", "Scale", note))
    }

    pub(crate) fn normal(reason: &str, action: &'static str, note: impl Into<String>) -> Self {
        Self::new(events::Type::Normal, reason, action, note)
    }

    pub(crate) fn warning(reason: &str, action: &'static str, note: impl Into<String>) -> Self {
        Self::new(events::Type::Warning, reason, action, note)
    }
}

/// Publishes `news` about an object.
pub(crate) async fn publish<K>(
    ctx: &Context,
    about: &K,
    news: impl IntoIterator<Item = PendingEvent> + Send,
) where
    K: Resource<DynamicType = ()>,
{
    for item in news {
        let (reason, action) = (&item.reason, item.action);
        ctx.events
            .record(about, item.type_, reason, action, item.note)
            .await;
    }
}

/// Begin and end of the pause of an object with the annotation. Objects of a paused Cluster have the [`Condition`] alone:
/// the Cluster has the events.
pub(crate) fn pause(before: &[Condition], after: &[Condition]) -> Option<PendingEvent> {
    let reasons = [before, after].into_iter();
    let mut reasons = reasons.filter_map(|list| conditions::find(list, pause::PAUSED));
    match reasons.any(|it| !["", pause::OF_CLUSTER].contains(&it.message.as_str())) {
        true => pause_of_any(before, after),
        false => None,
    }
}

fn pause_of_any(before: &[Condition], after: &[Condition]) -> Option<PendingEvent> {
    let paused = |list| conditions::is_true(list, pause::PAUSED);
    match (paused(before), paused(after)) {
        (false, true) => {
            let why = &conditions::find(after, pause::PAUSED)?.message;
            let note = format!("Nothing is done until the pause ends: {why}");
            Some(PendingEvent::normal("Paused", "Pause", note))
        }
        (true, false) => Some(PendingEvent::normal(
            "Resumed",
            "Pause",
            "The pause has ended",
        )),
        _ => None,
    }
}

/// Events of a [`Cluster`].
pub(crate) fn of_cluster(before: &Cluster, after: &Cluster) -> Vec<PendingEvent> {
    let name = after.name_any();
    let mut news: Vec<_> = pause_of_any(before.conditions(), after.conditions())
        .into_iter()
        .collect();
    if !before.infrastructure_provisioned() && after.infrastructure_provisioned() {
        let note = format!("The infrastructure of Cluster {name} is ready for machines");
        news.push(PendingEvent::normal(
            "InfrastructureReady",
            "Provision",
            note,
        ));
    }
    if !before.control_plane_initialized() && after.control_plane_initialized() {
        let note = format!("The control plane of Cluster {name} is initialized");
        news.push(PendingEvent::normal(
            "ControlPlaneReady",
            "Initialize",
            note,
        ));
    }
    let (before, after) = (before.conditions(), after.conditions());
    news.extend(failures(
        before,
        after,
        &[
            (Type::InfrastructureReady, "Provision"),
            (Type::ControlPlaneAvailable, "Initialize"),
        ],
    ));
    news
}

/// Events of a [`Machine`]; `given_up` is the reason why its drain ended with remaining Pods, if so.
pub(crate) fn of_machine(
    before: &Machine,
    after: &Machine,
    given_up: Option<&str>,
) -> Vec<PendingEvent> {
    let mut news: Vec<_> = pause(before.conditions(), after.conditions())
        .into_iter()
        .collect();
    if let (None, Some(node)) = (before.node_name(), after.node_name()) {
        let note = format!("Node {node} has joined the cluster");
        news.push(PendingEvent::normal(
            "SuccessfulSetNodeRef",
            "SetNodeRef",
            note,
        ));
    }
    news.extend(deletion(before, after, given_up));
    let (before, after) = (before.conditions(), after.conditions());
    news.extend(failures(
        before,
        after,
        &[
            (Type::BootstrapConfigReady, "Bootstrap"),
            (Type::InfrastructureReady, "Provision"),
            (Type::NodeHealthy, "Watch"),
        ],
    ));
    news
}

/// Reasons of `Deleting` up to the end of the drain.
const UNDRAINED: [Reason; 3] = [
    Reason::NotDeleting,
    Reason::WaitingForPreDrainHook,
    Reason::DrainingNode,
];

fn deletion(before: &Machine, after: &Machine, given_up: Option<&str>) -> Vec<PendingEvent> {
    let reason = |machine: &Machine| {
        let found = conditions::find(machine.conditions(), Type::Deleting);
        found.map_or(String::new(), |found| found.reason.clone())
    };
    let message = |machine: &Machine| {
        let found = conditions::find(machine.conditions(), Type::Deleting);
        found.map_or(String::new(), |found| found.message.clone())
    };
    let (was, is) = (reason(before), reason(after));
    let node = after.node_name().unwrap_or("of the machine");
    let drain = after
        .status
        .as_ref()
        .and_then(|status| status.deletion.as_ref());
    let drained = drain.is_some_and(|times| times.node_drain_start_time.is_some());
    let mut news = Vec::new();
    let undrained =
        |reason: &str| reason.is_empty() || UNDRAINED.iter().any(|it| reason == it.as_str());
    // `Deleting` is the reason of an error, after which the step is repeated.
    if drained && undrained(&was) && !undrained(&is) && is != Reason::Deleting {
        news.push(match given_up {
            None => {
                let note = format!("Node {node} is drained");
                PendingEvent::normal("SuccessfulDrainNode", "Drain", note)
            }
            Some(why) => {
                let note = format!(
                    "The drain of Node {node} has timed out ({why}); the machine \
                     is deleted with the Pods that are left"
                );
                PendingEvent::warning("FailedDrainNode", "Drain", note)
            }
        });
    }
    const HELD: &str = "cannot be evicted";
    if is == Reason::DrainingNode
        && message(after).contains(HELD)
        && !message(before).contains(HELD)
    {
        let held: Vec<_> = message(after)
            .lines()
            .filter(|line| line.contains(HELD))
            .map(|line| line.trim_start_matches("* ").to_owned())
            .collect();
        let note = format!("Node {node} is not drained: {}", held.join("; "));
        news.push(PendingEvent::warning("FailedDrainNode", "Drain", note));
    }
    if was == Reason::WaitingForVolumeDetach && is != was && is != Reason::Deleting {
        let note = format!("The volumes of Node {node} are detached");
        news.push(PendingEvent::normal("NodeVolumesDetached", "Detach", note));
    }
    if is == Reason::DeletingNode && was != is {
        news.push(PendingEvent::warning(
            "FailedDeleteNode",
            "Delete",
            message(after),
        ));
    }
    news
}

/// Events of a [`MachineDeployment`].
pub(crate) fn of_deployment(
    before: &MachineDeployment,
    after: &MachineDeployment,
) -> Vec<PendingEvent> {
    let (before, after) = (before.conditions(), after.conditions());
    let reason = match conditions::is_true(after, Type::RollingOut) {
        true => "RolloutBlocked",
        false => "ScaleUpBlocked",
    };
    let news = rollout(before, after).into_iter();
    // Both conditions report the obstacles of a rollout.
    let obstacle = blocked(before, after, reason).or_else(|| of_duties(before, after));
    let paused = pause(before, after);
    news.chain(obstacle).chain(paused).collect()
}

/// Begin and end of a rollout.
pub(crate) fn rollout(before: &[Condition], after: &[Condition]) -> Option<PendingEvent> {
    let rolls = |list| conditions::is_true(list, Type::RollingOut);
    match (rolls(before), rolls(after)) {
        (false, true) => {
            let found = conditions::find(after, Type::RollingOut)?;
            // The obstacles, if there are any, have an event of their own.
            let lines = found.message.lines();
            let lines = lines.take_while(|line| !line.starts_with("Th"));
            let note = one_line(&lines.collect::<Vec<_>>().join("\n"));
            Some(PendingEvent::normal("RolloutStarted", "RollOut", note))
        }
        (true, false) => {
            let note = "All machines are up to date";
            Some(PendingEvent::normal("RolloutCompleted", "RollOut", note))
        }
        _ => None,
    }
}

/// New obstacles to the creation or deletion of machines. A warning, unless the obstacle passes without intervention.
pub(crate) fn blocked(
    before: &[Condition],
    after: &[Condition],
    reason: &str,
) -> Option<PendingEvent> {
    let was = obstacles(before).map(|found| found.message.as_str());
    let found = obstacles(after)?;
    let lines = list_of_obstacles(&found.message);
    if was.is_some_and(|was| list_of_obstacles(was) == lines) || lines.is_empty() {
        return None;
    }
    let passes = lines.iter().all(|line| line.starts_with(WAITING));
    let type_ = match passes {
        true => events::Type::Normal,
        false => events::Type::Warning,
    };
    let note = lines.join("; ");
    Some(PendingEvent::new(type_, reason, "CreateMachine", note))
}

/// Words before the list of obstacles in `RollingOut`, `ScalingUp` and `ScalingDown`.
pub(crate) const BLOCKED: &str = "is blocked because:";

fn obstacles(list: &[Condition]) -> Option<&Condition> {
    let types = [Type::RollingOut, Type::ScalingUp, Type::ScalingDown].into_iter();
    let mut found = types.filter_map(|type_| conditions::find(list, type_));
    found.find(|found| found.message.contains(BLOCKED))
}

/// Obstacles in a message of `RollingOut`, `ScalingUp` or `ScalingDown`.
pub(crate) fn list_of_obstacles(message: &str) -> Vec<&str> {
    let (_, list) = message.split_once(BLOCKED).unwrap_or_default();
    let lines = list
        .lines()
        .map(|line| line.trim().trim_start_matches("* "));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Warning for a new failure in a [`Condition`].
pub(crate) fn failure(
    before: &[Condition],
    after: &[Condition],
    type_: Type,
    action: &'static str,
) -> Option<PendingEvent> {
    let is = conditions::find(after, type_)?;
    let was = conditions::find(before, type_);
    let known = was.is_some_and(|was| was.reason == is.reason && was.message == is.message);
    if known || is.status == "True" || !is_failure(&is.reason) {
        return None;
    }
    let note = match is.message.as_str() {
        "" => format!("{type_} is {}", is.status),
        message => one_line(without_types(message)),
    };
    Some(PendingEvent::warning(&is.reason, action, note))
}

/// Warnings about [`Condition`]s, given with their actions; without any, the warning about the duties of the
/// reconcile, which repeats their errors.
fn failures(
    before: &[Condition],
    after: &[Condition],
    conditions: &[(Type, &'static str)],
) -> Vec<PendingEvent> {
    let news = conditions
        .iter()
        .filter_map(|(type_, action)| failure(before, after, *type_, action));
    let mut news: Vec<_> = news.collect();
    if news.is_empty() {
        news.extend(of_duties(before, after));
    }
    news
}

/// Warning about failed duties of a reconcile, if new.
pub(crate) fn of_duties(before: &[Condition], after: &[Condition]) -> Option<PendingEvent> {
    failure(before, after, duties::TYPE, "Reconcile")
}

/// True if a reason requires intervention.
fn is_failure(reason: &str) -> bool {
    let words = ["Failed", "Error", "Deleted", "NotFound"];
    reason.starts_with("Invalid") || words.iter().any(|word| reason.ends_with(word))
}

/// `InstanceReady: server ...` without the types of conditions.
pub(crate) fn without_types(message: &str) -> &str {
    let is_type = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    match message.split_once(": ") {
        Some((first, rest)) if is_type(first) => without_types(rest),
        _ => message,
    }
}

fn one_line(message: &str) -> String {
    let lines: Vec<_> = message.lines().map(|line| line.trim()).collect();
    lines
        .join(" ")
        .replacen(" * ", ": ", 1)
        .replace(" * ", "; ")
}

#[cfg(test)]
mod tests;
