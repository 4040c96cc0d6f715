//! Values, and their printed form.

use std::collections::BTreeMap;

use serde_json::Value as Json;

/// Value of a template.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Missing key of a map; printed as `<no value>`.
    Missing,
    /// JSON's `null`; printed like a missing key.
    Nil,
    /// Boolean.
    Bool(bool),
    /// Integer: a literal, or the result of a function. JSON values have none.
    Int(i64),
    /// Floating-point number.
    Float(f64),
    /// Text.
    Text(String),
    /// List.
    List(Vec<Value>),
    /// Map, sorted by key; `range` visits the keys in this order.
    Map(BTreeMap<String, Value>),
    /// Semantic version, with fields such as `.Major`.
    Version(Box<Version>),
}

/// Semantic version with all of its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Version {
    pub(super) original: String,
    pub(super) numbers: [u64; 3],
    pub(super) pre: String,
    pub(super) build: String,
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Self {
        match json {
            Json::Null => Value::Nil,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => Value::Float(number.as_f64().unwrap_or_default()),
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Value::from).collect()),
            Json::Object(fields) => {
                let fields = fields.iter();
                Value::Map(
                    fields
                        .map(|(name, value)| (name.clone(), value.into()))
                        .collect(),
                )
            }
        }
    }
}

impl Value {
    /// Returns the value as JSON, in Go's encoding.
    pub(super) fn json(&self) -> Json {
        match self {
            Value::Missing | Value::Nil => Json::Null,
            Value::Bool(value) => Json::from(*value),
            Value::Int(number) => Json::from(*number),
            Value::Float(number) => {
                // Whole numbers have no fraction in Go's JSON.
                let whole = number.fract() == 0.0 && number.abs() < 1e15;
                if whole {
                    Json::from(*number as i64)
                } else {
                    Json::from(*number)
                }
            }
            Value::Text(text) => Json::from(text.as_str()),
            Value::List(items) => items.iter().map(Value::json).collect(),
            Value::Map(fields) => {
                let fields = fields.iter();
                Json::Object(
                    fields
                        .map(|(name, value)| (name.clone(), value.json()))
                        .collect(),
                )
            }
            Value::Version(version) => Json::from(version.text()),
        }
    }

    /// True if `if` takes the first branch.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Value::Missing | Value::Nil => false,
            Value::Bool(value) => *value,
            Value::Int(number) => *number != 0,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::List(items) => !items.is_empty(),
            Value::Map(fields) => !fields.is_empty(),
            Value::Version(_) => true,
        }
    }

    /// Returns the name of the value's type in Go, for messages.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Value::Missing | Value::Nil => "nil",
            Value::Bool(_) => "bool",
            Value::Int(_) => "int",
            Value::Float(_) => "float64",
            Value::Text(_) => "string",
            Value::List(_) => "[]interface {}",
            Value::Map(_) => "map[string]interface {}",
            Value::Version(_) => "*semver.Version",
        }
    }

    /// Returns the value in Go's `%v` form, with `<no value>` as templates print it.
    pub(super) fn printed(&self) -> String {
        match self {
            Value::Missing | Value::Nil => "<no value>".to_owned(),
            other => other.go_text(),
        }
    }

    /// Returns the value in Go's `%v` form.
    pub(super) fn go_text(&self) -> String {
        match self {
            Value::Missing | Value::Nil => "<nil>".to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(number) => number.to_string(),
            Value::Float(number) => float(*number),
            Value::Text(text) => text.clone(),
            Value::List(items) => {
                let items: Vec<_> = items.iter().map(Value::go_text).collect();
                format!("[{}]", items.join(" "))
            }
            Value::Map(fields) => {
                let fields = fields.iter();
                let fields: Vec<_> = fields
                    .map(|(name, value)| format!("{name}:{}", value.go_text()))
                    .collect();
                format!("map[{}]", fields.join(" "))
            }
            Value::Version(version) => version.text(),
        }
    }

    /// Returns the size: elements, and sixteenths of bytes of text. Stops counting at `limit`.
    pub(super) fn weight(&self, limit: usize) -> usize {
        let mut total = 1;
        let mut add = |weight: usize| {
            total += weight;
            total < limit
        };
        match self {
            Value::Text(text) => {
                add(text.len() / 16);
            }
            Value::List(items) => {
                let _ = items.iter().all(|item| add(item.weight(limit)));
            }
            Value::Map(fields) => {
                let _ = fields
                    .iter()
                    .all(|(name, value)| add(name.len() / 16 + value.weight(limit)));
            }
            _ => {}
        }
        total
    }

    /// Returns the field `name`, as Go's reflection does.
    pub(super) fn field(&self, name: &str) -> Result<Value, String> {
        match self {
            Value::Missing => Ok(Value::Missing),
            Value::Map(fields) => Ok(fields.get(name).cloned().unwrap_or(Value::Missing)),
            Value::Nil => Err(format!("nil pointer evaluating interface {{}}.{name}")),
            Value::Version(version) => version.field(name),
            other => Err(format!(
                "can't evaluate field {name} in type {}",
                other.type_name()
            )),
        }
    }
}

impl Version {
    /// Returns the version without a leading `v`.
    pub(super) fn text(&self) -> String {
        let [major, minor, patch] = self.numbers;
        let mut text = format!("{major}.{minor}.{patch}");
        for (sign, part) in [('-', &self.pre), ('+', &self.build)] {
            if !part.is_empty() {
                text.push(sign);
                text.push_str(part);
            }
        }
        text
    }

    fn field(&self, name: &str) -> Result<Value, String> {
        let number = |at: usize| Value::Int(i64::try_from(self.numbers[at]).unwrap_or(i64::MAX));
        Ok(match name {
            "Major" => number(0),
            "Minor" => number(1),
            "Patch" => number(2),
            "Prerelease" => Value::Text(self.pre.clone()),
            "Metadata" => Value::Text(self.build.clone()),
            "Original" => Value::Text(self.original.clone()),
            "String" => Value::Text(self.text()),
            other => {
                return Err(format!(
                    "can't evaluate field {other} in type *semver.Version"
                ));
            }
        })
    }
}

/// Formats a number like `strconv.FormatFloat(x, 'g', -1, 64)`.
pub(super) fn float(number: f64) -> String {
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    if !number.is_finite() {
        return match number {
            number if number.is_nan() => "NaN",
            number if number > 0.0 => "+Inf",
            _ => "-Inf",
        }
        .to_owned();
    }
    let scientific = format!("{number:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    // For the shortest digits, Go decides as for a precision of 6.
    if (-4..6).contains(&exponent) {
        return format!("{number}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}
