//! Write request in the form for validation by the groups, and errors of fields.

use serde_json::Value;

/// Validation error of one field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// Path of the field, such as `spec.managedSubnets[0].cidr`.
    pub path: String,
    /// Problem, and the valid values.
    pub message: String,
}

impl FieldError {
    /// Error at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            message: message.into(),
        }
    }
}

/// Write request for an object of any group, as checked by [`admission`](crate::admission).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change<'a> {
    /// Object in the form to be stored.
    pub(crate) object: &'a Value,
    /// Stored object, on an update.
    pub(crate) old: Option<&'a Value>,
    /// Stored object, for rules about changes. `None` also for an undecodable one: its fields had no effect, so a
    /// repair may change any field.
    pub(crate) changed_from: Option<&'a Value>,
    /// True if the rules of the spec apply: on a creation, and on an update that changes the spec.
    pub(crate) judges_spec: bool,
    /// True for a dry run.
    pub(crate) dry_run: bool,
}
