//! Conditions derived from other conditions.
//!
//! There are two forms, as upstream: a *summary* combines several conditions of one object ("Ready"), an *aggregate*
//! combines one condition of several objects ("MachinesReady"). In both, the result is `False` if one condition is bad,
//! otherwise `Unknown` if one is unknown.

use std::collections::BTreeMap;

use api::conditions::{self, Status, Verdict};
use api::core::v1beta2::{ConditionGate, Polarity};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// A condition in a summary.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// Its type.
    pub(crate) type_: &'a str,
    /// The polarity: which status is good.
    pub(crate) polarity: Polarity,
    /// Whether a missing condition is ignored.
    pub(crate) optional: bool,
}

impl<'a> Part<'a> {
    /// `True` is good; a missing condition is unknown.
    pub(crate) fn positive(type_: &'a str) -> Self {
        Self {
            type_,
            polarity: Polarity::Positive,
            optional: false,
        }
    }

    /// `False` is good; a missing condition is ignored.
    pub(crate) fn negative(type_: &'a str) -> Self {
        Self {
            type_,
            polarity: Polarity::Negative,
            optional: true,
        }
    }

    /// Ignores a missing condition.
    #[must_use]
    pub(crate) fn optional(mut self) -> Self {
        self.optional = true;
        self
    }

    /// The condition of a gate in a spec.
    pub(crate) fn gate(gate: &'a ConditionGate) -> Self {
        let polarity = gate.polarity.unwrap_or(Polarity::Positive);
        Self {
            type_: &gate.condition_type,
            polarity,
            optional: false,
        }
    }
}

/// The reasons of a derived condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasons {
    /// For `True`.
    pub(crate) good: &'static str,
    /// For `False`.
    pub(crate) bad: &'static str,
    /// For `Unknown`.
    pub(crate) unknown: &'static str,
}

/// Combines `parts` of the `conditions` of one object to a condition of type `type_`.
pub(crate) fn summarize(
    type_: &'static str,
    conditions: &[Condition],
    parts: &[Part<'_>],
    reasons: Reasons,
) -> Verdict {
    let mut lines = Vec::new();
    let mut worst = Status::True;
    for part in parts {
        let (goodness, line) = match conditions::find(conditions, part.type_) {
            None if part.optional => continue,
            None => (Status::Unknown, "Not reported yet".to_owned()),
            Some(found) => (goodness(&found.status, part.polarity), line_of(found)),
        };
        if goodness != Status::True {
            lines.push(bullet(part.type_, &line));
        }
        worst = worse(worst, goodness);
    }
    verdict(type_, worst, reasons).because(lines.join("\n"))
}

/// Combines the condition `from` of several objects, given with their names, to a condition of type `type_`. `kind` is
/// the plural in the message, such as `Machines`.
pub(crate) fn aggregate<'a>(
    type_: &'static str,
    from: &str,
    objects: impl IntoIterator<Item = (&'a str, &'a [Condition])>,
    kind: &str,
    reasons: Reasons,
) -> Verdict {
    let mut problems: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut worst = Status::True;
    for (name, conditions) in objects {
        let (goodness, message) = match conditions::find(conditions, from) {
            None => (Status::Unknown, format!("{from} not reported yet")),
            Some(found) => (Status::parse(&found.status), line_of(found)),
        };
        if goodness != Status::True {
            problems.entry(message).or_default().push(name);
        }
        worst = worse(worst, goodness);
    }
    let lines: Vec<_> = problems
        .iter()
        .map(|(message, names)| bullet(&format!("{kind} {}", some_of(names)), message))
        .collect();
    verdict(type_, worst, reasons).because(lines.join("\n"))
}

/// The message of all that waits for the initialization of a control plane.
pub(crate) const FIRST_NODE: &str = "Waiting for the first control plane node";

/// The message of all that waits for the infrastructure of a Cluster.
pub(crate) const INFRASTRUCTURE: &str = "Waiting for the Cluster's infrastructure";

/// The first three names, and the number of the others.
pub(crate) fn some_of(names: &[&str]) -> String {
    let mut names = names.to_vec();
    names.sort_unstable();
    match names.len() {
        0..=3 => names.join(", "),
        more => format!("{}, ... ({} more)", names[..3].join(", "), more - 3),
    }
}

fn line_of(condition: &Condition) -> String {
    let text = if condition.message.is_empty() {
        &condition.reason
    } else {
        &condition.message
    };
    text.clone()
}

/// `* head: text`; a text of several lines is indented below the head.
fn bullet(head: &str, text: &str) -> String {
    if text.starts_with("* ") || text.contains('\n') {
        let lines: Vec<_> = text.lines().map(|line| format!("  {line}")).collect();
        format!("* {head}:\n{}", lines.join("\n"))
    } else {
        format!("* {head}: {text}")
    }
}

fn goodness(status: &str, polarity: Polarity) -> Status {
    match (Status::parse(status), polarity) {
        (Status::True, Polarity::Negative) => Status::False,
        (Status::False, Polarity::Negative) => Status::True,
        (status, _) => status,
    }
}

fn worse(a: Status, b: Status) -> Status {
    match (a, b) {
        (Status::False, _) | (_, Status::False) => Status::False,
        (Status::Unknown, _) | (_, Status::Unknown) => Status::Unknown,
        _ => Status::True,
    }
}

fn verdict(type_: &'static str, status: Status, reasons: Reasons) -> Verdict {
    let reason = match status {
        Status::True => reasons.good,
        Status::False => reasons.bad,
        Status::Unknown => reasons.unknown,
    };
    Verdict::new(type_, status, reason)
}

#[cfg(test)]
mod tests;
