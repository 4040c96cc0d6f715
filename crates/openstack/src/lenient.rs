//! Lenient deserialisation: clouds return null where the API reference promises a value.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Deserialises a value as if every null member were absent, so that `#[serde(default)]` covers both.
pub(crate) fn from_value<T: DeserializeOwned>(mut value: Value) -> serde_json::Result<T> {
    drop_nulls(&mut value);
    serde_json::from_value(value)
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(list) => {
            list.retain(|value| !value.is_null());
            list.iter_mut().for_each(drop_nulls);
        }
        _ => {}
    }
}
