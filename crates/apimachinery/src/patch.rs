//! The four patch types, and the managers of fields (`metadata.managedFields`).

pub(crate) mod apply;
mod atom;
mod error;
mod fields;
mod json;
pub mod managed;
mod strategic;
mod typed;
mod updater;

pub use apply::{Applier, Types, Versions, apply};
pub use error::{Conflict, PatchError};

#[cfg(test)]
pub(crate) use json::tests::any_json;

use serde_json::Value;

/// Applies a JSON patch (RFC 6902) atomically.
///
/// # Errors
/// [`PatchError`], with the HTTP status of kube-apiserver.
pub fn json(doc: &Value, operations: &Value) -> Result<Value, PatchError> {
    json::json(doc, operations)
}

/// Applies a JSON merge patch (RFC 7386) in place.
pub fn merge(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    json::merge(doc, patch)
}

/// Applies a strategic merge patch to an object of a built-in kind. `gvk` is (group, version, kind). Unknown fields are
/// merged as in a JSON merge patch.
pub fn strategic(doc: &Value, patch: &Value, gvk: (&str, &str, &str)) -> Result<Value, PatchError> {
    strategic::strategic(doc, patch, gvk)
}
