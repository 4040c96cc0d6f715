//! Defaulting and validation beyond the schema.

use serde_json::Value;

use crate::admission::{FieldError, Review};

/// Fills in what the defaulting webhooks of Cluster API fill in.
pub fn default_object(_object: &mut Value, _old: Option<&Value>) {}

/// Every problem of the object.
pub fn validate(_review: Review<'_>) -> Vec<FieldError> {
    Vec::new()
}
