//! Group `controlplane.cluster.x-k8s.io`: control planes managed by kubeadm.
//!
//! - [`v1beta2`]: kinds [`KubeadmControlPlane`](v1beta2::KubeadmControlPlane),
//!   [`KubeadmControlPlaneTemplate`](v1beta2::KubeadmControlPlaneTemplate) (stored)
//! - [`convert`]: v1beta1 <-> v1beta2
//! - [`admission`]: defaulting, validation, immutable fields
//! - [`crd`]: the CustomResourceDefinitions

pub mod admission;
pub mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "controlplane.cluster.x-k8s.io";
