//! Due resources, and the condition of the set (pure).

use std::collections::BTreeMap;

use api::addons::v1beta2::{ResourceBinding, ResourceRef, Strategy};
use api::conditions::{Reason, Type, Verdict};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use api::k8s_openapi::jiff::Timestamp;

use super::source::Source;
use crate::summary::some_of;

/// Type of the condition.
pub(super) const APPLIED: Type = Type::ResourcesApplied;

/// Maximum number of problems of one Cluster in the message of the condition.
const MOST: usize = 5;

/// Outcome in one Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// Everything is applied.
    Applied,
    /// A resource is due, and cannot be applied yet.
    Waiting(String),
    /// The first attempt to connect has not ended: nothing is known.
    Connecting,
    /// A resource could not be applied.
    Failed(Vec<Problem>),
}

/// Reason why a resource could not be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// Sentence for the condition.
    pub(super) message: String,
    /// Source of the problem, where a change makes a further attempt worthwhile.
    pub(super) cause: Cause,
}

/// Source of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// In the ConfigMap or Secret, which triggers the set after a change.
    Source,
    /// The Secret has another type.
    SecretType,
    /// In the workload cluster, without an event at its end.
    Workload,
}

/// True if `resource` has to be applied to the Cluster with these bindings. `hash` is `None` if unknown.
pub(super) fn is_due(
    bound: &[ResourceBinding],
    resource: &ResourceRef,
    strategy: Strategy,
    hash: Option<&str>,
) -> bool {
    let mut bound = bound.iter();
    let entry = bound.find(|entry| entry.kind == resource.kind && entry.name == resource.name);
    match (entry, strategy) {
        (Some(entry), Strategy::ApplyOnce) => !entry.applied,
        (Some(entry), Strategy::Reconcile) => {
            !entry.applied || hash.is_none() || entry.hash.as_deref() != hash
        }
        (None, _) => true,
    }
}

/// Entry of a binding after an attempt. A failed attempt has no time, so that further ones write nothing.
pub(super) fn result(source: &Source, applied: bool, now: Timestamp) -> ResourceBinding {
    ResourceBinding {
        kind: source.resource.kind,
        name: source.resource.name.clone(),
        hash: source.hash.clone().filter(|_| applied),
        last_applied_time: applied.then_some(Time(now)),
        applied,
    }
}

/// Condition; `None` without a selected Cluster.
pub(super) fn verdict(outcomes: &[(String, Outcome)]) -> Option<Verdict> {
    if outcomes.is_empty() {
        return None;
    }
    let mut messages: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut wrong_type = false;
    for (cluster, outcome) in outcomes {
        let message = match outcome {
            Outcome::Applied | Outcome::Connecting => continue,
            Outcome::Waiting(why) => why.clone(),
            Outcome::Failed(problems) => {
                wrong_type |= problems.iter().any(|p| p.cause == Cause::SecretType);
                joined(problems)
            }
        };
        messages.entry(message).or_default().push(cluster);
    }
    let lines: Vec<_> = messages
        .iter()
        .map(|(message, clusters)| line(clusters, message))
        .collect();
    let reason = match (lines.is_empty(), wrong_type) {
        (true, _) => Reason::Applied,
        (false, true) => Reason::WrongSecretType,
        (false, false) => Reason::NotApplied,
    };
    Some(Verdict::new(APPLIED, lines.is_empty(), reason).because(lines.join("\n")))
}

/// First problem that may be gone at the next attempt without any change of the set or its resources.
pub(super) fn to_retry(outcomes: &[(String, Outcome)]) -> Option<String> {
    outcomes.iter().find_map(|(cluster, outcome)| {
        let Outcome::Failed(problems) = outcome else {
            return None;
        };
        let mut problems = problems.iter();
        let found = problems.find(|problem| problem.cause == Cause::Workload)?;
        Some(format!("Cluster {cluster}: {}", found.message))
    })
}

fn joined(problems: &[Problem]) -> String {
    let messages = problems.iter().map(|problem| problem.message.as_str());
    let mut lines: Vec<_> = messages.take(MOST).map(str::to_owned).collect();
    if problems.len() > MOST {
        lines.push(format!("... ({} more)", problems.len() - MOST));
    }
    lines.join("\n")
}

fn line(clusters: &[&str], message: &str) -> String {
    let kind = if clusters.len() == 1 {
        "Cluster"
    } else {
        "Clusters"
    };
    let head = format!("* {kind} {}:", some_of(clusters));
    if message.contains('\n') {
        let lines = message.lines().map(|line| format!("  * {line}"));
        format!("{head}\n{}", lines.collect::<Vec<_>>().join("\n"))
    } else {
        format!("{head} {message}")
    }
}

#[cfg(test)]
mod tests;
