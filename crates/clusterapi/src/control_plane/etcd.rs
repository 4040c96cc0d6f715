//! etcd's members: what is known of them, and how one is removed.
//!
//! ```text
//!   connections   a port of every Pod `etcd-<node>`, forwarded by the workload API server, while it works
//!   look          every member is asked at once; what they answer is combined (pure)
//!   removal       leadership goes first, then the member; members without a Node are found (pure)
//! ```
//!
//! Nothing here waits longer than [`LIMIT`] for a member.

mod connections;
mod look;
mod removal;

use std::time::Duration;

use super::quorum::Members;

pub use connections::{Connections, Target};
pub use removal::{Nodes, orphan};

/// How long a member may take to answer, from the first byte on.
pub const LIMIT: Duration = Duration::from_secs(5);

/// One member.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Member {
    /// Its number.
    pub id: u64,
    /// Its name, which is that of its Node; empty until it has started for the first time.
    pub name: String,
    /// The host of the URL that other members reach it at.
    pub host: String,
    /// Whether it does not vote yet.
    pub learner: bool,
    /// Whether it leads.
    pub leads: bool,
    /// What is wrong with it; None for a member that works.
    pub problem: Option<String>,
}

impl Member {
    /// Whether it works.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.problem.is_none()
    }
}

/// What is known of etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// It is somebody else's.
    External,
    /// It could not be asked, for this reason.
    Unknown(String),
    /// Its members.
    Known(Vec<Member>),
}

impl View {
    /// The members, if they are known.
    #[must_use]
    pub fn members(&self) -> Option<&[Member]> {
        match self {
            View::Known(members) => Some(members),
            View::External | View::Unknown(_) => None,
        }
    }

    /// The member on a Node.
    #[must_use]
    pub fn on(&self, node: &str) -> Option<&Member> {
        self.members()?.iter().find(|member| member.name == node)
    }

    /// Whether all is well with it, as far as that is ours to know.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        match self {
            View::External => true,
            View::Unknown(_) => false,
            View::Known(members) => members.iter().all(|it| it.is_healthy() && !it.learner),
        }
    }
}

/// The members, counted.
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
