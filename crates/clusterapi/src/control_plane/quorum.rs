//! etcd's arithmetic: how many members may be missing.
//!
//! etcd works as long as a majority of its voting members does (etcd documentation, "Failure
//! tolerance"). A learner does not vote yet; as long as there is one, nothing else may change.

/// The members of an etcd cluster, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Members that vote.
    pub voters: usize,
    /// Voting members that do not work.
    pub unhealthy: usize,
    /// Members that do not vote yet.
    pub learners: usize,
}

/// How many voting members must work.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}

impl Members {
    /// Whether enough members work now.
    pub fn has_quorum(self) -> bool {
        self.voters > 0 && self.voters.saturating_sub(self.unhealthy) >= quorum(self.voters)
    }

    /// Whether a member can be added: the new one counts as unhealthy until it has caught up. A first
    /// or second member is always added, there is no other way to get further.
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

    /// Whether a member can be removed; `healthy` says whether that one works.
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
