//! Errors of the creation of bootstrap data, with their messages.

use api::infra::USER_DATA_LIMIT;
use api::version::InvalidVersion;
use operator::retry::{Retry, When};
use topology::template::TemplateError;

use crate::external::ExternalError;
use crate::ignition::IgnitionError;
use crate::kubeadm::UnsupportedVersion;
use crate::pki::PkiError;
use crate::pki::store::StoreError;
use crate::remote::NotConnected;

/// Error of the creation of bootstrap data.
#[derive(Debug, thiserror::Error)]
pub enum BootstrapError {
    /// A request to an API server failed.
    #[error("{action}")]
    Api {
        /// The failed action, such as `writing secret demo-md-0-abcde`.
        action: String,
        /// Error of the request.
        #[source]
        source: kube::Error,
    },
    /// Another control plane machine is running `kubeadm init`.
    #[error(
        "another control plane machine of cluster {cluster} initializes it, or has just done so"
    )]
    LockHeld {
        /// The cluster.
        cluster: String,
    },
    /// The certificates have not been created yet.
    #[error("waiting for {}", .missing.join(", "))]
    NoCertificates {
        /// Missing Secrets.
        missing: Vec<String>,
    },
    /// The workload cluster cannot be reached.
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    /// Keys or certificates could not be read or created.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A certificate could not be parsed.
    #[error(transparent)]
    Pki(#[from] PkiError),
    /// The version of the Machine is malformed.
    #[error("Machine spec.version: {0}")]
    Version(#[from] InvalidVersion),
    /// The version of the Machine is too old.
    #[error("Machine spec.version: {0}")]
    TooOld(#[from] UnsupportedVersion),
    /// The Machine has no version.
    #[error("Machine spec.version is not set: kubeadm's configuration depends on it")]
    NoVersion,
    /// The data cannot be expressed in Ignition.
    #[error(transparent)]
    Ignition(#[from] IgnitionError),
    /// A file is not a valid template of its `contentFormat`.
    #[error("{field}.content ({path}): the template cannot be rendered")]
    Template {
        /// Field of the file.
        field: String,
        /// Path of the file.
        path: String,
        /// Error of the template.
        source: TemplateError,
    },
    /// The control plane, with a version for templates, cannot be read.
    #[error(transparent)]
    ControlPlane(#[from] ExternalError),
    /// A Secret in the spec does not exist or lacks the key.
    #[error("{field}: secret {name} with key {key} does not exist; create it")]
    MissingSecret {
        /// Field with the name of the Secret.
        field: String,
        /// The Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// The value in a Secret of the spec is not text.
    #[error(
        "{field}: key {key} of secret {name} is not text; set encoding base64 and store base64"
    )]
    NotText {
        /// Field with the name of the Secret.
        field: String,
        /// The Secret.
        name: String,
        /// The key.
        key: String,
    },
    /// The user data exceeds the limit of OpenStack.
    #[error(
        "the user data has {size} bytes, OpenStack takes at most {USER_DATA_LIMIT}: make spec.files \
         smaller, or let machines download what is large"
    )]
    TooLarge {
        /// Size in bytes.
        size: usize,
    },
    /// The Secret of the bootstrap data has another owner.
    #[error("secret {name} exists and belongs to another owner; delete it or rename the machine")]
    Taken {
        /// The Secret.
        name: String,
    },
}

impl BootstrapError {
    /// The error of a failed request.
    pub(super) fn api(action: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let action = action.into();
        move |source| Self::Api { action, source }
    }

    /// Error of a failed write of the status.
    pub(super) fn status(source: kube::Error) -> Self {
        Self::Api {
            action: "writing the status of the KubeadmConfig".to_owned(),
            source,
        }
    }

    /// True if the config is waiting, as opposed to an error.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(
            self,
            Self::LockHeld { .. } | Self::NoCertificates { .. } | Self::NotConnected(_)
        )
    }

    /// True before the end of the first attempt to connect to the workload cluster.
    pub(super) fn is_connecting(&self) -> bool {
        matches!(self, Self::NotConnected(reason) if reason.connecting)
    }

    /// True for an error about the certificates of the cluster.
    pub(super) fn is_about_certificates(&self) -> bool {
        matches!(
            self,
            Self::NoCertificates { .. } | Self::Store(_) | Self::Pki(_)
        )
    }
}

impl Retry for BootstrapError {
    fn when(&self) -> When {
        match self {
            Self::Api { source, .. } => source.when(),
            Self::Store(source) => source.when(),
            Self::NotConnected(source) => source.when(),
            Self::ControlPlane(source) => source.when(),
            // The lock is released with a change of the Cluster or of a Machine.
            Self::LockHeld { .. } => When::OnChange,
            // The Secret triggers the waiting configs.
            Self::NoCertificates { .. } | Self::MissingSecret { .. } | Self::NotText { .. } => {
                When::OnChange
            }
            Self::Pki(_) | Self::Taken { .. } => When::Backoff,
            Self::Version(_)
            | Self::TooOld(_)
            | Self::NoVersion
            | Self::Ignition(_)
            | Self::Template { .. }
            | Self::TooLarge { .. } => When::OnChange,
        }
    }
}
