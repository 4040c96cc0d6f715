//! Namespaces and image of what the program installs, where no flag names others.

/// Image of the program.
pub(crate) const IMAGE: &str = "ferrostack:latest";
/// Namespace of a manager.
pub(crate) const NAMESPACE: &str = "ferrostack-system";
/// Namespace of programs of a workload cluster, such as the cloud controller manager.
pub(crate) const KUBE_SYSTEM: &str = "kube-system";
