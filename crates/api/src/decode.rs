//! Decoder of Kubernetes objects from JSON.
//!
//! Serde compiles the code of each type once per deserializer. So all objects are read by the single deserializer of
//! this module: from a [`Value`], with the path of the field in errors, recorded only on an error.

use std::fmt::{self, Display, Write as _};

use serde::de::{self, Deserialize, Expected, Unexpected};
use serde_json::Value;

mod field;

use field::Field;

/// Decoding error, with the path of the field.
#[derive(Clone, Debug, PartialEq)]
pub struct Undecoded(Box<Problem>);

#[derive(Clone, Debug, PartialEq)]
struct Problem {
    /// Steps from the field to the root.
    path: Vec<Step>,
    message: String,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Key(String),
    Index(usize),
}

impl Undecoded {
    /// Path of the field, such as `spec.ports[0].name`; `.` for the value itself.
    #[must_use]
    pub fn path(&self) -> String {
        if self.0.path.is_empty() {
            return ".".to_owned();
        }
        let mut path = String::new();
        for step in self.0.path.iter().rev() {
            let _ = match step {
                Step::Key(key) if path.is_empty() => write!(path, "{key}"),
                Step::Key(key) => write!(path, ".{key}"),
                Step::Index(index) => write!(path, "[{index}]"),
            };
        }
        path
    }

    /// Message about the field, in serde's words.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    #[cold]
    fn at_key(mut self, key: &str) -> Self {
        self.0.path.push(Step::Key(key.to_owned()));
        self
    }

    #[cold]
    fn at_index(mut self, index: usize) -> Self {
        self.0.path.push(Step::Index(index));
        self
    }

    #[cold]
    fn of_type(found: &Value, expected: &dyn Expected) -> Self {
        de::Error::invalid_type(unexpected(found), expected)
    }
}

fn unexpected(value: &Value) -> Unexpected<'_> {
    match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(value) => Unexpected::Bool(*value),
        Value::Number(number) => match (number.as_u64(), number.as_i64()) {
            (Some(value), _) => Unexpected::Unsigned(value),
            (None, Some(value)) => Unexpected::Signed(value),
            (None, None) => Unexpected::Float(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    }
}

impl Display for Undecoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.0.path.is_empty() {
            write!(f, "{}: ", self.path())?;
        }
        f.write_str(&self.0.message)
    }
}

impl std::error::Error for Undecoded {}

impl de::Error for Undecoded {
    #[cold]
    fn custom<T: Display>(message: T) -> Self {
        Self(Box::new(Problem {
            path: Vec::new(),
            message: message.to_string(),
        }))
    }

    // As in serde_json: `null` in place of `unit value`.
    #[cold]
    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(serde_json::Error::invalid_type(found, expected))
    }

    #[cold]
    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::custom(serde_json::Error::invalid_value(found, expected))
    }
}

/// Decodes `value`.
///
/// # Errors
/// [`Undecoded`], with the path of the invalid field. A struct must be an object, never a list of fields.
pub fn decoded<'de, T: Deserialize<'de>>(value: &'de Value) -> Result<T, Undecoded> {
    T::deserialize(Field(value))
}

#[cfg(test)]
mod tests;
