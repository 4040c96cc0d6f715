//! Quorum of etcd, and the number of members that may fail.
//!
//! etcd works as long as a majority of its voting members does (etcd documentation, "Failure tolerance"). A learner
//! does not vote; while there is one, no other membership change is safe.

/// Numbers of members of an etcd cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Voting members.
    pub voters: usize,
    /// Unhealthy voting members.
    pub unhealthy: usize,
    /// Learners.
    pub learners: usize,
}

/// Minimum number of healthy voting members.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

impl Members {
    /// True if enough members are healthy.
    pub fn has_quorum(self) -> bool {
        self.voters > 0 && self.voters.saturating_sub(self.unhealthy) >= quorum(self.voters)
    }

    /// True if a member can be added. The new member counts as unhealthy until it has caught up, except for the first
    /// and the second: there is no other way to scale up.
    pub fn can_add(self) -> bool {
        if self.voters <= 1 {
            return self.unhealthy == 0 && self.learners == 0;
        }
        self.learners == 0
            && Self {
                voters: self.voters + 1,
                unhealthy: self.unhealthy + 1,
                ..self
            }
            .has_quorum()
    }

    /// True if a member can be removed; `healthy` is the health of the removed member.
    pub fn can_remove(self, healthy: bool) -> bool {
        if self.learners > 0 || self.voters <= 1 {
            return false;
        }
        let unhealthy = self.unhealthy.saturating_sub(usize::from(!healthy));
        Self {
            voters: self.voters - 1,
            unhealthy,
            ..self
        }
        .has_quorum()
    }
}

#[cfg(test)]
mod tests;
