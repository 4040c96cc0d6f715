//! Validation of types, enumerations, numbers and strings.

use serde_json::{Number, Value};

use super::Outcome;
use crate::schema::{
    FieldError, format,
    go::{go_json, go_number, go_quote},
    node::{Checks, Kind, Node},
    path::Path,
};

pub(super) fn check_type(value: &Value, node: &Node, path: Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let format = node
        .checks
        .as_ref()
        .and_then(|checks| checks.format.as_deref())
        .unwrap_or("");
    let allowed: &[&str] = match node.kind {
        _ if node.int_or_string => &["integer", "string"],
        Some(kind) => &[kind.as_str()],
        None => &[],
    };
    if allowed.is_empty() && format.is_empty() {
        return outcome;
    }
    let found = Kind::of(value);
    let wrong = |expected: &str, found: &str| {
        let mut outcome = Outcome::default();
        let name = path.dotted();
        let message = format!(
            "{name} in body must be of type {expected}: {}",
            go_quote(found)
        );
        let error = |path, m: &str| FieldError::type_invalid(path, &Value::from(found), m);
        outcome.fail(message, error, path);
        outcome
    };
    if value.is_null() {
        outcome.checks += 1;
        let refused = !allowed.is_empty() && !node.nullable;
        return if refused {
            wrong(&allowed.join(","), "null")
        } else {
            outcome
        };
    }
    let numeric = allowed.iter().any(|t| matches!(*t, "integer" | "number"));
    let matches = allowed.contains(&found)
        || (found == "integer" && allowed.contains(&"number"))
        || matches!(value, Value::Number(n) if allowed.contains(&"integer") && n.as_f64().is_some_and(is_json_integer));
    outcome.checks += 1;
    let structured = matches!(value, Value::String(_) | Value::Array(_));
    if !structured && !format.is_empty() && !matches {
        let found_format = match found {
            "integer" => "int64",
            "number" => "float64",
            _ => "",
        };
        if found_format != format {
            return wrong(format, found_format);
        }
    }
    // A text with a format is checked by the format.
    if !numeric && !format.is_empty() && structured {
        return outcome;
    }
    if matches {
        outcome
    } else {
        wrong(&allowed.join(","), found)
    }
}

/// `swag.IsFloat64AJSONInteger`: within the exact integers of a float, and equal to one in nine digits.
fn is_json_integer(float: f64) -> bool {
    const LARGEST: f64 = 9_007_199_254_740_991.0;
    if float.abs() > LARGEST {
        return false;
    }
    let truncated = float.trunc();
    // A negative number that is not whole wraps around in the reference.
    float == truncated || float > 1.0 && (float - truncated) / (float + truncated) < 1e-9
}

pub(super) fn check_enum(value: &Value, node: &Node, path: Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let Some(allowed) = node
        .checks
        .as_ref()
        .and_then(|checks| checks.allowed.as_deref())
    else {
        return outcome;
    };
    let equal = |allowed: &Value| match (allowed, value) {
        // Go converts the value to the type of the allowed one: 2.5 is truncated to 2.
        (Value::Number(a), Value::Number(b)) if a.is_i64() => {
            a.as_f64() == b.as_f64().map(f64::trunc)
        }
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        _ => allowed == value && !value.is_null(),
    };
    if allowed.is_empty() || allowed.iter().any(equal) {
        return outcome;
    }
    let printed = |value: &Value| value.as_str().map_or_else(|| go_json(value), str::to_owned);
    let supported: Vec<String> = allowed.iter().map(printed).collect();
    let message = format!(
        "{} in body should be one of [{}]",
        path.dotted(),
        supported.join(" ")
    );
    outcome.fail(
        message,
        |path, _| FieldError::not_supported(path, value, &supported),
        path,
    );
    outcome
}

