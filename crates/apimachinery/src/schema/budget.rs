//! Limit on the defaults of one object. A default is written once for each object without a value, so a few bytes of a
//! request can ask for any amount of defaults, and defaults of nested lists multiply.

use serde_json::Value;

/// Defaults of one object beyond the size that can be stored. The message is the one of kube-apiserver for the object
/// with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("etcdserver: request is too large")]
pub struct Overflow;

/// Bytes of JSON that are left for defaults.
#[derive(Debug)]
pub(crate) struct Budget {
    left: Option<usize>,
}

impl Budget {
    pub(crate) const fn new(bytes: usize) -> Self {
        Self { left: Some(bytes) }
    }

    /// Takes the bytes of a field; returns false if too few are left.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        self.left = self.left.and_then(|left| left.checked_sub(bytes));
        self.left.is_some()
    }

    /// True once more was requested than was left: a walk over an object stops then.
    pub(crate) fn is_spent(&self) -> bool {
        self.left.is_none()
    }

    /// # Errors
    /// [`Overflow`] once more was requested than was left.
    pub(crate) fn done(&self) -> Result<(), Overflow> {
        if self.is_spent() {
            Err(Overflow)
        } else {
            Ok(())
        }
    }
}

/// Returns a lower bound of the bytes of a field as JSON: numbers count as one digit. Recursion is bounded by the depth
/// of schemas.
pub(crate) fn weight(name: &str, value: &Value) -> usize {
    name.len() + 4 + bytes(value)
}

fn bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 1,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 1 + items.len().max(1) + items.iter().map(bytes).sum::<usize>(),
        Value::Object(fields) if fields.is_empty() => 2,
        Value::Object(fields) => {
            let each = fields.iter().map(|(name, value)| weight(name, value));
            1 + each.sum::<usize>()
        }
    }
}

#[test]
fn a_field_weighs_no_more_than_its_json() {
    for value in [
        serde_json::json!({"a": 0}),
        serde_json::json!({"a": [1, 22, "x", null, true], "b": {}, "c": [], "d": {"e": {"f": ""}}}),
    ] {
        let printed = serde_json::json!({"name": value}).to_string();
        let weight = weight("name", &value);
        assert!(
            weight < printed.len() && weight + 4 > printed.len(),
            "{printed}: {weight}"
        );
    }
    let mut budget = Budget::new(10);
    assert!(budget.take(10) && budget.done().is_ok());
    assert!(!budget.take(1) && !budget.take(0) && budget.done().is_err());
}
