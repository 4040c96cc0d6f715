//! Building blocks of conversions, below all groups: mappings of fields, durations, and the stash for fields without
//! equivalent.

pub(crate) mod duration;
pub(crate) mod fields;
mod mapping;
pub(crate) mod moves;
pub(crate) mod stash;

pub(crate) use mapping::{Mapping, Older};
pub use moves::Row;

/// Failure of a conversion.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The object has no usable `apiVersion` or `kind`.
    #[error("the object has no apiVersion and kind")]
    Untyped,
    /// No conversion exists between these versions.
    #[error("{kind} cannot be converted from {from} to {to}")]
    Unknown {
        /// Kind of the object.
        kind: String,
        /// Version of the object.
        from: String,
        /// Wanted version.
        to: String,
    },
    /// The object is invalid in its version.
    #[error("{kind} in {version}: {problem}")]
    Malformed {
        /// Kind of the object.
        kind: String,
        /// Version of the object.
        version: String,
        /// Error, with the path of the field.
        problem: String,
    },
}
