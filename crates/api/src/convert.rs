//! Conversion between the served versions of our CRDs, dispatched by API group and kind.
//!
//! The hub of every group is v1beta2. Callers of [`convert()`] are the embedded API server (in process) and the
//! conversion webhook.

use serde_json::Value;

use crate::conversion::stash;
pub use crate::conversion::{ConversionError, Row};

/// Converts `object` to `desired`, an `apiVersion` of the same group.
///
/// # Errors
/// [`ConversionError`]: no conversion between the versions, or an invalid object.
pub fn convert(object: Value, desired: &str) -> Result<Value, ConversionError> {
    let field = |name: &str| object.get(name).and_then(Value::as_str).map(str::to_owned);
    let (Some(from), Some(kind)) = (field("apiVersion"), field("kind")) else {
        return Err(ConversionError::Untyped);
    };
    if from == desired {
        return Ok(object);
    }
    if let Some(converted) = crate::core::convert::convert(&object, &kind, &from, desired) {
        return converted;
    }
    if let Some(converted) = crate::addons::convert::convert(&object, &kind, &from, desired) {
        return converted;
    }
    if let Some(converted) = crate::ipam::convert::convert(&object, &kind, &from, desired) {
        return converted;
    }
    if let Some(converted) = crate::bootstrap::convert::convert(&object, &kind, &from, desired) {
        return converted;
    }
    if let Some(converted) = crate::controlplane::convert::convert(&object, &kind, &from, desired) {
        return converted;
    }
    if let Some(converted) = crate::infra::convert::convert(&object, &kind, &from, desired) {
        return converted;
    }
    Err(ConversionError::Unknown {
        kind,
        from,
        to: desired.to_owned(),
    })
}

/// Warnings about fields of an older version without a place in the stored version of `object`. Empty if `old`, the
/// stored object on an update, has the same fields.
#[must_use]
pub fn warnings(object: &Value, old: Option<&Value>) -> Vec<String> {
    stash::warnings(object, old)
}

#[cfg(test)]
mod tests;
