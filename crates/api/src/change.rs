//! A write as the groups judge it, and errors of its fields.

use serde_json::Value;

/// An error of a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// The path of the field, such as `spec.managedSubnets[0].cidr`.
    pub path: String,
    /// What is wrong, and what would be valid.
    pub message: String,
}

impl FieldError {
    /// An error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// A write to an object of any group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// The object as it will be stored.
    pub(crate) object: &'a Value,
    /// The stored object, on an update.
    pub(crate) old: Option<&'a Value>,
    /// The stored object, for rules about changes. `None` also if it cannot be decoded: its fields had no effect, so a repair
    /// may change any of them.
    pub(crate) changed_from: Option<&'a Value>,
    /// True if the rules of the spec apply: on a creation, and on an update that changes the spec.
    pub(crate) judges_spec: bool,
    /// True for a dry run.
    pub(crate) dry_run: bool,
}
