//! JSON patch (RFC 6902) from one object to another.

use serde_json::{Map, Value, json};

/// Returns the operations that change `before` to `after`. Maps are compared by key; all other values are replaced as a
/// whole.
pub(super) fn difference(before: &Value, after: &Value) -> Vec<Value> {
    let mut operations = Vec::new();
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            compare(String::new(), before, after, &mut operations);
        }
        _ if before != after => {
            operations.push(json!({"op": "replace", "path": "", "value": after}))
        }
        _ => {}
    }
    operations
}

fn compare(
    path: String,
    before: &Map<String, Value>,
    after: &Map<String, Value>,
    operations: &mut Vec<Value>,
) {
    let at = |key: &str| format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"));
    for key in before.keys().filter(|key| !after.contains_key(*key)) {
        operations.push(json!({"op": "remove", "path": at(key)}));
    }
    for (key, new) in after {
        match (before.get(key), new) {
            (None, _) => operations.push(json!({"op": "add", "path": at(key), "value": new})),
            (Some(Value::Object(old)), Value::Object(new)) => {
                compare(at(key), old, new, operations);
            }
            (Some(old), _) if old != new => {
                operations.push(json!({"op": "replace", "path": at(key), "value": new}));
            }
            _ => {}
        }
    }
}
