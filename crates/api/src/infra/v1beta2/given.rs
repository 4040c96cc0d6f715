//! Deserializers for objects stored by the Go provider: its types write `""` and `0` for absent values, or omit `""`
//! and `0`.
//!
//! So an absent required string or number is read as empty, and an empty optional one is read as absent. Schemas are
//! not affected: the derive macro for schemas ignores these attributes. Fields with an enumeration have no empty value,
//! and are never omitted.

use serde::{Deserialize, Deserializer};

/// String; empty as absent.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// Number; zero as absent.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let number = Option::<i32>::deserialize(from)?;
    Ok(number.filter(|number| *number != 0))
}

/// True for zero, the equivalent of absence.
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}
