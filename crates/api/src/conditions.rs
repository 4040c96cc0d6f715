//! Conditions: reads and writes lists of [`Condition`].
//!
//! Rules of KEP-1623: one condition per type, `lastTransitionTime` changes only with the status, reasons are CamelCase
//! and never empty.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use crate::printable;

pub use self::condition_type::Type;
pub use self::reason::Reason;
pub use self::vocabulary::{ConditionReason, ConditionType};

mod condition_type;
mod reason;
pub(crate) mod vocabulary;

/// Status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// The condition is false.
    False,
    /// The condition is true.
    True,
    /// The status is not known, or not known yet.
    Unknown,
}

impl Status {
    /// Value in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::False => "False",
            Status::True => "True",
            Status::Unknown => "Unknown",
        }
    }

    /// Parses the value in JSON; any other value is [`Status::Unknown`].
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

/// Condition to be set by [`set`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Type of the condition, such as `Ready`.
    pub type_: &'static str,
    /// The status of the condition.
    pub status: Status,
    /// Machine-readable CamelCase reason.
    pub reason: String,
    /// Human-readable message; may be empty.
    pub message: String,
}

impl Verdict {
    /// Condition without a message.
    pub fn new(
        type_: impl ConditionType,
        status: impl Into<Status>,
        reason: impl ConditionReason,
    ) -> Self {
        Self::from_reported(type_, status, reason.as_str())
    }

    /// Condition without a message, with a reason that another program has reported.
    pub fn from_reported(
        type_: impl ConditionType,
        status: impl Into<Status>,
        reason: impl Into<String>,
    ) -> Self {
        Self {
            type_: type_.as_str(),
            status: status.into(),
            reason: reason.into(),
            message: String::new(),
        }
    }

    /// Adds a message, as a [`sentence`]. Beyond [`LONGEST`] it is cut off: the API server would refuse the whole status.
    #[must_use]
    pub fn because(mut self, message: impl Into<String>) -> Self {
        let whole = sentence(&message.into());
        self.message = match whole.char_indices().nth(LONGEST) {
            None => whole,
            Some(_) => whole.chars().take(LONGEST - 1).chain(['…']).collect(),
        };
        self
    }
}

/// Maximum number of characters in the message of a condition, by the schema of `metav1.Condition`.
const LONGEST: usize = 32_768;

/// Names in lower case, also at the start of a sentence.
const LOWER: [&str; 5] = ["etcd", "kubeadm", "kubelet", "kubectl", "cloud-init"];

/// `text` with a capital letter at the start, as in all conditions and events. Fields, names and lists keep their case.
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

/// Sets a [`Verdict`] in `conditions`, sorted by type; the transition time changes only with the status. True if
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
    // One overlong message would make an API server reject the whole status.
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

/// Removes the condition of a type, if present.
pub fn remove(conditions: &mut Vec<Condition>, type_: impl AsRef<str>) {
    conditions.retain(|c| c.type_ != type_.as_ref());
}

/// Condition of a type.
pub fn find(conditions: &[Condition], type_: impl AsRef<str>) -> Option<&Condition> {
    conditions.iter().find(|c| c.type_ == type_.as_ref())
}

/// True if the condition of the type is present and `True`.
pub fn is_true(conditions: &[Condition], type_: impl AsRef<str>) -> bool {
    find(conditions, type_).is_some_and(|c| c.status == "True")
}

#[cfg(test)]
mod tests;
