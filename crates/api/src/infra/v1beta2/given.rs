//! Deserializes objects that the Go provider stored: its types write `""` and `0` for absent values, or omit `""` and
//! `0`.
//!
//! So a required string or number that is absent is read as empty, and an optional one that is empty is read as absent.
//! The schemas are not affected, because the derive of the schema ignores these attributes. Fields with an enumeration
//! have no empty value, and are never omitted.

use serde::{Deserialize, Deserializer};

/// A string; an empty one is absent.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// A number; zero is absent.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let number = Option::<i32>::deserialize(from)?;
    Ok(number.filter(|number| *number != 0))
}

/// Whether a number is zero, which is equivalent to absence.
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}
