//! `infrastructure.cluster.x-k8s.io`: clusters and machines in an OpenStack cloud.

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
mod schema;
pub mod v1alpha1;
pub mod v1beta1;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "infrastructure.cluster.x-k8s.io";

#[cfg(test)]
mod tests;
