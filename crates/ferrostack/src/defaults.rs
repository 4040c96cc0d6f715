//! Namespaces and image of what the program installs, where no flag names others.

pub(crate) use installer::names::{IMAGE, NAMESPACE};

/// Namespace of programs of a workload cluster, such as the cloud controller manager.
pub(crate) const KUBE_SYSTEM: &str = "kube-system";
