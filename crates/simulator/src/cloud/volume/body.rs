//! Schemas of Cinder's request bodies, as far as needed: unknown fields, texts, sizes, metadata.

use serde_json::Value;

use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::query;

/// First microversion that refuses unknown fields of a volume.
const STRICT: u32 = 53;
/// Longest name and description.
const LONGEST: usize = 255;

/// The body has nothing but `name` and the `others`.
pub(super) fn only(body: &Value, name: &str, others: &[&str]) -> Result<(), Fault> {
    let keys = body.as_object().into_iter().flat_map(|body| body.keys());
    let mut unknown = keys.filter(|key| *key != name && !others.contains(&key.as_str()));
    match unknown.next() {
        None => Ok(()),
        Some(key) => Err(Fault::bad(format!(
            "Invalid input for field/attribute body. Additional properties are not allowed ('{key}' was unexpected)"
        ))),
    }
}

/// Returns a [`Fault`] for other fields than `known` in an object of a volume's request, from 3.53 on.
pub(super) fn fields(
    call: &Call<'_>,
    name: &str,
    given: &Doc,
    known: &[&str],
) -> Result<(), Fault> {
    match call.version >= STRICT {
        true => strict(name, given, known),
        false => Ok(()),
    }
}

/// Returns a [`Fault`] for other fields than `known` in an object, at any version.
pub(super) fn strict(name: &str, given: &Doc, known: &[&str]) -> Result<(), Fault> {
    match given.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(Fault::bad(format!(
            "Invalid input for field/attribute {name}. Value: {}. Additional properties are not allowed ('{key}' was \
             unexpected)",
            Value::Object(given.clone())
        ))),
    }
}

/// Returns a [`Fault`] unless the fields are texts of at most 255 characters, null or absent.
pub(super) fn texts(given: &Doc, names: &[&str]) -> Result<(), Fault> {
    for name in names {
        match given.get(*name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.trim().chars().count() <= LONGEST => {}
            Some(Value::String(text)) => {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute {name}. Value: {text}. '{text}' is too long"
                )));
            }
            Some(other) => {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute {name}. Value: {other}. {other} is not of type 'string', 'null'"
                )));
            }
        }
    }
    Ok(())
}

/// Returns a text without the spaces around it, as Cinder removes them from names.
pub(super) fn trimmed<'a>(given: &'a Doc, name: &str) -> &'a str {
    given.text(name).trim()
}

/// Returns a [`Fault`] unless `metadata` is an object of texts of at most 255 characters, null or absent.
pub(super) fn metadata(given: &Doc) -> Result<(), Fault> {
    let metadata = match given.get("metadata") {
        None | Some(Value::Null) => return Ok(()),
        Some(Value::Object(metadata)) => metadata,
        Some(other) => {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute metadata. Value: {other}. {other} is not of type 'object', 'null'"
            )));
        }
    };
    pairs("metadata", metadata)
}

/// Keys and values of metadata: texts of at most 255 characters; keys have at least one, and only some characters.
pub(super) fn pairs(name: &str, given: &Doc) -> Result<(), Fault> {
    let fits = |text: &str| text.chars().count() <= LONGEST;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_:. /".contains(c);
    for (key, value) in given {
        if key.is_empty() || !fits(key) || !key.chars().all(is_plain) {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute {name}. Value: {}. '{key}' does not match any of the regexes: \
                 '^[a-zA-Z0-9-_:. /]{{1,255}}$'",
                Value::Object(given.clone())
            )));
        }
        let why = match value {
            Value::String(text) if fits(text) => continue,
            Value::String(_) => "too long",
            _ => "not of type 'string'",
        };
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute {key}. Value: {value}. {value} is {why}"
        )));
    }
    Ok(())
}

/// Parses a size in GiB: a number, or a text with one.
pub(super) fn size(name: &str, value: &Value) -> Result<i64, Fault> {
    let size = match value {
        Value::String(text) if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok(),
        value => value.as_i64(),
    };
    match size {
        Some(size) if size < 1 => Err(Fault::bad(format!(
            "Invalid input for field/attribute {name}. Value: {value}. {value} is less than the minimum of 1"
        ))),
        Some(size) if size > i64::from(i32::MAX) => Err(Fault::bad(format!(
            "Invalid input for field/attribute {name}. Value: {value}. {value} is greater than the maximum of {}",
            i32::MAX
        ))),
        Some(size) => Ok(size),
        None => Err(Fault::bad(format!(
            "Invalid input for field/attribute {name}. Value: {value}. {value} does not match '^[0-9]+$'"
        ))),
    }
}

/// Parses a boolean in any spelling that Cinder takes.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Bool(flag) => *flag,
        Value::String(text) => query::truth(text) == Some(true),
        _ => false,
    }
}

/// Returns a field that must be a boolean, in any spelling.
pub(super) fn boolean(given: &Doc, name: &str) -> Result<Option<bool>, Fault> {
    let found = match given.get(name) {
        None => return Ok(None),
        Some(Value::Bool(flag)) => Some(*flag),
        Some(Value::String(text)) => query::truth(text),
        Some(_) => None,
    };
    match found {
        Some(flag) => Ok(Some(flag)),
        None => Err(Fault::bad(format!(
            "Invalid input for field/attribute {name}. Value: {}. {} is not one of [True, 'True', 'TRUE', 'true', '1', \
             'ON', 'On', 'on', 'YES', 'Yes', 'yes', False, 'False', 'FALSE', 'false', '0', 'OFF', 'Off', 'off', 'NO', \
             'No', 'no']",
            given[name], given[name]
        ))),
    }
}
