//! Server groups of the roles of a cluster, to keep servers apart, on request by an annotation.
//!
//! Nova's server groups have neither tags nor descriptions: the mark is at the end of their names.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::infra::v1beta2::{ManagedGroup, OpenStackCluster};
use kube::ResourceExt;
use openstack::View;
use openstack::compute::ServerGroup;

use crate::identity::{CLUSTER_ID, Identity, Mark};
use crate::names::Names;

/// The annotation of an OpenStackCluster with the policies of its roles, such as
/// `control-plane=anti-affinity,worker=soft-anti-affinity`.
pub const SERVER_GROUPS_ANNOTATION: &str = "ferrostack.dev/server-groups";
/// Annotation of the provider with the value `true`, before a server group is created: server groups are searched at
/// the deletion of the cluster, also without the annotation [`SERVER_GROUPS_ANNOTATION`].
pub const HAS_SERVER_GROUPS_ANNOTATION: &str = "ferrostack.dev/has-server-groups";

/// The policy of a server group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Never two servers on one hypervisor: without another hypervisor, the server fails.
    AntiAffinity,
    /// Two servers on one hypervisor only without another hypervisor.
    SoftAntiAffinity,
}

impl Policy {
    const ALL: [Self; 2] = [Self::AntiAffinity, Self::SoftAntiAffinity];

    /// The name in Nova.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AntiAffinity => "anti-affinity",
            Self::SoftAntiAffinity => "soft-anti-affinity",
        }
    }
}

/// [`Policy`] of each role with a server group.
pub type Policies = BTreeMap<ManagedGroup, Policy>;

/// [`Policies`] in the annotation of `object`.
///
/// # Errors
/// Text of the problem with the annotation.
pub fn policies(object: &OpenStackCluster) -> Result<Policies, String> {
    let text = object.annotations().get(SERVER_GROUPS_ANNOTATION);
    let entries = text.iter().flat_map(|text| text.split(','));
    let entries = entries.map(str::trim).filter(|entry| !entry.is_empty());
    let mut policies = Policies::new();
    for entry in entries {
        let wrong = || {
            format!(
                "{SERVER_GROUPS_ANNOTATION}: `{entry}` is not control-plane or worker, `=`, and anti-affinity or \
                 soft-anti-affinity"
            )
        };
        let (role, policy) = entry.split_once('=').ok_or_else(wrong)?;
        let role = match role.trim() {
            "control-plane" => ManagedGroup::ControlPlane,
            "worker" => ManagedGroup::Worker,
            _ => return Err(wrong()),
        };
        let mut known = Policy::ALL.into_iter();
        let policy = known.find(|known| known.as_str() == policy.trim());
        if policies.insert(role, policy.ok_or_else(wrong)?).is_some() {
            return Err(format!(
                "{SERVER_GROUPS_ANNOTATION}: `{entry}` is the second policy of its role"
            ));
        }
    }
    Ok(policies)
}

/// True for a cluster whose server groups are read.
pub(crate) fn is_used(object: &OpenStackCluster) -> bool {
    let annotations = object.annotations();
    [SERVER_GROUPS_ANNOTATION, HAS_SERVER_GROUPS_ANNOTATION]
        .iter()
        .any(|name| annotations.contains_key(*name))
}

/// The name of a server group, with the mark of its cluster.
pub fn name(names: &Names, cluster: Identity, role: ManagedGroup, policy: Policy) -> String {
    Mark::cluster(cluster).description(&names.server_group(role, policy.as_str()))
}

/// Name of the server group for new servers of a role of `infra`, if the role has one.
///
/// # Errors
/// Text of the problem with the annotation.
pub(crate) fn of_role(
    infra: &OpenStackCluster,
    names: &Names,
    role: ManagedGroup,
) -> Result<Option<String>, String> {
    let policy = policies(infra)?.get(&role).copied();
    let id = Identity::for_object(infra, CLUSTER_ID);
    Ok(policy
        .zip(id)
        .map(|(policy, id)| name(names, id, role, policy)))
}

/// [`ServerGroup`] with this name. Of two, which exist after a lost response to a request, the one with servers.
pub(crate) fn find<'v>(view: &'v View, name: &str) -> Option<&'v Arc<ServerGroup>> {
    let all = view.server_groups.named(name).iter();
    all.min_by_key(|group| (group.members.is_empty(), &group.id))
}

#[cfg(test)]
mod tests;
