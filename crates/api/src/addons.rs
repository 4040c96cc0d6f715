//! Group `addons.cluster.x-k8s.io`: [`ClusterResourceSet`](v1beta2::ClusterResourceSet) and
//! [`ClusterResourceSetBinding`](v1beta2::ClusterResourceSetBinding).
//!
//! v1beta2 is the stored hub; v1beta1 is also served.

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "addons.cluster.x-k8s.io";

/// Type of Secrets with manifests for a [`ClusterResourceSet`](v1beta2::ClusterResourceSet).
pub const SECRET_TYPE: &str = "addons.cluster.x-k8s.io/resource-set";

/// Finalizer of a [`ClusterResourceSet`](v1beta2::ClusterResourceSet).
pub const FINALIZER: &str = "addons.cluster.x-k8s.io";
