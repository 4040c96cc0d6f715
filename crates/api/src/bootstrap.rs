//! Group `bootstrap.cluster.x-k8s.io`: bootstrap data for a machine to become a Node.
//!
//! - [`v1beta2`]: kinds [`KubeadmConfig`](v1beta2::KubeadmConfig), [`KubeadmConfigTemplate`](v1beta2::KubeadmConfigTemplate)
//!   (stored)
//! - [`convert`]: v1beta1 <-> v1beta2, shared with the kubeadm control plane
//! - [`admission`]: defaulting and validation beyond the schema
//! - [`crd`]: the CustomResourceDefinitions

pub mod admission;
pub mod convert;
pub mod crd;
pub mod v1beta2;

/// The API group.
pub const GROUP: &str = "bootstrap.cluster.x-k8s.io";
