//! JSON of answers: parsed if it stays small in memory, and described without its content.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

use crate::lenient;

/// Maximum memory of an answer as a tree of values, besides its texts, in bytes. Three bytes, `{},`, take hundreds: a
/// limit on bytes alone does not limit memory.
const TREE: usize = 256 << 20;
/// Memory of an object with a member, a node of a B-tree, in bytes.
const OBJECT: usize = 640;
/// Memory of any value, in an array or as a member, in bytes.
const VALUE: usize = 32;

/// Parses the body of an answer.
///
/// # Errors
/// The mistake, as the end of a sentence that begins with "the answer". No part of the body is quoted: the server at
/// the address may belong to somebody else.
pub(crate) fn json(body: &[u8]) -> Result<Value, String> {
    if tree_size(body) > TREE {
        return Err(format!(
            "has so many values that it takes more than {} MiB",
            TREE >> 20
        ));
    }
    serde_json::from_slice(body).map_err(|error| format!("is not JSON: {}", outline(&error)))
}

/// Deserialises a typed value of an answer, leniently.
///
/// # Errors
/// The unexpected part, without the content.
pub(crate) fn typed<T: DeserializeOwned>(value: Value) -> Result<T, String> {
    lenient::from_value(value).map_err(|error| outline(&error))
}

/// Estimates the memory for the tree of a JSON text, in bytes.
fn tree_size(text: &[u8]) -> usize {
    let (mut in_text, mut is_escaped) = (false, false);
    let mut size = VALUE;
    for byte in text {
        match (in_text, byte) {
            (true, _) if is_escaped => is_escaped = false,
            (true, b'\\') => is_escaped = true,
            (_, b'"') => in_text = !in_text,
            (true, _) => {}
            (false, b'{') => size += OBJECT,
            (false, b'[' | b',') => size += VALUE,
            (false, _) => {}
        }
    }
    size
}

/// Returns the words of a serde error, without the value in question.
fn outline(error: &Error) -> String {
    let text = error.to_string();
    let expected = || text.rfind(", expected ").and_then(|at| text.get(at..));
    let about_a_value = [
        "invalid type: ",
        "invalid value: ",
        "invalid length ",
        "unknown variant ",
        "unknown field ",
        "duplicate field ",
    ];
    let Some(start) = about_a_value.iter().find(|start| text.starts_with(*start)) else {
        return match text.starts_with("missing field ") || error.is_syntax() || error.is_eof() {
            true => text,
            false => "a value is not as expected".to_owned(),
        };
    };
    let kind = text.get(start.len()..).unwrap_or_default();
    let kind = kind
        .split(['`', '"', ','])
        .next()
        .unwrap_or_default()
        .trim_end();
    let what = format!("{start}{kind}");
    format!("{}{}", what.trim_end(), expected().unwrap_or_default())
}

#[cfg(test)]
mod tests;
