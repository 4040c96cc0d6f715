//! Access to JSON values that may lack the expected content.

use serde_json::Value;

/// Returns the string; empty for anything else.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Returns the elements of a list; none for anything else.
pub fn items(list: &Value) -> impl Iterator<Item = &Value> {
    slice(list).iter()
}

/// Returns the elements of a list as a slice; empty for anything else.
pub fn slice(list: &Value) -> &[Value] {
    list.as_array().map_or(&[], Vec::as_slice)
}
