//! Conditions derived from other conditions.
//!
//! There are two forms, as upstream: a *summary* combines several conditions of one object ("Ready"), an *aggregate*
//! combines one condition of several objects ("MachinesReady"). In both, the result is `False` if one condition is
//! bad, otherwise `Unknown` if one is unknown.

use std::collections::BTreeMap;

use api::conditions::{self, Reason, Status, Type, Verdict};
use api::core::v1beta2::{ConditionGate, Polarity};
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// Condition in a summary.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// Type of the condition.
    pub(crate) type_: &'a str,
    /// [`Polarity`]: the good status.
    pub(crate) polarity: Polarity,
    /// True if a missing condition is ignored.
    pub(crate) optional: bool,
}

impl<'a> Part<'a> {
    /// `True` is good; a missing condition is unknown.
    pub(crate) fn positive(type_: Type) -> Self {
        Self {
            type_: type_.as_str(),
            polarity: Polarity::Positive,
            optional: false,
        }
    }

    /// `False` is good; a missing condition is ignored.
    pub(crate) fn negative(type_: Type) -> Self {
        Self {
            type_: type_.as_str(),
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

    /// Condition of a gate in a spec.
    pub(crate) fn gate(gate: &'a ConditionGate) -> Self {
        let polarity = gate.polarity.unwrap_or(Polarity::Positive);
        Self {
            type_: &gate.condition_type,
            polarity,
            optional: false,
        }
    }
}

/// Reasons of a derived condition.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reasons {
    /// For `True`.
    pub(crate) good: Reason,
    /// For `False`.
    pub(crate) bad: Reason,
    /// For `Unknown`.
    pub(crate) unknown: Reason,
}

/// Combines `parts` of the `conditions` of one object to a [`Condition`] of type `type_`.
pub(crate) fn summarize(
    type_: Type,
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

/// Combines the [`Condition`] `from` of several objects, given with their names, to a condition of type `type_`. `kind`
/// is the kind of the objects, such as `Machine`.
pub(crate) fn aggregate<'a>(
    type_: Type,
    from: Type,
    objects: impl IntoIterator<Item = (&'a str, &'a [Condition])>,
    kind: &'a str,
    reasons: Reasons,
) -> Verdict {
    let members = objects
        .into_iter()
        .map(|(name, list)| Member::new(kind, name, list, from));
    let (worst, text) = merged(members.collect(), from, Polarity::Positive);
    verdict(type_, worst, reasons).because(text)
}

/// Same for a condition with `True` as the reported status, such as `ScalingUp`: the result is `True` if one object
/// has `True`. `reasons` are for `False`, `True` and unknown, in the order of goodness.
pub(crate) fn aggregate_of_changes(
    type_: Type,
    members: Vec<Member<'_>>,
    reasons: Reasons,
) -> Verdict {
    let (worst, text) = merged(members, type_, Polarity::Negative);
    let mut found = verdict(type_, worst, reasons).because(text);
    found.status = match worst {
        Status::True => Status::False,
        Status::False => Status::True,
        Status::Unknown => Status::Unknown,
    };
    found
}

/// Object of an aggregate.
#[derive(Clone, Debug)]
pub(crate) struct Member<'a> {
    /// Kind of the object.
    pub(crate) kind: &'a str,
    /// Name of the object.
    pub(crate) name: &'a str,
    /// Status and text of the condition, if the object has it.
    pub(crate) condition: Option<(Status, String)>,
}

impl<'a> Member<'a> {
    /// Object with these [`Condition`]s; `from` is the aggregated one.
    pub(crate) fn new(kind: &'a str, name: &'a str, list: &[Condition], from: Type) -> Self {
        let condition = conditions::find(list, from)
            .map(|found| (Status::parse(&found.status), line_of(found)));
        Self {
            kind,
            name,
            condition,
        }
    }
}

/// Maximum number of messages in an aggregate; other objects are only counted.
const MESSAGES: usize = 3;

/// Worst status, and a text with the most frequent reports first: bad ones, and then unknown ones.
fn merged(members: Vec<Member<'_>>, from: Type, polarity: Polarity) -> (Status, String) {
    let (mut bad, mut unknown) = (Groups::new(), Groups::new());
    for member in members {
        let (status, text) = member.condition.unwrap_or_else(|| {
            let text = format!("Condition {from} not yet reported");
            (Status::Unknown, text)
        });
        let group = match goodness(status.as_str(), polarity) {
            Status::True => continue,
            Status::False => &mut bad,
            Status::Unknown => &mut unknown,
        };
        let names = group.entry((member.kind, text)).or_default();
        names.push(member.name);
    }
    let worst = match (bad.is_empty(), unknown.is_empty()) {
        (false, _) => Status::False,
        (true, false) => Status::Unknown,
        (true, true) => Status::True,
    };
    let mut lines = Vec::new();
    list(bad, "with other issues", &mut lines);
    list(unknown, "with status unknown", &mut lines);
    (worst, lines.join("\n"))
}

/// The names of objects by kind and message.
type Groups<'a> = BTreeMap<(&'a str, String), Vec<&'a str>>;

/// Adds a line for each group up to [`MESSAGES`], and one with the number of the `others` of a kind.
fn list(groups: Groups<'_>, others: &str, lines: &mut Vec<String>) {
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|((kind, _), names)| (*kind, std::cmp::Reverse(names.len())));
    let mut rest: BTreeMap<&str, usize> = BTreeMap::new();
    let mut left = MESSAGES.saturating_sub(lines.len());
    for ((kind, message), names) in groups {
        if left == 0 {
            *rest.entry(kind).or_default() += names.len();
            continue;
        }
        left -= 1;
        let head = format!("{} {}", plural(kind, names.len()), some_of(&names));
        lines.push(bullet(&head, &message));
    }
    for (kind, count) in rest {
        lines.push(format!("* And {count} {} {others}", plural(kind, count)));
    }
}

/// The kind, in the plural unless there is one object.
fn plural(kind: &str, count: usize) -> String {
    match count {
        1 => kind.to_owned(),
        _ => format!("{kind}s"),
    }
}

/// Message while waiting for the initialization of a control plane.
pub(crate) const FIRST_NODE: &str = "Waiting for the first control plane node";

/// Message while waiting for the infrastructure of a Cluster.
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

fn verdict(type_: Type, status: Status, reasons: Reasons) -> Verdict {
    let reason = match status {
        Status::True => reasons.good,
        Status::False => reasons.bad,
        Status::Unknown => reasons.unknown,
    };
    Verdict::new(type_, status, reason)
}

#[cfg(test)]
mod tests;
