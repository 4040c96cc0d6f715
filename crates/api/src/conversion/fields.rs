//! Moves of fields in JSON objects.

use serde_json::{Map, Value, json};

use super::duration;

/// Fields of an object.
pub(crate) type Fields = Map<String, Value>;
/// Result of converting one object; the error starts with the path of the field.
pub(crate) type Done = Result<(), String>;
/// Conversion of the fields of an object.
pub(crate) type Turn = fn(&mut Fields) -> Done;

/// Applies a [`Turn`] to the object at `path`, if present.
pub(crate) fn within(fields: &mut Fields, path: &[&str], turn: Turn) -> Done {
    let Some((first, rest)) = path.split_first() else {
        return turn(fields);
    };
    match fields.get_mut(*first) {
        Some(Value::Object(inner)) => {
            within(inner, rest, turn).map_err(|problem| format!("{first}.{problem}"))
        }
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(format!("{first} is not an object")),
    }
}

/// Applies `turn` to every object in the list `name`.
pub(crate) fn each(fields: &mut Fields, name: &str, turn: fn(&mut Fields)) {
    let items = fields.get_mut(name).and_then(Value::as_array_mut);
    items
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
        .for_each(turn);
}

/// Renames a field.
pub(crate) fn rename(fields: &mut Fields, from: &str, to: &str) {
    let value = fields.remove(from);
    fields.extend(value.map(|value| (to.to_owned(), value)));
}

/// Moves the field `from` to `path`.
pub(crate) fn put(fields: &mut Fields, path: &[&str], from: &str) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    if let Some(value) = fields.remove(from) {
        nested(fields, parents).insert((*last).to_owned(), value);
    }
}

/// Removes the value at `path`, and parents that become empty.
pub(crate) fn take(fields: &mut Fields, path: &[&str]) -> Option<Value> {
    let (first, rest) = path.split_first()?;
    if rest.is_empty() {
        return fields.remove(*first);
    }
    let inner = fields.get_mut(*first).and_then(Value::as_object_mut)?;
    let value = take(inner, rest)?;
    if inner.is_empty() {
        fields.remove(*first);
    }
    Some(value)
}

/// Object at `path`, created if absent.
pub(crate) fn nested<'a>(fields: &'a mut Fields, path: &[&str]) -> &'a mut Fields {
    let mut at = fields;
    for name in path {
        let value = at.entry(*name).or_insert_with(|| Value::Object(Map::new()));
        if !value.is_object() {
            *value = Value::Object(Map::new());
        }
        let Value::Object(inner) = value else {
            unreachable!("it was replaced by an object")
        };
        at = inner;
    }
    at
}

/// Negation of a boolean; other values are unchanged.
pub(crate) fn inverted(value: Value) -> Value {
    match value {
        Value::Bool(value) => json!(!value),
        other => other,
    }
}

/// Whole seconds of a duration in JSON.
pub(crate) fn seconds_of(value: &Value) -> Option<i32> {
    duration::seconds(value.as_str()?)
}

/// Error for a value other than a duration.
pub(crate) fn not_a_duration(field: &str, value: &Value) -> String {
    format!("{field}: {value} is not a duration such as 10m or 1h30m")
}
