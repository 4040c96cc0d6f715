//! `metadata.managedFields` for writers that do not apply: create, update and the other patches.

use serde_json::Value;

use super::{PatchError, Versions};

/// Who writes, and how.
#[derive(Clone, Copy, Debug)]
pub struct Writer<'a> {
    /// `fieldManager` of the query, or [`default_manager`] of the User-Agent.
    pub manager: &'a str,
    /// `status`, `scale`, or empty.
    pub subresource: &'a str,
    /// The `apiVersion` of the request.
    pub api_version: &'a str,
    /// Now, RFC 3339 in whole seconds.
    pub time: &'a str,
}

/// Brings `new`'s `managedFields` up to date for a write by `writer`; `live` is the object before (`None` for a create).
pub fn update(
    _live: Option<&Value>,
    _new: &mut Value,
    _writer: Writer<'_>,
    _versions: &dyn Versions,
) -> Result<(), PatchError> {
    Ok(())
}

/// The field manager of a request without `fieldManager`: the User-Agent up to its first `/`, at most 128 characters.
pub fn default_manager(user_agent: &str) -> &str {
    user_agent.split('/').next().unwrap_or_default()
}
