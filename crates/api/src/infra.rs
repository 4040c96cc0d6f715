//! `infrastructure.cluster.x-k8s.io`: clusters and machines in an OpenStack cloud.

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub(crate) mod schema;
pub mod v1alpha1;
pub mod v1beta1;
pub mod v1beta2;

pub(crate) use admission::{FIELDS_IN_PLACE, differences_in_place};

/// The API group.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";
/// The maximum length of user data in Nova's schema, in bytes of base64.
pub const USER_DATA_ENCODED_LIMIT: usize = 65_535;
/// Maximum length in bytes before base64.
pub const USER_DATA_LIMIT: usize = USER_DATA_ENCODED_LIMIT / 4 * 3;

#[cfg(test)]
mod tests;
