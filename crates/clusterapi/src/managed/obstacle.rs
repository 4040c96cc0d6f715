//! Reasons why a topology cannot be reconciled now.

use std::time::Duration;

use api::conditions::{Reason, Verdict};
use api::kube::runtime::controller::Action;
use operator::retry::is_conflict;
use operator::words::chain;
use topology::desired::DesiredError;

use super::status::TYPE;
use crate::Error;
use crate::external::ExternalError;

/// Reason why a topology cannot be reconciled now.
#[derive(Debug)]
pub(super) enum Obstacle {
    /// The class cannot be used yet; its change triggers the Cluster.
    NotReconciled(String),
    /// The class, a template, the topology or an object is wrong; its change triggers the Cluster.
    Failed(String),
    /// A request failed, and is repeated.
    Request(Error),
    /// [`Obstacle`]s of independent parts.
    Several(Vec<Obstacle>),
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
    /// Obstacles of independent parts; `None` for an empty list.
    pub(super) fn all(mut obstacles: Vec<Self>) -> Option<Self> {
        match obstacles.len() {
            0 | 1 => obstacles.pop(),
            _ => Some(Self::Several(obstacles)),
        }
    }

    /// Condition; `None` after a concurrent change of the object.
    pub(super) fn verdict(&self) -> Option<Verdict> {
        let (reason, message) = match self {
            Self::NotReconciled(message) => (Reason::ClusterClassNotReconciled, message.clone()),
            Self::Failed(message) => (Reason::ReconcileFailed, message.clone()),
            Self::Request(error) if is_conflict(error) => return None,
            Self::Request(error) => (Reason::ReconcileFailed, chain(error)),
            Self::Several(obstacles) => {
                let verdicts = obstacles.iter().filter_map(Self::verdict);
                let messages: Vec<_> = verdicts.map(|verdict| verdict.message).collect();
                if messages.is_empty() {
                    return None;
                }
                (Reason::ReconcileFailed, messages.join("; "))
            }
        };
        Some(Verdict::new(TYPE, false, reason).because(message))
    }

    /// Time of the next reconcile: after `resync` unless something changes, or by the error of the request.
    pub(super) fn action(self, resync: Duration) -> Result<Action, Error> {
        match self {
            Self::NotReconciled(_) | Self::Failed(_) => Ok(Action::requeue(resync)),
            Self::Request(error) => Err(error),
            Self::Several(obstacles) => {
                let mut actions = obstacles
                    .into_iter()
                    .map(|obstacle| obstacle.action(resync));
                let failed = actions.find_map(Result::err);
                failed.map_or_else(|| Ok(Action::requeue(resync)), Err)
            }
        }
    }
}
