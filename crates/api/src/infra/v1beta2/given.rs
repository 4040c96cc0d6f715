//! Reading what the Go provider stored: its types write `""` and `0` for nothing, or nothing for `""` and `0`.
//!
//! So a required text or number that is absent is read as empty, and an optional one that is empty as absent.
//! The schemas stay as they are: the derive of the schema does not see these attributes. Fields with an
//! enumeration have no empty value, and are never dropped.

use serde::{Deserialize, Deserializer};

/// A text, unless it is empty.
pub(crate) fn text<'de, D: Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    let text = Option::<String>::deserialize(from)?;
    Ok(text.filter(|text| !text.is_empty()))
}

/// A number, unless it is zero.
pub(crate) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<i32>, D::Error> {
    let number = Option::<i32>::deserialize(from)?;
    Ok(number.filter(|number| *number != 0))
}

/// Whether a number is zero, which stands for none.
pub(crate) fn is_zero(number: &i32) -> bool {
    *number == 0
}
