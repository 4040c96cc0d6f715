//! What a reconcile of Cluster API's own kinds fails with.

use api::kube;
use operator::decode::NotDecoded;
use operator::retry::{Retry, When};

use crate::external::ExternalError;
use crate::remote::NotConnected;

/// What a reconcile fails with.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused.
    #[error("{action}")]
    Api {
        /// What was tried, such as `creating Machine default/demo-x2b4c`.
        action: String,
        /// The API server's words.
        source: Box<kube::Error>,
    },
    /// A workload cluster's API server refused.
    #[error("{action} in the workload cluster")]
    Workload {
        /// What was tried.
        action: String,
        /// The API server's words.
        source: Box<kube::Error>,
    },
    /// An object of a provider could not be read or written.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// A workload cluster cannot be reached.
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    /// Something that this object needs cannot be decoded.
    #[error(transparent)]
    NotDecoded(#[from] NotDecoded),
    /// The Cluster that `spec.clusterName` names does not exist (yet).
    #[error("Cluster {namespace}/{name}, which spec.clusterName names, does not exist")]
    NoCluster {
        /// Namespace of the object and the Cluster.
        namespace: String,
        /// Name of the Cluster.
        name: String,
    },
}

impl Retry for Error {
    fn when(&self) -> When {
        match self {
            Error::Api { source, .. } => source.when(),
            Error::Workload { source, .. } => match source.when() {
                // A refusal of the workload cluster may be gone later, and nothing would wake us.
                When::OnChange => When::Backoff,
                other => other,
            },
            Error::External(source) => source.when(),
            Error::NotConnected(source) => source.when(),
            Error::NotDecoded(_) => When::Backoff,
            // The Cluster's arrival wakes its objects.
            Error::NoCluster { .. } => When::OnChange,
        }
    }
}

/// Says what was being done when the API server refused.
pub(crate) trait Doing<T> {
    /// Something in the management cluster.
    ///
    /// # Errors
    /// The API server's.
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;

    /// Something in a workload cluster.
    ///
    /// # Errors
    /// The API server's.
    fn doing_remotely(self, action: impl FnOnce() -> String) -> Result<T, Error>;
}

impl<T> Doing<T> for kube::Result<T> {
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Api {
            action: action(),
            source: Box::new(source),
        })
    }

    fn doing_remotely(self, action: impl FnOnce() -> String) -> Result<T, Error> {
        self.map_err(|source| Error::Workload {
            action: action(),
            source: Box::new(source),
        })
    }
}

/// Whether the API server answered that the object does not exist.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}
