//! Finding about an option of the user.

use std::fmt;

use serde::Serialize;

/// Problem of an option, now or in a later release.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Effect of the finding.
    pub severity: Severity,
    /// Field, as a path in the spec.
    pub path: String,
    /// Problem, and what to do.
    pub message: String,
}

/// Effect of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The option is rejected.
    Error,
    /// The option works in this release.
    Warning,
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.path, self.message)
    }
}
