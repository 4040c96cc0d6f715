//! Assignment of etcd members to machines. A machine is a member if listed by etcd, and never merely because it
//! exists.

use api::core::v1beta2::Machine;
use api::kube::ResourceExt;

use super::etcd::{Member, View};
use super::quorum::Members;

/// Membership of one machine, from the list of etcd.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Membership {
    /// No member: the machine never joined, or its member was removed.
    #[default]
    Outside,
    /// [`Member`] of the machine.
    Member(Standing),
    /// Candidates without another machine: this machine has neither a Node nor an address to tell them apart.
    Unclear(Vec<Standing>),
}

/// Weight of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    /// True for a learner, without a vote.
    pub(super) learner: bool,
    pub(super) healthy: bool,
}

impl Standing {
    pub(super) fn from_member(member: &Member) -> Self {
        Self {
            learner: member.learner,
            healthy: member.is_healthy(),
        }
    }

    /// True if `members` keep their quorum without this member. A learner is no part of the quorum.
    pub(super) fn may_go(self, members: Members) -> bool {
        self.learner || members.can_remove(self.healthy)
    }
}

impl Membership {
    /// True if `members` keep their quorum when the machine is deleted.
    pub(super) fn may_go(&self, members: Members) -> bool {
        match self {
            Membership::Outside => true,
            Membership::Member(standing) => standing.may_go(members),
            Membership::Unclear(strays) => strays.iter().all(|it| it.may_go(members)),
        }
    }
}

/// [`Membership`] of each of `machines`, in order; all are outside unless `view` has the list of a quorum.
pub(super) fn of(machines: &[&Machine], view: &View) -> Vec<Membership> {
    let members = view.members().unwrap_or_default();
    let strays: Vec<_> = strays(machines, members)
        .into_iter()
        .map(Standing::from_member)
        .collect();
    let standing = |machine: &&Machine| match on(machine, machines, members) {
        Some(member) => Membership::Member(Standing::from_member(member)),
        None if is_unknown(machine) && !strays.is_empty() => Membership::Unclear(strays.clone()),
        None => Membership::Outside,
    };
    machines.iter().map(standing).collect()
}

/// Members that run on none of `machines`, as far as known.
pub(super) fn strays<'a>(machines: &[&Machine], members: &'a [Member]) -> Vec<&'a Member> {
    let ours: Vec<u64> = machines
        .iter()
        .filter_map(|machine| on(machine, machines, members))
        .map(|member| member.id)
        .collect();
    let stray = |member: &&Member| !ours.contains(&member.id);
    members.iter().filter(stray).collect()
}

/// True if the member of `machine` cannot be told from others.
pub(super) fn is_unknown(machine: &Machine) -> bool {
    machine.node_name().is_none() && addresses(machine).next().is_none()
}

/// [`Member`] of `machine`, one of `machines`: the member with the name of the Node, or a member without a name at the
/// machine's address. Without a Node, also a member with the machine's address and the name of no other machine's
/// Node: kubeadm starts the member before the kubelet registers the Node.
pub(super) fn on<'a>(
    machine: &Machine,
    machines: &[&Machine],
    members: &'a [Member],
) -> Option<&'a Member> {
    let node = machine.node_name();
    let named = node.and_then(|node| members.iter().find(|member| member.name == node));
    let here = |member: &&Member| {
        addresses(machine).any(|it| it == member.host || (it == member.name && node.is_none()))
    };
    let others = |name: &str| {
        let mut others = machines.iter().filter(|it| it.uid() != machine.uid());
        others.any(|other| other.node_name() == Some(name))
    };
    let free =
        |member: &&Member| member.name.is_empty() || (node.is_none() && !others(&member.name));
    named.or_else(|| members.iter().find(|member| free(member) && here(member)))
}

fn addresses(machine: &Machine) -> impl Iterator<Item = &str> {
    let status = machine.status.as_ref();
    let addresses = status.and_then(|status| status.addresses.as_ref());
    addresses
        .into_iter()
        .flatten()
        .map(|it| it.address.as_str())
}

#[cfg(test)]
mod tests;
