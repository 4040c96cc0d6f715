//! The members of etcd: their health, and the removal of a member.
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
    /// The name of the member, which is that of its Node; empty before its first start.
    pub name: String,
    /// The host of its peer URL.
    pub host: String,
    /// True if it is a learner, which does not vote.
    pub learner: bool,
    /// True if it is the leader.
    pub leads: bool,
    /// Why it is unhealthy; `None` for a healthy member.
    pub problem: Option<String>,
}

impl Member {
    /// True if it is healthy.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.problem.is_none()
    }
}

/// The observed state of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// An external etcd, which is not managed here.
    External,
    /// The members could not be queried, for this reason.
    Unknown(String),
    /// Too few members answer for a quorum, and those have no leader. This is the list that one of them has; a member
    /// without a problem is one that answers.
    NoQuorum(Vec<Member>),
    /// Its members.
    Known(Vec<Member>),
}

impl View {
    /// The members, if a quorum has confirmed them.
    #[must_use]
    pub fn members(&self) -> Option<&[Member]> {
        match self {
            View::Known(members) => Some(members),
            View::External | View::Unknown(_) | View::NoQuorum(_) => None,
        }
    }

    /// The member on a Node.
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

/// How many of the members answer, of a cluster that has lost its quorum.
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

/// Counts the members.
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
