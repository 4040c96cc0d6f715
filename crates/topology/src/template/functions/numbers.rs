//! Numbers.

use super::{Named, Value, exactly, first_of, int};
use crate::template::run::LARGEST;

pub(super) const ALL: &[Named] = &[
    ("int", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Int(integer(&value)))
    }),
    ("int64", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Int(integer(&value)))
    }),
    ("atoi", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Int(super::string(value)?.parse().unwrap_or(0)))
    }),
    ("float64", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Float(float(&value)))
    }),
    ("add", |values| fold(values, i64::wrapping_add)),
    ("mul", |values| fold(values, i64::wrapping_mul)),
    ("max", |values| fold(values, i64::max)),
    ("min", |values| fold(values, i64::min)),
    ("add1", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Int(integer(&value).wrapping_add(1)))
    }),
    ("sub", |values| {
        let [a, b] = exactly(values)?;
        Ok(Value::Int(integer(&a).wrapping_sub(integer(&b))))
    }),
    ("div", |values| {
        let [a, b] = exactly(values)?;
        let quotient = integer(&a).checked_div(integer(&b));
        quotient
            .map(Value::Int)
            .ok_or_else(|| "integer divide by zero".to_owned())
    }),
    ("mod", |values| {
        let [a, b] = exactly(values)?;
        let rest = integer(&a).checked_rem(integer(&b));
        rest.map(Value::Int)
            .ok_or_else(|| "integer divide by zero".to_owned())
    }),
    ("floor", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Float(float(&value).floor()))
    }),
    ("ceil", |values| {
        let [value] = exactly(values)?;
        Ok(Value::Float(float(&value).ceil()))
    }),
    ("until", |values| {
        let [count] = exactly(values)?;
        let count = int(&count)?;
        steps(0, count, if count < 0 { -1 } else { 1 })
    }),
    ("untilStep", |values| {
        let [start, stop, step] = exactly(values)?;
        steps(int(&start)?, int(&stop)?, int(&step)?)
    }),
];

fn fold(values: Vec<Value>, with: fn(i64, i64) -> i64) -> Result<Value, String> {
    let (first, others) = first_of(values)?;
    let total = others
        .iter()
        .fold(integer(&first), |total, value| with(total, integer(value)));
    Ok(Value::Int(total))
}

fn steps(start: i64, stop: i64, step: i64) -> Result<Value, String> {
    let mut items = Vec::new();
    let mut at = start;
    let beyond = |at: i64| if step < 0 { at <= stop } else { at >= stop };
    while step != 0 && !beyond(at) {
        if items.len() >= LARGEST {
            return Err(format!("more than {LARGEST} numbers"));
        }
        items.push(Value::Int(at));
        at = at.saturating_add(step);
    }
    Ok(Value::List(items))
}

/// Converts a value to an integer, as sprig does: 0 for a value that is no number.
fn integer(value: &Value) -> i64 {
    match value {
        Value::Int(number) => *number,
        // The cast saturates.
        Value::Float(number) => *number as i64,
        Value::Bool(value) => i64::from(*value),
        Value::Text(text) => whole(text).unwrap_or(0),
        _ => 0,
    }
}

/// Parses a number in a text; `0x` and a leading zero mean hexadecimal and octal.
fn whole(text: &str) -> Option<i64> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).ok()?,
        None if digits.len() > 1 && digits.starts_with('0') => {
            i64::from_str_radix(&digits[1..], 8).ok()?
        }
        None => digits.parse().ok()?,
    };
    Some(if negative { -number } else { number })
}

fn float(value: &Value) -> f64 {
    match value {
        Value::Float(number) => *number,
        Value::Text(text) => text.parse().unwrap_or(0.0),
        other => integer(other) as f64,
    }
}
