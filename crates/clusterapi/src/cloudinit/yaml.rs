//! YAML output with the same meaning in YAML 1.1 and YAML 1.2.
//!
//! cloud-init reads YAML 1.1, kubeadm a mixture of 1.1 and 1.2: both interpret `on`, `0640`, `1e3` and `12:30`
//! differently. Ambiguous strings are quoted. Keys are sorted, so that equal input gives equal text.

use std::fmt::Write;

use serde_json::Value;

/// `value` as one YAML document, ending in a newline.
pub fn document(value: &Value) -> String {
    let mut out = String::new();
    block(&mut out, value, 0);
    out
}

/// `text` as a scalar that every parser reads as a string.
pub fn scalar(text: &str) -> String {
    if is_plain(text) {
        text.to_owned()
    } else {
        quoted(text)
    }
}

/// `text` in double quotes.
pub fn quoted(text: &str) -> String {
    // A JSON string is a YAML string, except for characters that are line breaks in YAML, or not allowed.
    let mut out = String::new();
    for c in Value::from(text).to_string().chars() {
        if is_unsafe(c) {
            let _ = write!(out, "\\u{:04x}", u32::from(c));
        } else {
            out.push(c);
        }
    }
    out
}

/// True if `c` must be escaped in YAML although JSON does not require it (YAML 1.2, production 1).
fn is_unsafe(c: char) -> bool {
    matches!(
        c,
        '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
    )
}

/// `text` as the value of a key at `indent` columns: a literal block if the block preserves every character, quoted
/// otherwise.
pub fn literal(text: &str, indent: usize) -> String {
    if !fits_literal(text) {
        return quoted(text);
    }
    let chomp = if text.ends_with('\n') { "" } else { "-" };
    let mut out = format!("|{chomp}");
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        out.push('\n');
        if !line.is_empty() {
            let _ = write!(out, "{:indent$}{line}", "");
        }
    }
    out
}

/// True if a literal block preserves `text`: no characters that YAML changes, no leading blank (read as indentation),
/// no trailing empty lines.
fn fits_literal(text: &str) -> bool {
    let printable = |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_unsafe(c));
    let body = text.strip_suffix('\n').unwrap_or(text);
    !body.is_empty()
        && !body.starts_with([' ', '\t', '\n'])
        && !body.ends_with('\n')
        && text.chars().all(printable)
}

/// True if `text` needs no quotes: starts with a letter or `/`, and is a string in both YAML 1.1 and 1.2.
fn is_plain(text: &str) -> bool {
    let reserved = [
        "null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf",
    ];
    let starts = |c: char| c.is_ascii_alphabetic() || c == '/';
    let inside = |c: char| c.is_ascii_alphanumeric() || "/._-@+=".contains(c);
    text.starts_with(starts)
        && text.chars().all(inside)
        && !reserved.contains(&text.to_ascii_lowercase().as_str())
}

fn block(out: &mut String, value: &Value, indent: usize) {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            for (key, value) in fields {
                let _ = write!(out, "{:indent$}{}:", "", scalar(key));
                entry(out, value, indent);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                let _ = write!(out, "{:indent$}-", "");
                let mut inner = String::new();
                if is_block(item) {
                    block(&mut inner, item, indent + 2);
                    // The first line follows the dash.
                    let _ = write!(out, " {}", inner.trim_start_matches(' '));
                } else {
                    entry(out, item, indent);
                }
            }
        }
        other => {
            let _ = writeln!(out, "{:indent$}{}", "", flow(other, indent));
        }
    }
}

fn entry(out: &mut String, value: &Value, indent: usize) {
    if is_block(value) {
        out.push('\n');
        // Lists have the indentation of their key, as kubectl prints them.
        block(
            out,
            value,
            if value.is_array() { indent } else { indent + 2 },
        );
    } else {
        let _ = writeln!(out, " {}", flow(value, indent + 2));
    }
}

fn is_block(value: &Value) -> bool {
    match value {
        Value::Object(fields) => !fields.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => false,
    }
}

fn flow(value: &Value, indent: usize) -> String {
    match value {
        Value::String(text) if text.contains('\n') => literal(text, indent),
        Value::String(text) => scalar(text),
        Value::Object(_) => "{}".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests;
