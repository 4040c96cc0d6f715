//! Group `addons.cluster.x-k8s.io`: ClusterResourceSet and ClusterResourceSetBinding.
//!
//! v1beta2 is the stored hub; v1beta1 is served, too.

pub(crate) mod admission;
pub(crate) mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "addons.cluster.x-k8s.io";

/// The type of Secrets whose manifests a ClusterResourceSet applies.
pub const SECRET_TYPE: &str = "addons.cluster.x-k8s.io/resource-set";

/// The finalizer of ClusterResourceSets.
pub const FINALIZER: &str = "addons.cluster.x-k8s.io";
