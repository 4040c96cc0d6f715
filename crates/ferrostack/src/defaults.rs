//! Default namespaces and image of installed programs.

pub(crate) use installer::names::{IMAGE, NAMESPACE};

/// Namespace of programs of a workload cluster, such as the cloud controller manager.
pub(crate) const KUBE_SYSTEM: &str = "kube-system";
