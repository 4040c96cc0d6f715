//! Errors of patches, and the HTTP status that kube-apiserver returns for them.

use serde_json::{Value, json};

/// Why a patch is rejected.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PatchError {
    /// The patch is malformed: 400 BadRequest.
    #[error("{message}")]
    Malformed {
        /// The error.
        message: String,
    },
    /// A JSON patch that does not match the object (a test failed, a path is missing): 422 Invalid.
    #[error("{message}")]
    Unprocessable {
        /// The operation that failed, and why.
        message: String,
    },
    /// The patch has too many operations, or its result is too large: 413 RequestEntityTooLarge.
    #[error("{message}")]
    TooLarge {
        /// The limit and the actual value.
        message: String,
    },
    /// Other managers own the fields: 409 Conflict with one cause per field.
    #[error("{}", conflict_message(.0))]
    Conflicts(Vec<Conflict>),
    /// The object or patch does not match the schema of the kind: 500, as in kube-apiserver.
    #[error("{message}")]
    Untyped {
        /// The violation: `.spec.foo: field not declared in schema`.
        message: String,
    },
    /// The object could not be converted to a version that `managedFields` names: 500 InternalError.
    #[error("cannot convert the object to {api_version}: {message}")]
    Conversion {
        /// The requested version.
        api_version: String,
        /// The error of the conversion.
        message: String,
    },
}

impl PatchError {
    /// The HTTP status code.
    pub fn code(&self) -> u16 {
        match self {
            Self::Malformed { .. } => 400,
            Self::Unprocessable { .. } => 422,
            Self::TooLarge { .. } => 413,
            Self::Conflicts(_) => 409,
            Self::Untyped { .. } | Self::Conversion { .. } => 500,
        }
    }

    /// The `reason` of the `Status`.
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

    /// The `details.causes` of the `Status`; empty unless the error is a conflict.
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

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The manager as kube-apiserver prints it: `"kubectl" using apps/v1`.
    pub manager: String,
    /// The path, `.spec.replicas`.
    pub field: String,
}

impl Conflict {
    /// `conflict with "kubectl" using apps/v1`.
    pub fn message(&self) -> String {
        format!("conflict with {}", self.manager)
    }
}

/// A single conflict on one line; several are listed by manager.
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