/// Checks that depend on the type of the value.
pub(super) fn check(value: &Value, node: &Node, path: Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    match value {
        Value::String(text) => {
            if let Some(checks) = &node.checks {
                outcome.merge(check_string(value, text, checks, path));
                if let Some(format) = &checks.format
                    && !format::matches(format, text)
                {
                    let quoted = go_quote(text);
                    let name = path.dotted();
                    let message = format!("{name} in body must be of type {format}: {quoted}");
                    let error = |path, m: &str| FieldError::type_invalid(path, value, m);
                    outcome.fail(message, error, path);
                }
            }
            let format = node
                .checks
                .as_ref()
                .is_some_and(|checks| checks.format.is_some());
            outcome.checks += 1 + usize::from(format);
        }
        Value::Number(number) => {
            outcome.merge(check_number(value, number, node, path));
            outcome.checks += 2;
        }
        _ => {}
    }
    outcome
}

/// Returns the first violation only, as in the reference.
fn check_string(value: &Value, text: &str, checks: &Checks, path: Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let length = text.chars().count() as i64;
    let name = || path.dotted();
    if let Some(max) = checks.max_length.filter(|max| length > *max) {
        let message = format!("{} in body should be at most {max} chars long", name());
        outcome.fail(message, |path, _| FieldError::too_long(path, max), path);
    } else if let Some(min) = checks.min_length.filter(|min| length < *min) {
        let message = format!("{} in body should be at least {min} chars long", name());
        outcome.fail(message, |path, m| FieldError::invalid(path, value, m), path);
    } else if let Some(pattern) = checks.pattern.as_ref().filter(|p| !p.regex.is_match(text)) {
        let message = format!("{} in body should match '{}'", name(), pattern.text);
        outcome.fail(message, |path, m| FieldError::invalid(path, value, m), path);
    }
    outcome
}

fn check_number(value: &Value, number: &Number, node: &Node, path: Path<'_>) -> Outcome {
    let mut outcome = Outcome::default();
    let name = path.dotted();
    let float = number.as_f64().unwrap_or_default();
    let Some(checks) = &node.checks else {
        return outcome;
    };
    // The limit is truncated when the value is an integer.
    let constraint = |limit: f64| {
        if number.is_i64() {
            limit.trunc()
        } else {
            limit
        }
    };
    let factor = checks.multiple_of.map(constraint);
    let minimum = checks
        .minimum
        .map(|(l, exclusive)| (constraint(l), exclusive));
    let maximum = checks
        .maximum
        .map(|(l, exclusive)| (constraint(l), exclusive));
    let invalid = |path: String, message: &str| FieldError::invalid(path, value, message);
    if let Some(factor) = factor {
        let printed = go_number(factor);
        if factor <= 0.0 {
            let message =
                format!("factor MultipleOf declared for {name} must be positive: {printed}");
            let factor = Number::from_f64(factor).map_or(Value::Null, Value::Number);
            outcome.fail(
                message,
                |path, m| FieldError::invalid(path, &factor, m),
                path,
            );
        } else if !is_multiple(float, factor) {
            outcome.fail(
                format!("{name} in body should be a multiple of {printed}"),
                invalid,
                path,
            );
        }
    }
    if let Some((limit, exclusive)) = minimum
        && (float < limit || (exclusive && float == limit))
    {
        let relation = if exclusive {
            "greater than"
        } else {
            "greater than or equal to"
        };
        let message = format!("{name} in body should be {relation} {}", go_number(limit));
        outcome.fail(message, invalid, path);
    }
    if let Some((limit, exclusive)) = maximum
        && (float > limit || (exclusive && float == limit))
    {
        let relation = if exclusive {
            "less than"
        } else {
            "less than or equal to"
        };
        let message = format!("{name} in body should be {relation} {}", go_number(limit));
        outcome.fail(message, invalid, path);
    }
    outcome
}

fn is_multiple(number: f64, factor: f64) -> bool {
    let quotient = if factor < 1.0 {
        1.0 / factor * number
    } else {
        number / factor
    };
    (quotient - quotient.round()).abs() < 1e-9
}
