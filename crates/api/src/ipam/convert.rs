//! Conversion v1beta1 <-> v1beta2. The specs have the same fields in both versions.

use serde_json::Value;

use super::GROUP;
use crate::conversion::fields::{Done, Fields, Turn};
use crate::conversion::{ConversionError, Mapping};
use crate::core::convert::status::{conditions_down, conditions_up};
use crate::core::convert::tidy;

/// Converts an object of this group; `None` for other kinds and versions.
pub(crate) fn convert(
    object: &Value,
    kind: &str,
    from: &str,
    to: &str,
) -> Option<Result<Value, ConversionError>> {
    let status: Option<(Turn, Turn)> = match kind {
        "IPAddressClaim" => Some((conditions_up, conditions_down)),
        "IPAddress" => None,
        _ => return None,
    };
    let mapping = Mapping {
        up,
        down: |_| Ok(()),
        status,
        older: &[],
    };
    mapping.convert(object, GROUP, kind, from, to)
}

fn up(fields: &mut Fields) -> Done {
    tidy(fields);
    Ok(())
}

#[cfg(test)]
mod tests;
