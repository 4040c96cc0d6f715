//! JSON patch (RFC 6902) and JSON merge patch (RFC 7386).
//!
//! The `json-patch` crate is not used: it recurses without a limit, and its errors differ from the errors of
//! kube-apiserver's Go library.

use serde_json::{Map, Value};

use super::PatchError;
use crate::schema::{MAX_DEPTH, depth, go_quote, json_type, too_deep};

/// Maximum number of operations of a JSON patch in kube-apiserver.
const MAX_OPERATIONS: usize = 10_000;
/// Maximum total size of `copy` operations, in bytes. The Go library has no limit by default; kube-apiserver sets 3
/// MiB, the limit of requests.
const MAX_COPIED: usize = 3 * 1024 * 1024;

/// See [the module](mod@super::json).
pub(super) fn json(doc: &Value, operations: &Value) -> Result<Value, PatchError> {
    let Value::Array(operations) = operations else {
        return Err(malformed(format!(
            "error decoding patch: json: cannot unmarshal {} into Go value of type []handlers.jsonPatchOp",
            json_type(operations)
        )));
    };
    if operations.len() > MAX_OPERATIONS {
        let message = format!(
            "The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {}",
            operations.len()
        );
        return Err(PatchError::TooLarge { message });
    }
    let operations: Vec<Operation<'_>> = operations
        .iter()
        .map(Operation::parse)
        .collect::<Result<_, _>>()?;
    let mut doc = doc.clone();
    let mut copied = 0;
    for operation in operations {
        operation.apply(&mut doc, &mut copied)?;
    }
    Ok(doc)
}

/// See [`super::merge`].
pub(super) fn merge(doc: &mut Value, patch: &Value) -> Result<(), PatchError> {
    if too_deep(patch) {
        return Err(malformed(format!(
            "the patch is nested deeper than {MAX_DEPTH}"
        )));
    }
    merge_into(doc, patch);
    Ok(())
}

/// Recursion is bounded by the depth of `patch`, checked before.
fn merge_into(doc: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *doc = patch.clone();
        return;
    };
    if !doc.is_object() {
        *doc = Value::Object(Map::new());
    }
    if let Value::Object(fields) = doc {
        for (name, value) in patch {
            if value.is_null() {
                fields.remove(name);
            } else {
                merge_into(fields.entry(name).or_insert(Value::Null), value);
            }
        }
    }
}

#[derive(Debug)]
enum Operation<'a> {
    Add {
        path: Pointer<'a>,
        value: &'a Value,
    },
    Remove {
        path: Pointer<'a>,
    },
    Replace {
        path: Pointer<'a>,
        value: &'a Value,
    },
    Move {
        from: Pointer<'a>,
        path: Pointer<'a>,
    },
    Copy {
        from: Pointer<'a>,
        path: Pointer<'a>,
    },
    Test {
        path: Pointer<'a>,
        value: &'a Value,
    },
}

impl<'a> Operation<'a> {
    fn parse(operation: &'a Value) -> Result<Self, PatchError> {
        let Value::Object(fields) = operation else {
            return Err(malformed(format!(
                "error decoding patch: json: cannot unmarshal {} into Go value of type handlers.jsonPatchOp",
                json_type(operation)
            )));
        };
        let text = |name: &str| match fields.get(name) {
            Some(Value::String(text)) => Ok(text.as_str()),
            Some(other) => Err(malformed(format!(
                "error decoding patch: json: cannot unmarshal {} into Go struct field jsonPatchOp.{name} of type string",
                json_type(other)
            ))),
            None => Err(unfit(format!("a JSON patch operation lacks `{name}`"))),
        };
        let path = || Pointer::parse(text("path")?);
        let from = || Pointer::parse(text("from")?);
        let value = || {
            let missing = || unfit("a JSON patch operation lacks `value`");
            fields.get("value").ok_or_else(missing)
        };
        Ok(match text("op")? {
            "add" => Self::Add {
                path: path()?,
                value: value()?,
            },
            "remove" => Self::Remove { path: path()? },
            "replace" => Self::Replace {
                path: path()?,
                value: value()?,
            },
            "move" => Self::Move {
                from: from()?,
                path: path()?,
            },
            "copy" => Self::Copy {
                from: from()?,
                path: path()?,
            },
            // Without a value, `test` compares with null.
            "test" => Self::Test {
                path: path()?,
                value: fields.get("value").unwrap_or(&Value::Null),
            },
            other => return Err(unfit(format!("Unexpected kind: {other}"))),
        })
    }

    fn apply(&self, doc: &mut Value, copied: &mut usize) -> Result<(), PatchError> {
        match self {
            Self::Add { path, value } => path.add(doc, (*value).clone()),
            Self::Remove { path } => path.remove(doc).map(drop),
            Self::Replace { path, value } => {
                path.check_depth(value)?;
                *path.find_mut(doc, "replace")? = (*value).clone();
                Ok(())
            }
            Self::Move { from, path } => {
                if path.is_inside(from) {
                    return Err(from.failed("move", "a value cannot be moved into itself"));
                }
                let value = from.remove(doc)?;
                path.add(doc, value)
            }
            Self::Copy { from, path } => {
                let value = from.find(doc, "copy")?.clone();
                *copied += size(&value);
                if *copied > MAX_COPIED {
                    let message = format!(
                        "Unable to copy, the accumulated size increase of copy operations is \
                         {copied}, exceeding the limit {MAX_COPIED}"
                    );
                    return Err(PatchError::TooLarge { message });
                }
                path.add(doc, value)
            }
            Self::Test { path, value } => {
                // An absent member equals null, as in the Go library.
                let found = path.get(doc).unwrap_or(&Value::Null);
                if equal(found, value) {
                    Ok(())
                } else {
                    let message = format!("testing value {} failed", path.text);
                    Err(PatchError::Unprocessable { message })
                }
            }
        }
    }
}

