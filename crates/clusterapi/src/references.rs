//! Conversions between forms of references.

use api::core::v1beta2::{ContractReference, VersionedReference};

/// Reference without its version.
pub(crate) fn contract(reference: &VersionedReference) -> ContractReference {
    let group = reference
        .api_version
        .split_once('/')
        .map_or("", |(group, _)| group);
    ContractReference::new(group, &reference.kind, &reference.name)
}
