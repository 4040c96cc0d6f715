//! Server-side apply (KEP-555).

use serde_json::Value;

use super::PatchError;
use crate::schema::Schema;

/// Where the merge rules of lists come from.
#[derive(Clone, Copy, Debug)]
pub enum Types<'a> {
    /// The schema of a custom resource.
    Schema(&'a Schema),
    /// The table of built-in kinds.
    BuiltIn {
        /// API group, empty for core.
        group: &'a str,
        /// The kind.
        kind: &'a str,
    },
}

/// The versions of a kind: `managedFields` may name other ones than the request's.
pub trait Versions {
    /// The merge rules in `api_version` (`group/version`), or `None` when it is no longer served.
    fn types(&self, api_version: &str) -> Option<Types<'_>>;
    /// The object converted to `api_version`.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String>;
}

/// Who applies, and how.
#[derive(Clone, Copy, Debug)]
pub struct Applier<'a> {
    /// `fieldManager` of the query.
    pub manager: &'a str,
    /// Take over fields that others own.
    pub force: bool,
    /// `status`, `scale`, or empty.
    pub subresource: &'a str,
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// Now, RFC 3339 in whole seconds, as in `2026-11-20T10:00:00Z`.
    pub time: &'a str,
}

/// Applies a configuration to the live object and returns the object to be stored, its `managedFields` up to date.
/// `live` is null-free and in the request's version; for a create it is an object with nothing but `apiVersion`, `kind`
/// and `metadata.name`.
pub fn apply(
    _live: &Value,
    _config: &Value,
    _applier: Applier<'_>,
    _versions: &dyn Versions,
) -> Result<Value, PatchError> {
    Err(PatchError::Malformed {
        message: "not built yet".into(),
    })
}
