//! Defaulting and validation beyond what schemas say, dispatched by API group and kind.
//!
//! Both the embedded API server (in process) and the admission webhooks call these functions with
//! objects in the stored version, v1beta2.

use serde_json::Value;

/// One thing wrong with an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}")]
pub struct FieldError {
    /// Where, as `spec.managedSubnets[0].cidr`.
    pub path: String,
    /// What is wrong, and what would be right.
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

/// What is about to happen to an object.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// The object as it will be stored.
    pub object: &'a Value,
    /// The object as it is stored, on an update.
    pub old: Option<&'a Value>,
    /// Whether nothing will be stored.
    pub dry_run: bool,
}

/// Fills in what the defaulting webhooks of Cluster API fill in. `old` is the stored object on an update.
pub fn default_object(object: &mut Value, old: Option<&Value>) {
    crate::core::admission::default_object(object, old);
    crate::bootstrap::admission::default_object(object, old);
    crate::controlplane::admission::default_object(object, old);
}

/// Checks what schemas cannot say: relations between fields, and fields that must not change.
///
/// # Errors
/// Every problem found, each with the path of its field.
pub fn validate(review: Review<'_>) -> Result<(), Vec<FieldError>> {
    let mut errors = Vec::new();
    errors.extend(crate::core::admission::validate(review));
    errors.extend(crate::bootstrap::admission::validate(review));
    errors.extend(crate::controlplane::admission::validate(review));
    errors.extend(crate::infra::admission::validate(review));
    if errors.is_empty() {
        Ok(())
    } else {
        Err(errors)
    }
}
