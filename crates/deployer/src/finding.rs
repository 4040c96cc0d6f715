//! A finding about an option of the user.

use std::fmt;

use serde::Serialize;

/// What is wrong with an option, or may become so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Whether it is rejected.
    pub severity: Severity,
    /// The field, as a path in the spec.
    pub path: String,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Whether an option is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// It is rejected.
    Error,
    /// It works in this release.
    Warning,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.message)
    }
}
