//! Comparison, choice, and types.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::{Named, Value, bool, exactly, first_of, is_empty, string};

pub(super) const ALL: &[Named] = &[
    ("eq", eq),
    ("ne", |values| {
        let [a, b] = exactly(values)?;
        equal(&a, &b).map(|same| Value::Bool(!same))
    }),
    ("lt", |values| {
        let [a, b] = exactly(values)?;
        less(&a, &b).map(Value::Bool)
    }),
    ("le", |values| {
        let [a, b] = exactly(values)?;
        Ok(Value::Bool(less(&a, &b)? || equal(&a, &b)?))
    }),
    ("gt", |values| {
        let [a, b] = exactly(values)?;
        Ok(Value::Bool(!(less(&a, &b)? || equal(&a, &b)?)))
    }),
    ("ge", |values| {
        let [a, b] = exactly(values)?;
        less(&a, &b).map(|less| Value::Bool(!less))
    }),
    ("not", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Bool(!value.is_true()))
    }),
    ("default", |values| {
        let (default, given) = first_of(values)?;
        let given = given.into_iter().next().filter(|given| !is_empty(given));
        Ok(given.unwrap_or(default))
    }),
    ("empty", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Bool(is_empty(&value)))
    }),
    ("coalesce", |values| {
        let found = values.into_iter().find(|value| !is_empty(value));
        Ok(found.unwrap_or(Value::Nil))
    }),
    ("all", |values| {
        Ok(Value::Bool(!values.iter().any(is_empty)))
    }),
    ("any", |values| {
        Ok(Value::Bool(values.iter().any(|value| !is_empty(value))))
    }),
    ("ternary", |values| {
        let [yes, no, test] = exactly(values)?;
        Ok(if bool(&test)? { yes } else { no })
    }),
    ("fail", |values| {
        let [message] = exactly(values)?;
        Err(string(message)?)
    }),
    ("kindOf", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Text(kind(&value).to_owned()))
    }),
    ("kindIs", |values| {
        let [want, value] = exactly(values)?;
        Ok(Value::Bool(string(want)? == kind(&value)))
    }),
    ("typeOf", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Text(type_of(&value).to_owned()))
    }),
    ("typeIs", |values| {
        let [want, value] = exactly(values)?;
        Ok(Value::Bool(string(want)? == type_of(&value)))
    }),
    ("deepEqual", |values| {
        let [a, b] = exactly(values)?;
        Ok(Value::Bool(a == b))
    }),
    ("deepCopy", |values| {
        let [value] = exactly(values)?;
        Ok(value)
    }),
    ("b64enc", |values| {
        let [text] = exactly(values)?;
        Ok(Value::Text(STANDARD.encode(string(text)?)))
    }),
    ("b64dec", |values| {
        let [text] = exactly(values)?;
        let decoded = STANDARD.decode(string(text)?);
        let decoded = decoded.map_err(|problem| problem.to_string())?;
        let text = String::from_utf8(decoded);
        text.map(Value::Text)
            .map_err(|_| "the data is not text".to_owned())
    }),
    ("sha256sum", |values| {
        let [text] = exactly(values)?;
        let digest = Sha256::digest(string(text)?);
        let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Value::Text(hex))
    }),
    ("toJson", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Text(escaped(&value.json().to_string())))
    }),
    ("toRawJson", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Text(value.json().to_string()))
    }),
    ("fromJson", |values| {
        let [text] = exactly(values)?;
        let json: Result<serde_json::Value, _> = serde_json::from_str(&string(text)?);
        json.map(|json| Value::from(&json))
            .map_err(|problem| problem.to_string())
    }),
];

/// Escapes characters with a meaning in HTML, as Go does.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}

fn eq(values: Vec<Value>) -> Result<Value, String> {
    let (first, others) = first_of(values)?;
    if others.is_empty() {
        return Err("missing argument for comparison".to_owned());
    }
    for other in &others {
        if equal(&first, other)? {
            return Ok(Value::Bool(true));
        }
    }
    Ok(Value::Bool(false))
}

fn equal(a: &Value, b: &Value) -> Result<bool, String> {
    use Value::{Bool, Float, Int, List, Map, Missing, Nil, Text};
    let none = |value: &Value| matches!(value, Missing | Nil);
    match (a, b) {
        (a, b) if none(a) || none(b) => Ok(none(a) && none(b)),
        (Bool(a), Bool(b)) => Ok(a == b),
        (Int(a), Int(b)) => Ok(a == b),
        (Float(a), Float(b)) => Ok(a == b),
        (Text(a), Text(b)) => Ok(a == b),
        (List(_) | Map(_), _) | (_, List(_) | Map(_)) => {
            let odd = if matches!(a, List(_) | Map(_)) { a } else { b };
            Err(format!("non-comparable type: {}", odd.type_name()))
        }
        (a, b) => Err(incompatible(a, b)),
    }
}

fn less(a: &Value, b: &Value) -> Result<bool, String> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Ok(a < b),
        (Value::Float(a), Value::Float(b)) => Ok(a < b),
        (Value::Text(a), Value::Text(b)) => Ok(a < b),
        (Value::Int(_) | Value::Float(_) | Value::Text(_), _)
        | (_, Value::Int(_) | Value::Float(_) | Value::Text(_)) => Err(incompatible(a, b)),
        _ => Err("invalid type for comparison".to_owned()),
    }
}

fn incompatible(a: &Value, b: &Value) -> String {
    let (a, b) = (a.type_name(), b.type_name());
    format!(
        "incompatible types for comparison: {a} and {b} (numbers of variables are float64: convert with int)"
    )
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Missing | Value::Nil => "invalid",
        Value::List(_) => "slice",
        Value::Map(_) => "map",
        Value::Version(_) => "ptr",
        other => other.type_name(),
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Missing | Value::Nil => "<nil>",
        other => other.type_name(),
    }
}
