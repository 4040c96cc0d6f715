//! Why a topology cannot be reconciled now.

use std::time::Duration;

use api::conditions::Verdict;
use api::kube::runtime::controller::Action;
use operator::retry::is_conflict;
use operator::words::chain;
use topology::desired::DesiredError;

use super::status::TYPE;
use crate::Error;
use crate::external::ExternalError;

/// Why a topology cannot be reconciled now.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The class cannot be used yet; its change triggers the Cluster.
    NotReconciled(String),
    /// The class, a template, the topology or an object is wrong; a change of it triggers the Cluster.
    Failed(String),
    /// A request failed, and is repeated.
    Request(Error),
}

impl From<Error> for Obstacle {
    fn from(source: Error) -> Self {
        Self::Request(source)
    }
}

impl From<ExternalError> for Obstacle {
    fn from(source: ExternalError) -> Self {
        Self::Request(source.into())
    }
}

impl From<DesiredError> for Obstacle {
    fn from(source: DesiredError) -> Self {
        Self::Failed(source.to_string())
    }
}

impl Obstacle {
    /// The condition; `None` if the object has only changed meanwhile.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let (reason, message) = match self {
            Self::NotReconciled(message) => ("ClusterClassNotReconciled", message.clone()),
            Self::Failed(message) => ("ReconcileFailed", message.clone()),
            Self::Request(error) if is_conflict(error) => return None,
            Self::Request(error) => ("ReconcileFailed", chain(error)),
        };
        Some(Verdict::new(TYPE, false, reason).because(message))
    }

    /// When the Cluster is reconciled again: after `resync` unless something changes, or by the error of the request.
    pub(super) fn action(self, resync: Duration) -> Result<Action, Error> {
        match self {
            Self::NotReconciled(_) | Self::Failed(_) => Ok(Action::requeue(resync)),
            Self::Request(error) => Err(error),
        }
    }
}