/// JSON pointer (RFC 6901) as unescaped tokens.
#[derive(Debug)]
struct Pointer<'a> {
    text: &'a str,
    tokens: Vec<String>,
}

impl<'a> Pointer<'a> {
    fn parse(text: &'a str) -> Result<Self, PatchError> {
        if text.is_empty() {
            return Ok(Self {
                text,
                tokens: Vec::new(),
            });
        }
        let Some(rest) = text.strip_prefix('/') else {
            return Err(unfit(format!("JSON pointer `{text}` must start with `/`")));
        };
        // `~1` first, so that `~01` becomes `~1` and not `/`.
        let unescape = |token: &str| token.replace("~1", "/").replace("~0", "~");
        Ok(Self {
            text,
            tokens: rest.split('/').map(unescape).collect(),
        })
    }

    fn is_inside(&self, other: &Self) -> bool {
        self.tokens.len() > other.tokens.len() && self.tokens.starts_with(&other.tokens)
    }

    fn failed(&self, operation: &str, why: impl std::fmt::Display) -> PatchError {
        let message = format!(
            "{operation} operation does not apply: doc is missing path: {}: {why}",
            go_quote(self.text)
        );
        PatchError::Unprocessable { message }
    }

    fn missing(&self, operation: &str) -> PatchError {
        self.failed(operation, "missing value")
    }

    fn get<'d>(&self, doc: &'d Value) -> Option<&'d Value> {
        self.tokens
            .iter()
            .try_fold(doc, |value, token| match value {
                Value::Object(fields) => fields.get(token),
                Value::Array(items) => items.get(index(token)?),
                _ => None,
            })
    }

    fn find<'d>(&self, doc: &'d Value, operation: &str) -> Result<&'d Value, PatchError> {
        self.get(doc).ok_or_else(|| self.missing(operation))
    }

    fn find_mut<'d>(
        &self,
        doc: &'d mut Value,
        operation: &str,
    ) -> Result<&'d mut Value, PatchError> {
        step_mut(doc, &self.tokens).ok_or_else(|| self.missing(operation))
    }

    /// Checks that an inserted value stays within [`MAX_DEPTH`] at this place.
    fn check_depth(&self, value: &Value) -> Result<(), PatchError> {
        if self.tokens.len() + depth(value) > MAX_DEPTH {
            return Err(malformed(format!(
                "the result is nested deeper than {MAX_DEPTH}"
            )));
        }
        Ok(())
    }

    fn add(&self, doc: &mut Value, value: Value) -> Result<(), PatchError> {
        self.check_depth(&value)?;
        let Some((last, parents)) = self.tokens.split_last() else {
            *doc = value;
            return Ok(());
        };
        match step_mut(doc, parents) {
            Some(Value::Object(fields)) => {
                fields.insert(last.clone(), value);
                Ok(())
            }
            Some(Value::Array(items)) if last == "-" => {
                items.push(value);
                Ok(())
            }
            Some(Value::Array(items)) => match index(last) {
                Some(at) if at <= items.len() => {
                    items.insert(at, value);
                    Ok(())
                }
                Some(at) => Err(self.failed("add", format!("index {at} is out of bounds"))),
                None => Err(self.failed("add", format!("`{last}` is not an array index"))),
            },
            _ => Err(self.missing("add")),
        }
    }

    fn remove(&self, doc: &mut Value) -> Result<Value, PatchError> {
        let Some((last, parents)) = self.tokens.split_last() else {
            return Ok(std::mem::take(doc));
        };
        let removed = match step_mut(doc, parents) {
            Some(Value::Object(fields)) => fields.remove(last),
            Some(Value::Array(items)) => index(last)
                .filter(|at| *at < items.len())
                .map(|at| items.remove(at)),
            _ => None,
        };
        removed.ok_or_else(|| self.missing("remove"))
    }
}

fn step_mut<'d>(doc: &'d mut Value, tokens: &[String]) -> Option<&'d mut Value> {
    tokens.iter().try_fold(doc, |value, token| match value {
        Value::Object(fields) => fields.get_mut(token),
        Value::Array(items) => items.get_mut(index(token)?),
        _ => None,
    })
}

/// Parses an array index: digits without a leading zero (RFC 6901 §4).
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with('0');
    (plain && !token.is_empty() && token.bytes().all(|b| b.is_ascii_digit()))
        .then(|| token.parse().ok())
        .flatten()
}

/// Compares by value: 1 and 1.0 are equal.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| equal(a, b)))
        }
        _ => a == b,
    }
}

/// Returns the approximate size of a value as JSON, in bytes.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len() + 2,
        Value::Array(items) => 2 + items.iter().map(|item| size(item) + 1).sum::<usize>(),
        Value::Object(fields) => {
            2 + fields
                .iter()
                .map(|(name, v)| name.len() + 4 + size(v))
                .sum::<usize>()
        }
        _ => 5,
    }
}

/// Returns the error 422 for a well-formed patch that does not match the object.
fn unfit(message: impl Into<String>) -> PatchError {
    PatchError::Unprocessable {
        message: message.into(),
    }
}

fn malformed(message: impl Into<String>) -> PatchError {
    PatchError::Malformed {
        message: message.into(),
    }
}

#[cfg(test)]
pub(super) mod tests;
