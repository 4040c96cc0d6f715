//! Means of a conversion, below all groups: mappings of fields, durations, and the stash for fields that a version lacks.

pub(crate) mod duration;
pub(crate) mod fields;
mod mapping;
pub(crate) mod moves;
pub(crate) mod stash;

pub(crate) use mapping::{Mapping, Older};
pub use moves::Row;

/// Why a conversion failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConversionError {
    /// The object has no usable `apiVersion` or `kind`.
    #[error("the object has no apiVersion and kind")]
    Untyped,
    /// There is no conversion between these versions.
    #[error("{kind} cannot be converted from {from} to {to}")]
    Unknown {
        /// The object's kind.
        kind: String,
        /// The version of the object.
        from: String,
        /// The desired version.
        to: String,
    },
    /// The object is invalid in its version.
    #[error("{kind} in {version}: {problem}")]
    Malformed {
        /// The object's kind.
        kind: String,
        /// The version of the object.
        version: String,
        /// The error, with the field's path.
        problem: String,
    },
}
