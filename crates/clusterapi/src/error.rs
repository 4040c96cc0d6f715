//! Errors of the reconciles of the core kinds of Cluster API.

use api::kube;
use operator::decode::NotDecoded;
use operator::retry::{Retry, When};

use crate::external::ExternalError;
use crate::pki::store::StoreError;
use crate::remote::NotConnected;

/// Error of a reconcile.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A request to the API server failed.
    #[error("{action}")]
    Api {
        /// The failed action, such as `creating Machine default/demo-x2b4c`.
        action: String,
        /// Error of the request.
        source: Box<kube::Error>,
    },
    /// A request to the API server of a workload cluster failed.
    #[error("{action} in the workload cluster")]
    Workload {
        /// The failed action.
        action: String,
        /// Error of the request.
        source: Box<kube::Error>,
    },
    /// An object of a provider could not be read or written.
    #[error(transparent)]
    External(#[from] ExternalError),
    /// Certificates or a kubeconfig could not be read or created.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A workload cluster cannot be reached.
    #[error(transparent)]
    NotConnected(#[from] NotConnected),
    /// A required object cannot be decoded.
    #[error(transparent)]
    NotDecoded(#[from] NotDecoded),
    /// Something could not be applied to a workload cluster.
    #[error("{action}: {problem}")]
    NotApplied {
        /// The failed action, with the ClusterResourceSet.
        action: String,
        /// Cluster, place of the manifest, and message of the API server.
        problem: String,
    },
    /// Machines that must be updated in place cannot be.
    #[error("{0}")]
    NotInPlace(String),
    /// The Cluster of `spec.clusterName` does not exist (yet).
    #[error("Cluster {namespace}/{name}, which spec.clusterName names, does not exist")]
    NoCluster {
        /// Namespace of the object and of the Cluster.
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
                // The cause in the workload cluster may disappear, and no event would trigger a reconcile.
                When::OnChange => When::Backoff,
                other => other,
            },
            Error::External(source) => source.when(),
            Error::Store(source) => source.when(),
            Error::NotConnected(source) => source.when(),
            Error::NotDecoded(_) | Error::NotApplied { .. } => When::Backoff,
            // Templates, machines and the Cluster trigger their users.
            Error::NotInPlace(_) | Error::NoCluster { .. } => When::OnChange,
        }
    }
}

/// Adds the action to an error of a request.
pub(crate) trait Doing<T> {
    /// Adds an action in the management cluster.
    ///
    /// # Errors
    /// The error of the request, with the action.
    fn doing(self, action: impl FnOnce() -> String) -> Result<T, Error>;

    /// Adds an action in a workload cluster.
    ///
    /// # Errors
    /// The error of the request, with the action.
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

/// True if the error is 404: the object does not exist.
pub(crate) fn is_absent(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

#[cfg(test)]
mod tests {
    use operator::retry::is_conflict;

    use super::*;

    #[test]
    fn a_conflict_is_recognised_in_each_error_of_a_request() {
        let answer = || {
            let status = kube::core::Status::failure("changed", "Conflict").with_code(409);
            Err::<(), _>(kube::Error::Api(Box::new(status)))
        };
        for error in [
            answer().doing(|| "changing MachineSet a".to_owned()),
            answer().doing_remotely(|| "changing Node a".to_owned()),
        ] {
            assert!(is_conflict(&error.unwrap_err()));
        }
    }
}
