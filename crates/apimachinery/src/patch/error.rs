//! Errors of patches, and the HTTP status that kube-apiserver returns for them.

use serde_json::{Value, json};

/// Error of a patch.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed: 400 BadRequest.
    #[error("{message}")]
    Malformed {
        /// Error.
        message: String,
    },
    /// JSON patch that does not match the object (a test failed, a path is missing): 422 Invalid.
    #[error("{message}")]
    Unprocessable {
        /// Failed operation, with the reason.
        message: String,
    },
    /// Too many operations, or a result that is too large: 413 RequestEntityTooLarge.
    #[error("{message}")]
    TooLarge {
        /// Limit and the actual value.
        message: String,
    },
    /// Fields of other managers: 409 Conflict with one cause per field.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// Object or patch that does not match the schema of the kind: 500, as in kube-apiserver.
    #[error("{message}")]
    Untyped {
        /// Violation: `.spec.foo: field not declared in schema`.
        message: String,
    },
    /// Failed conversion of the object to a version in `managedFields`: 500 InternalError.
    #[error("cannot convert the object to {api_version}: {message}")]
    Conversion {
        /// Requested version.
        api_version: String,
        /// Error of the conversion.
        message: String,
    },
}

impl PatchError {
    /// Returns the HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Malformed { .. } => 400,
            Self::Unprocessable { .. } => 422,
            Self::TooLarge { .. } => 413,
            Self::Conflicts(_) => 409,
            Self::Untyped { .. } | Self::Conversion { .. } => 500,
        }
    }

    /// Returns the `reason` of the `Status`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed { .. } => "BadRequest",
            Self::Unprocessable { .. } => "Invalid",
            Self::TooLarge { .. } => "RequestEntityTooLarge",
            Self::Conflicts(_) => "Conflict",
            Self::Untyped { .. } => "",
            Self::Conversion { .. } => "InternalError",
        }
    }

    /// Returns the `details.causes` of the `Status`, one for each [`Conflict`]; empty for other errors.
    pub fn causes(&self) -> Vec<Value> {
        match self {
            Self::Conflicts(conflicts) => conflicts
                .iter()
                .map(|c| json!({"reason": "FieldManagerConflict", "message": c.message(), "field": c.field}))
                .collect(),
            _ => Vec::new(),
        }
    }
}

/// Field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Manager in the form of kube-apiserver: `"kubectl" using apps/v1`.
    pub manager: String,
    /// Path, such as `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// Returns a message such as `conflict with "kubectl" using apps/v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// Formats a single conflict on one line, and several by manager.
fn conflict_message(conflicts: &[Conflict]) -> String {
    if let [only] = conflicts {
        return format!(
            "Apply failed with 1 conflict: {}: {}",
            only.message(),
            only.field
        );
    }
    let mut managers: Vec<&str> = conflicts.iter().map(|c| c.manager.as_str()).collect();
    managers.dedup();
    let mut lines = Vec::new();
    for manager in managers {
        lines.push(format!("conflicts with {manager}:"));
        let fields = conflicts
            .iter()
            .filter(|conflict| conflict.manager == manager);
        lines.extend(fields.map(|conflict| format!("- {}", conflict.field)));
    }
    format!(
        "Apply failed with {} conflicts: {}",
        conflicts.len(),
        lines.join("\n")
    )
}
