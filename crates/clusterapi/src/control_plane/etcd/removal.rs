//! Removal of members, including leftover members without a Node.

use std::collections::BTreeSet;

use futures::FutureExt;

use super::{Connections, Member, Target, count};

/// Nodes and Machines on which members may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Nodes {
    /// Names of Nodes, including deleted Nodes of existing Machines.
    pub names: BTreeSet<String>,
    /// Addresses of Nodes and Machines.
    pub addresses: BTreeSet<String>,
}

impl Connections {
    /// Removes the [`Member`] `id` of `members`. An answering leader first transfers leadership to the first healthy
    /// member of `successors`, names of Nodes. A member that counts another one as disconnected may reject the
    /// removal, so the others are asked, too. Succeeds if the member does not exist.
    ///
    /// # Errors
    /// The error of etcd, or the absence of another healthy voting member.
    pub async fn remove(
        &self,
        target: &Target<'_>,
        members: &[Member],
        id: u64,
        successors: &[String],
    ) -> Result<(), String> {
        let Some(member) = members.iter().find(|member| member.id == id) else {
            return Ok(());
        };
        let others = in_order(members, id, successors);
        let successor = others.first().ok_or("no other member works that votes")?;
        if member.leads {
            let to = successor.id;
            let hand_over =
                |client: etcd::Client| async move { client.move_leader(to).await }.boxed();
            let moved = self.with(target, &member.name, hand_over).await;
            // Only the leader hands over. With a dead kubelet the leader cannot be asked: the others elect another
            // one after the removal.
            if let Err(why) = moved
                && member.is_healthy()
            {
                return Err(format!(
                    "leadership of {} cannot be moved: {why}",
                    member.name
                ));
            }
        }
        let remove = |client: etcd::Client| {
            let removing = async move {
                match client.remove(id).await {
                    Err(etcd::Error::Status(it)) if it.code == etcd::Code::NotFound => Ok(()),
                    other => other.map(drop),
                }
            };
            removing.boxed()
        };
        let mut words = String::new();
        for other in others {
            match self.with(target, &other.name, remove).await {
                Ok(()) => return Ok(()),
                Err(why) => words = why,
            }
        }
        Err(format!(
            "the member {} cannot be removed: {words}",
            member.name
        ))
    }
}

/// Other healthy voting [`Member`]s: first the later leader, as receiver of the removal.
pub(super) fn in_order<'a>(
    members: &'a [Member],
    id: u64,
    preferred: &[String],
) -> Vec<&'a Member> {
    let fits = |member: &&Member| member.id != id && !member.learner && member.is_healthy();
    let place = |member: &&Member| {
        let wish = preferred.iter().position(|name| *name == member.name);
        // The current leader needs no election.
        (!member.leads, wish.unwrap_or(usize::MAX))
    };
    let mut others: Vec<&Member> = members.iter().filter(fits).collect();
    others.sort_by_key(place);
    others
}

/// [`Member`] that runs nowhere and may be removed: its Node is gone, or the member has never started and no Node or
/// Machine has its address.
#[must_use]
pub fn orphan<'a>(members: &'a [Member], nodes: &Nodes) -> Option<&'a Member> {
    let counted = count(members);
    members.iter().find(|member| {
        let nowhere = if member.name.is_empty() {
            !nodes.addresses.contains(&member.host)
        } else {
            !nodes.names.contains(&member.name) && !member.is_healthy()
        };
        // A learner is not part of the quorum.
        nowhere && (member.learner || counted.can_remove(member.is_healthy()))
    })
}
