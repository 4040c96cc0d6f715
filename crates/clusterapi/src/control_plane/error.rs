//! Errors of the reconcile of a control plane.

use api::version::InvalidVersion;
use operator::decode::NotDecoded;
use operator::retry::{Retry, When};

use crate::error::Error;
use crate::external::ExternalError;
use crate::kubeadm::UnsupportedVersion;
use crate::pki::PkiError;
use crate::pki::store::StoreError;
use crate::remote::NotConnected;

/// Error of the reconcile of a control plane.
#[derive(Debug, thiserror::Error)]
pub enum ControlPlaneError {
    /// A request to an API server failed, or an object of a provider could not be used.
    #[error(transparent)]
    Core(#[from] Error),
    /// Certificates or the kubeconfig could not be read or created.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// `spec.version` is not a version.
    #[error("spec.version: {0}")]
    Version(#[from] InvalidVersion),
    /// `spec.version` is too old.
    #[error("spec.version: {0}")]
    TooOld(#[from] UnsupportedVersion),
    /// `spec.machineNaming.template` is invalid.
    #[error(
        "spec.machineNaming.template `{template}` must use {{{{ .random }}}}, may use \
         {{{{ .cluster.name }}}} and {{{{ .kubeadmControlPlane.name }}}}, and must give at most 63 characters"
    )]
    Naming {
        /// The template.
        template: String,
    },
    /// The ConfigMap `kubeadm-config` of the workload cluster cannot be parsed.
    #[error("configmap kube-system/kubeadm-config has no readable ClusterConfiguration")]
    KubeadmConfigMap,
    /// A request to etcd failed.
    #[error("etcd: {0}")]
    Etcd(String),
}

/// Adds the action to an error of the management cluster's API server.
pub(super) fn doing(action: impl Into<String>) -> impl FnOnce(kube::Error) -> ControlPlaneError {
    let action = action.into();
    move |source| {
        ControlPlaneError::Core(Error::Api {
            action,
            source: Box::new(source),
        })
    }
}

/// Adds the action to an error of the workload cluster's API server.
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
