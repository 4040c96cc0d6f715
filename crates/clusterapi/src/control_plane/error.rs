//! What a reconcile of a control plane fails with.

use api::version::InvalidVersion;
use operator::decode::NotDecoded;
use operator::retry::{Retry, When};

use crate::error::Error;
use crate::external::ExternalError;
use crate::kubeadm::UnsupportedVersion;
use crate::pki::PkiError;
use crate::pki::store::StoreError;
use crate::remote::NotConnected;

/// What a reconcile of a control plane fails with.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// An API server refused, or a provider's object could not be used.
    #[error(transparent)]
    Core(#[from] Error),
    /// Certificates or the kubeconfig.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `spec.version` is none.
    #[error("spec.version: {0}")]
    Version(#[from] InvalidVersion),
    /// `spec.version` is too old.
    #[error("spec.version: {0}")]
    TooOld(#[from] UnsupportedVersion),
    /// `spec.machineNaming.template` cannot be used.
    #[error(
        "spec.machineNaming.template {template:?} must use {{{{ .random }}}}, may use \
         {{{{ .cluster.name }}}} and {{{{ .kubeadmControlPlane.name }}}}, and must give at most 63 characters"
    )]
    Naming {
        /// The template.
        template: String,
    },
    /// A ConfigMap of kubeadm's in the workload cluster is not what kubeadm writes.
    #[error("configmap kube-system/kubeadm-config has no readable ClusterConfiguration")]
    KubeadmConfigMap,
    /// etcd could not be asked or changed.
    #[error("etcd: {0}")]
    Etcd(String),
}

/// Says what was being done when the management cluster's API server refused.
pub(super) fn doing(action: impl Into<String>) -> impl FnOnce(kube::Error) -> ControlPlaneError {
    let action = action.into();
    move |source| {
        ControlPlaneError::Core(Error::Api {
            action,
            source: Box::new(source),
        })
    }
}

/// Says what was being done when the workload cluster's API server refused.
pub(super) fn remotely(action: impl Into<String>) -> impl FnOnce(kube::Error) -> ControlPlaneError {
    let action = action.into();
    move |source| {
        ControlPlaneError::Core(Error::Workload {
            action,
            source: Box::new(source),
        })
    }
}

impl From<NotDecoded> for ControlPlaneError {
    fn from(source: NotDecoded) -> Self {
        ControlPlaneError::Core(source.into())
    }
}

impl From<NotConnected> for ControlPlaneError {
    fn from(source: NotConnected) -> Self {
        ControlPlaneError::Core(source.into())
    }
}

impl From<ExternalError> for ControlPlaneError {
    fn from(source: ExternalError) -> Self {
        ControlPlaneError::Core(source.into())
    }
}

impl From<PkiError> for ControlPlaneError {
    fn from(source: PkiError) -> Self {
        ControlPlaneError::Store(source.into())
    }
}

impl Retry for ControlPlaneError {
    fn when(&self) -> When {
        match self {
            ControlPlaneError::Core(source) => source.when(),
            ControlPlaneError::Store(source) => source.when(),
            ControlPlaneError::KubeadmConfigMap | ControlPlaneError::Etcd(_) => When::Backoff,
            ControlPlaneError::Version(_)
            | ControlPlaneError::TooOld(_)
            | ControlPlaneError::Naming { .. } => When::OnChange,
        }
    }
}
