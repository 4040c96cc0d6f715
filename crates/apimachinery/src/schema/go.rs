//! Values in the form of Go's messages to clients.

use std::fmt::Write as _;

use serde_json::Value;

/// Formats a string like Go's `%q`.
pub fn go_quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => {
                let _ = write!(quoted, "\\x{:02x}", c as u32);
            }
            c if is_invisible(c) && (c as u32) < 0x1_0000 => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c if is_invisible(c) => {
                let _ = write!(quoted, "\\U{:08x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns the name of a JSON type in the errors of Go's decoder.
pub fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Formats a value in a [`FieldError`](super::FieldError): scalars as `%v` or `%q`, everything else as JSON.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::String(text) => go_quote(text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => go_float(float, 21, -4),
            _ => number.to_string(),
        },
        other => go_json(other),
    }
}

/// Formats a value like `%v`: `map[a:1 b:[x y]]`.
pub fn go_plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_plain).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| format!("{name}:{}", go_plain(value));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("map[{}]", fields.join(" "))
        }
        scalar => go_value(scalar),
    }
}

/// Formats a value like `%#v`: `map[string]interface {}{"a":1}`.
pub(crate) fn go_syntax(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_syntax).collect();
            format!("[]interface {{}}{{{}}}", items.join(", "))
        }
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| {
                format!("{}:{}", go_quote(name), go_syntax(value))
            };
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("map[string]interface {{}}{{{}}}", fields.join(", "))
        }
        scalar => go_value(scalar),
    }
}

/// Formats a number like `%v`.
pub(crate) fn go_number(number: f64) -> String {
    go_float(number, 21, -4)
}

/// Formats a value like `encoding/json`: HTML characters are escaped, and whole floats have no fraction.
pub fn go_json(value: &Value) -> String {
    let mut text = String::new();
    write_json(value, &mut text);
    text
}

/// Recursion is bounded: values are at most [`super::MAX_DEPTH`] deep.
fn write_json(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            text.push('{');
            for (i, (name, value)) in fields.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_json_string(name, text);
                text.push(':');
                write_json(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                write_json(item, text);
            }
            text.push(']');
        }
        Value::String(string) => write_json_string(string, text),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (None, Some(float)) => text.push_str(&go_float(float, 21, -6)),
            _ => text.push_str(&number.to_string()),
        },
        other => text.push_str(&other.to_string()),
    }
}

fn write_json_string(string: &str, text: &mut String) {
    let plain = Value::from(string).to_string();
    for c in plain.chars() {
        match c {
            '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(text, "\\u{:04x}", c as u32);
            }
            c => text.push(c),
        }
    }
}

/// Formats a number in the shortest form; with an exponent from `10^big` on and below `10^small`.
fn go_float(number: f64, big: i32, small: i32) -> String {
    let scientific = format!("{number:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific; // NaN and infinities, which JSON lacks
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if number != 0.0 && (exponent < small || exponent >= big) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    format!("{number}")
}

/// Approximates Go's `!strconv.IsPrint` for the characters that occur in practice.
fn is_invisible(c: char) -> bool {
    c != ' '
        && (c.is_control()
            || c.is_whitespace()
            || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}'))
}
