//! Conditions: reading and writing lists of `metav1.Condition`.
//!
//! The rules are those of KEP-1623: one condition per type, `lastTransitionTime` changes only with the status, reasons
//! are CamelCase and never empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::printable;

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition is false.
    False,
    /// The condition is true.
    True,
    /// The status is not known (yet).
    Unknown,
}

impl Status {
    /// The value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::False => "False",
            Status::True => "True",
            Status::Unknown => "Unknown",
        }
    }

    /// Parses the value in JSON; any other value is `Unknown`.
    pub fn parse(word: &str) -> Self {
        match word {
            "True" => Status::True,
            "False" => Status::False,
            _ => Status::Unknown,
        }
    }
}

impl From<bool> for Status {
    fn from(value: bool) -> Self {
        if value { Status::True } else { Status::False }
    }
}

/// A condition to set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The condition's type, such as `Ready`.
    pub type_: &'static str,
    /// The status of the condition.
    pub status: Status,
    /// A machine-readable CamelCase reason.
    pub reason: String,
    /// A human-readable message; may be empty.
    pub message: String,
}

impl Verdict {
    /// A condition without a message.
    pub fn new(type_: &'static str, status: impl Into<Status>, reason: impl Into<String>) -> Self {
        Self {
            type_,
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
        }
    }

    /// The same condition with a message.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        self.message = sentence(&message.into());
        self
    }
}

/// Names that keep their lower case at the start of a sentence.
const LOWER: [&str; 5] = ["etcd", "kubeadm", "kubelet", "kubectl", "cloud-init"];

/// `text` with a capital at the start, as all conditions and events begin; fields, names and lists stay as they are.
pub fn sentence(text: &str) -> String {
    let first = text.split(' ').next().unwrap_or_default();
    let is_word = !first.is_empty() && first.bytes().all(|byte| byte.is_ascii_lowercase());
    match text.split_at_checked(1) {
        Some((letter, rest)) if is_word && !LOWER.contains(&first) => {
            format!("{}{rest}", letter.to_ascii_uppercase())
        }
        _ => text.to_owned(),
    }
}

/// Sets `verdict` in `conditions`, sorted by type; the transition time changes only with the status. Returns whether
/// anything but the observed generation changed.
pub fn set(
    conditions: &mut Vec<Condition>,
    verdict: Verdict,
    generation: Option<i64>,
    now: Timestamp,
) -> bool {
    let Verdict {
        type_,
        status,
        reason,
        message,
    } = verdict;
    let status = status.as_str().to_owned();
    // An API server rejects the whole status for one message that is too long.
    let message = printable::message(&message);
    if let Some(known) = conditions.iter_mut().find(|c| c.type_ == type_) {
        let changed = known.status != status || known.reason != reason || known.message != message;
        if known.status != status {
            known.last_transition_time = Time(now);
        }
        known.status = status;
        known.reason = reason;
        known.message = message;
        known.observed_generation = generation;
        return changed;
    }
    conditions.push(Condition {
        type_: type_.to_owned(),
        status,
        reason,
        message,
        observed_generation: generation,
        last_transition_time: Time(now),
    });
    conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
    true
}

/// Removes the condition of this type, if it exists.
pub fn remove(conditions: &mut Vec<Condition>, type_: &str) {
    conditions.retain(|c| c.type_ != type_);
}

/// The condition of this type.
pub fn find<'a>(conditions: &'a [Condition], type_: &str) -> Option<&'a Condition> {
    conditions.iter().find(|c| c.type_ == type_)
}

/// Whether the condition of this type exists and is `True`.
pub fn is_true(conditions: &[Condition], type_: &str) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == "True")
}

#[cfg(test)]
mod tests;
