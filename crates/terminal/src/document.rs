//! Documents for programs, and for a person at a terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

use api::printable::{self, is_hidden};
use serde::Serialize;

/// Cause why a value has no text in JSON or YAML.
#[derive(Debug, thiserror::Error)]
pub enum UnwritableError {
    /// As JSON.
    #[error(transparent)]
    Json(#[from] serde_json::Error),
    /// As YAML.
    #[error(transparent)]
    Yaml(#[from] serde_saphyr::ser::Error),
}

/// The value as JSON of several lines. Control characters are escaped as in JSON.
///
/// # Errors
/// If the value cannot be written as JSON.
pub fn json(value: &impl Serialize) -> serde_json::Result<String> {
    let text = serde_json::to_string_pretty(value)?;
    Ok(format!("{}\n", escaped_json(&text)))
}

/// The value as YAML; as [`json`], a kind of YAML, if YAML would leave a control character unescaped.
///
/// # Errors
/// If the value cannot be written as YAML.
pub fn yaml(value: &impl Serialize) -> Result<String, UnwritableError> {
    let text = serde_saphyr::to_string(value)?;
    match text.contains(|letter| letter != '\n' && is_hidden(letter)) {
        true => Ok(json(value)?),
        false => Ok(text),
    }
}

/// A document as JSON of several lines, as [`json`].
pub fn json_document(document: &serde_json::Value) -> String {
    escaped_json(&format!("{document:#}\n")).into_owned()
}

/// The value as JSON on one line, without a line break.
pub fn json_line(value: &serde_json::Value) -> String {
    escaped_json(&value.to_string()).into_owned()
}

/// The text of JSON, with more escaped than JSON requires. Only strings have such characters.
pub fn escaped_json(text: &str) -> Cow<'_, str> {
    let is_escaped = |letter: char| letter != '\n' && is_hidden(letter);
    if !text.contains(is_escaped) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for letter in text.chars() {
        if is_escaped(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        } else {
            escaped.push(letter);
        }
    }
    Cow::Owned(escaped)
}

/// A document as a terminal displays it: control characters but line breaks and tabs are escaped.
pub fn displayed(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter| !matches!(letter, '\n' | '\t') && is_hidden(letter)) {
        return Cow::Borrowed(text);
    }
    let parts: Vec<Cow<'_, str>> = text.split('\t').map(printable::lines).collect();
    Cow::Owned(parts.join("\t"))
}
