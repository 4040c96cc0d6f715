//! Resources as JSON documents, the form in which every OpenStack API returns them. The store has the same form.
//!
//! Fields whose name begins with `_` are internal to the simulator: stored, and never returned.

use serde_json::{Map, Value};

/// One resource.
pub(crate) type Doc = Map<String, Value>;

/// Returns the object in a JSON value; an empty one for other types.
pub(crate) fn doc(value: Value) -> Doc {
    match value {
        Value::Object(map) => map,
        _ => Doc::new(),
    }
}

/// Returns a copy of a [`Doc`] without internal fields.
pub(crate) fn public_fields(doc: &Doc) -> Doc {
    doc.iter()
        .filter(|(name, _)| !name.starts_with('_'))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// Lenient access to fields: an absent field, or one of another type, is empty.
pub(crate) trait Fields {
    /// Returns a string field, or the empty string.
    fn text(&self, name: &str) -> &str;
    /// Returns a boolean field, or false.
    fn flag(&self, name: &str) -> bool;
    /// Returns a number field, or 0.
    fn number(&self, name: &str) -> i64;
    /// Returns a list field, or an empty list.
    fn list(&self, name: &str) -> &[Value];
    /// Returns a copy of an object, or an empty [`Doc`].
    fn object(&self, name: &str) -> Doc;
    /// Returns the strings of a list.
    fn texts(&self, name: &str) -> impl Iterator<Item = &str>;
    /// True if the field is present and not null.
    fn given(&self, name: &str) -> bool;
    /// Replaces a field.
    fn set(&mut self, name: &str, value: impl Into<Value>);
}

impl Fields for Doc {
    fn text(&self, name: &str) -> &str {
        self.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn flag(&self, name: &str) -> bool {
        self.get(name).and_then(Value::as_bool).unwrap_or_default()
    }

    fn number(&self, name: &str) -> i64 {
        self.get(name).and_then(Value::as_i64).unwrap_or_default()
    }

    fn list(&self, name: &str) -> &[Value] {
        self.get(name)
            .and_then(Value::as_array)
            .map(Vec::as_slice)
            .unwrap_or_default()
    }

    fn object(&self, name: &str) -> Doc {
        self.get(name)
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default()
    }

    fn texts(&self, name: &str) -> impl Iterator<Item = &str> {
        self.list(name).iter().filter_map(Value::as_str)
    }

    fn given(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| !value.is_null())
    }

    fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.insert(name.to_owned(), value.into());
    }
}
