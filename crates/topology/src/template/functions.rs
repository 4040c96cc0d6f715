//! Functions of Go's text/template and of sprig.
//!
//! Functions that change their arguments (`set`, `unset`), depend on the time, randomness or the environment, or create
//! keys and certificates are left out: with them, each reconcile would render another value.

use super::value::Value;

mod basic;
mod lists;
mod maps;
mod numbers;
mod print;
mod text;
mod versions;

/// Function from the values of its arguments, the last one from the pipe, to a value or an error.
type Function = fn(Vec<Value>) -> Result<Value, String>;

/// Function with its name.
type Named = (&'static str, Function);

/// Functions with a `must` twin, which in sprig fails instead of returning nothing. Here both fail.
const MUST: [&str; 20] = [
    "append",
    "compact",
    "deepCopy",
    "first",
    "fromJson",
    "has",
    "initial",
    "last",
    "merge",
    "mergeOverwrite",
    "prepend",
    "regexFind",
    "regexMatch",
    "regexReplaceAll",
    "regexSplit",
    "rest",
    "reverse",
    "toJson",
    "uniq",
    "without",
];

/// True if templates may call the function `name`.
pub(super) fn is_known(name: &str) -> bool {
    matches!(name, "and" | "or") || find(name).is_some()
}

/// Calls a function.
pub(super) fn call(name: &str, values: Vec<Value>) -> Result<Value, String> {
    match find(name) {
        Some(function) => function(values),
        None => Err("is not defined here".to_owned()),
    }
}

fn find(name: &str) -> Option<Function> {
    let name = plain(name);
    let tables = [
        basic::ALL,
        lists::ALL,
        maps::ALL,
        numbers::ALL,
        print::ALL,
        text::ALL,
        versions::ALL,
    ];
    let mut all = tables.into_iter().flatten();
    all.find(|(known, _)| *known == name)
        .map(|(_, function)| *function)
}

/// Returns the name without `must`.
fn plain(name: &str) -> String {
    let rest = name.strip_prefix("must").unwrap_or_default();
    let mut letters = rest.chars();
    let lower = letters.next().map(|first| first.to_ascii_lowercase());
    let lower: String = lower.into_iter().chain(letters).collect();
    match MUST.contains(&lower.as_str()) {
        true => lower,
        false => name.to_owned(),
    }
}

/// Returns the arguments, if there are exactly `N`.
fn exactly<const N: usize>(values: Vec<Value>) -> Result<[Value; N], String> {
    let got = values.len();
    values
        .try_into()
        .map_err(|_| format!("wrong number of args: want {N} got {got}"))
}

/// Returns the first argument, and the others.
fn first_of(values: Vec<Value>) -> Result<(Value, Vec<Value>), String> {
    let mut values = values.into_iter();
    let first = values.next();
    let first = first.ok_or("wrong number of args: want at least 1 got 0")?;
    Ok((first, values.collect()))
}

/// Returns the last argument, and the others.
fn last_of(mut values: Vec<Value>) -> Result<(Vec<Value>, Value), String> {
    let last = values.pop();
    let last = last.ok_or("wrong number of args: want at least 1 got 0")?;
    Ok((values, last))
}

/// Converts a parameter of type string.
fn string(value: Value) -> Result<String, String> {
    match value {
        Value::Text(text) => Ok(text),
        other => Err(wrong("string", &other)),
    }
}

/// Converts a parameter of type int; numbers of JSON are no ints.
fn int(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(number) => Ok(*number),
        other => Err(wrong("int", other)),
    }
}

/// Converts a parameter of type bool.
fn bool(value: &Value) -> Result<bool, String> {
    match value {
        Value::Bool(value) => Ok(*value),
        other => Err(wrong("bool", other)),
    }
}

/// Converts a parameter that is a list.
fn list(value: Value) -> Result<Vec<Value>, String> {
    match value {
        Value::List(items) => Ok(items),
        other => Err(wrong("list", &other)),
    }
}

fn wrong(want: &str, value: &Value) -> String {
    match value {
        Value::Missing | Value::Nil => format!("invalid value; expected {want}"),
        other => format!(
            "wrong type for value; expected {want}; got {}",
            other.type_name()
        ),
    }
}

/// True for an empty value, as sprig defines emptiness.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Version(_) => false,
        other => !other.is_true(),
    }
}
