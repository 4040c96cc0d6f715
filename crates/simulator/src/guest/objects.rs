//! Kubernetes objects of a cluster of real machines, as JSON. Pure.
//!
//! ```text
//!   node     the Node that a kubelet registers, and its status
//!   pods     the mirror pods of a control plane's static pods
//!   kubeadm  the objects of `kubeadm init`: kubeadm-config, kubelet-config, cluster-info, RBAC
//!   addons   kube-proxy and CoreDNS
//! ```

pub(crate) mod addons;
pub(crate) mod kubeadm;
pub(crate) mod node;
pub(crate) mod pods;

use serde_json::Value;

use super::kubeadm::ClusterConfiguration;

/// kubeadm's service network.
pub(crate) const SERVICE_SUBNET: &str = "10.96.0.0/12";

/// Default image registry.
const REGISTRY: &str = "registry.k8s.io";

/// Object and the path of its collection, such as `/api/v1/namespaces/kube-system/configmaps`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Manifest {
    /// Path of the collection.
    pub(crate) collection: String,
    /// Object.
    pub(crate) body: Value,
}

impl Manifest {
    fn new(collection: impl Into<String>, body: Value) -> Self {
        Self {
            collection: collection.into(),
            body,
        }
    }

    /// Returns the name of the object.
    pub(crate) fn name(&self) -> &str {
        self.body
            .pointer("/metadata/name")
            .and_then(Value::as_str)
            .unwrap_or_default()
    }
}

/// Returns the image `name` in the cluster's registry.
fn image(cluster: &ClusterConfiguration, name: &str, tag: &str) -> String {
    let registry = cluster.image_repository.as_deref().unwrap_or(REGISTRY);
    format!("{registry}/{name}:{tag}")
}

/// Returns the cluster's version with the prefix `v`.
pub(crate) fn version(cluster: &ClusterConfiguration) -> String {
    let version = cluster.kubernetes_version.as_deref().unwrap_or_default();
    format!("v{}", version.trim_start_matches('v'))
}

#[cfg(test)]
mod tests;
