//! Members of etcd: health, addition, and removal.
//!
//! ```text
//!   connections   to the Pods `etcd-<node>`, forwarded by the workload API server and kept while they work
//!   query         all members are queried concurrently, and the responses combined (pure)
//!   addition      a learner is added through a member that accepts it
//!   removal       leadership is transferred before a member is removed; members without a Node are found (pure)
//! ```
//!
//! A request to a member ends after [`LIMIT`].

mod addition;
mod connections;
mod query;
mod removal;

use std::time::Duration;

use super::quorum::Members;

pub use connections::{Connections, Target};
pub use removal::{Nodes, orphan};

/// Timeout of a connection attempt to a member, and of each request.
pub const LIMIT: Duration = Duration::from_secs(5);

/// One member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// The member ID.
    pub id: u64,
    /// Name of the member and of its Node; empty before the first start.
    pub name: String,
    /// Host of the peer URL.
    pub host: String,
    /// True for a learner, without a vote.
    pub learner: bool,
    /// True for the leader.
    pub leads: bool,
    /// Problem of the member; `None` for a healthy one.
    pub problem: Option<String>,
}

impl Member {
    /// True for a healthy member.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.problem.is_none()
    }
}

/// Observed state of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// External etcd, not managed here.
    External,
    /// The members could not be queried, for this reason.
    Unknown(String),
    /// Too few [`Member`]s answer for a quorum, and the answering ones have no leader. The list is from one of them;
    /// members without a problem are the answering ones.
    NoQuorum(Vec<Member>),
    /// [`Member`]s of an etcd with a quorum.
    Known(Vec<Member>),
}

impl View {
    /// Members, if confirmed by a quorum.
    #[must_use]
    pub fn members(&self) -> Option<&[Member]> {
        match self {
            View::Known(members) => Some(members),
            View::External | View::Unknown(_) | View::NoQuorum(_) => None,
        }
    }

    /// [`Member`] on a Node.
    #[must_use]
    pub fn on(&self, node: &str) -> Option<&Member> {
        self.members()?.iter().find(|member| member.name == node)
    }

    /// True if no member is unhealthy or a learner; always true for an external etcd.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self {
            View::External => true,
            View::Unknown(_) | View::NoQuorum(_) => false,
            View::Known(members) => members.iter().all(|it| it.is_healthy() && !it.learner),
        }
    }
}

/// Message with the number of answering [`Member`]s, for a cluster without a quorum.
#[must_use]
pub fn without_quorum(members: &[Member]) -> String {
    let counted = count(members);
    let answering = counted.voters.saturating_sub(counted.unhealthy);
    let verb = if answering == 1 { "answers" } else { "answer" };
    format!(
        "etcd has lost its quorum: {answering} of {} voting members {verb}, and {} are needed",
        counted.voters,
        super::quorum::quorum(counted.voters)
    )
}

/// Counts the [`Members`].
#[must_use]
pub fn count(members: &[Member]) -> Members {
    let voters = || members.iter().filter(|member| !member.learner);
    Members {
        voters: voters().count(),
        unhealthy: voters().filter(|member| !member.is_healthy()).count(),
        learners: members.len() - voters().count(),
    }
}

#[cfg(test)]
mod tests;
