//! The identity that marks the resources of an object in the cloud.
//!
//! Every OpenStackCluster and OpenStackMachine has its own identity, a UUID in an annotation, stored before the first
//! write to the cloud and kept by `clusterctl move`. The identity is part of the create request for each resource of
//! the object: in the description (Neutron, Octavia, Cinder) or in the tags (Nova). Neutron ignores or rejects tags at
//! creation, so tags are added later, for users only; the description is authoritative. Ownership is never inferred
//! from a name.

use std::fmt;

use kube::ResourceExt;
use openstack::inventory::Resource;
use uuid::Uuid;

/// Annotation with the identity of an OpenStackCluster.
pub const CLUSTER_ID: &str = api::names::CLUSTER_IDENTITY_ANNOTATION;
/// Annotation with the identity of an OpenStackMachine.
pub const MACHINE_ID: &str = api::names::MACHINE_IDENTITY_ANNOTATION;

/// Annotation with the identity of an OpenStackFloatingIPPool.
pub const POOL_ID: &str = api::names::POOL_IDENTITY_ANNOTATION;

/// The identity of a cluster, machine or pool.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Uuid);

impl Identity {
    /// A new, random identity.
    pub fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// [`Identity`] in an annotation of an object. Text other than a UUID is ignored, since an identity is used in
    /// searches for resources to delete.
    pub fn for_object(object: &impl ResourceExt, annotation: &str) -> Option<Self> {
        object
            .annotations()
            .get(annotation)
            .and_then(|text| Self::parse(text))
    }

    /// [`Identity`] of the bastion of `cluster` with the spec in `text`. No other identity has this version of UUIDs,
    /// so that a mark tells a bastion from a machine, and another spec has another identity.
    pub fn of_bastion(cluster: Identity, text: &str) -> Self {
        // FNV-1a: the text is the cluster's own, so that nobody gains anything by a collision.
        let bytes = cluster.0.as_bytes().iter().chain(text.as_bytes());
        let hash = bytes.fold(
            0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128,
            |hash, byte| {
                (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
            },
        );
        Self(uuid::Builder::from_custom_bytes(hash.to_be_bytes()).into_uuid())
    }

    /// True for the identity of a bastion.
    pub fn is_of_bastion(self) -> bool {
        self.0.get_version_num() == 8
    }

    /// [`Identity`] of the pool that has allocated a floating IP: at the end of its description, or else in its tags.
    pub fn of_pool<T: Resource>(item: &T) -> Option<Self> {
        Self::of_pool_in(item.description(), item.tags())
    }

    /// As [`Identity::of_pool`], with description and tags.
    pub fn of_pool_in(description: &str, tags: &[String]) -> Option<Self> {
        let described = description.strip_suffix(']');
        let described = described.and_then(|text| text.rsplit_once("[pool "));
        let tagged = || {
            let ids = tags.iter().map(|tag| tag.strip_prefix(POOL_TAG));
            ids.flatten().find_map(Self::parse)
        };
        described
            .and_then(|(_, id)| Self::parse(id))
            .or_else(tagged)
    }

    /// Description of a floating IP allocated by the pool with this identity.
    pub fn pool_description(self, pool: &str) -> String {
        let text: String = pool.chars().take(100).collect();
        format!(
            "Created by cluster-api-provider-openstack OpenStackFloatingIPPool {text} [pool {self}]"
        )
    }

    /// Tag of a floating IP allocated by the pool with this identity.
    pub fn pool_tag(self) -> String {
        format!("{POOL_TAG}{self}")
    }

    /// Parses a UUID in canonical form.
    pub fn parse(text: &str) -> Option<Self> {
        Uuid::try_parse(text)
            .ok()
            .filter(|id| id.to_string() == text)
            .map(Self)
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Mark on a resource: its cluster and, for a resource of a machine or bastion, the machine or bastion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The cluster.
    pub cluster: Identity,
    /// The machine, or the bastion.
    pub machine: Option<Identity>,
}

const CLUSTER_TAG: &str = "ferrostack:cluster=";
const MACHINE_TAG: &str = "ferrostack:machine=";
const POOL_TAG: &str = "ferrostack:pool=";
/// Prefixes of tags used to find resources again: tags of marks, and of the cloud controller manager.
const RESERVED: [&str; 6] = [
    CLUSTER_TAG,
    MACHINE_TAG,
    POOL_TAG,
    "ferrostack-cluster=",
    "ferrostack-service=",
    "ferrostack-shared=",
];

impl Mark {
    /// The mark of the resources of a cluster.
    pub fn cluster(cluster: Identity) -> Self {
        Self {
            cluster,
            machine: None,
        }
    }

    /// The mark of the resources of a machine.
    pub fn machine(cluster: Identity, machine: Identity) -> Self {
        Self {
            cluster,
            machine: Some(machine),
        }
    }

    /// True for the mark of a bastion.
    pub fn is_of_bastion(&self) -> bool {
        self.machine.is_some_and(Identity::is_of_bastion)
    }

    /// `text` with the mark at its end: ` [<cluster>]` or ` [<cluster>/<machine>]`.
    pub fn description(&self, text: &str) -> String {
        // Neutron's limit is 255 characters; the mark must not be truncated.
        let text: String = text.chars().take(170).collect();
        format!("{text} {}", self.suffix())
    }

    /// The end of a description with this mark.
    pub fn suffix(&self) -> String {
        match self.machine {
            None => format!("[{}]", self.cluster),
            Some(machine) => format!("[{}/{machine}]", self.cluster),
        }
    }

    /// The tags for this mark.
    pub fn tags(&self) -> Vec<String> {
        let mut tags = vec![format!("{CLUSTER_TAG}{}", self.cluster)];
        tags.extend(
            self.machine
                .map(|machine| format!("{MACHINE_TAG}{machine}")),
        );
        tags
    }

    /// [`Mark`] of a resource, if any: in the description, set by the create request, or else in the tags.
    pub fn from_item<T: Resource>(item: &T) -> Option<Self> {
        Self::in_description(item.description()).or_else(|| Self::in_tags(item.tags()))
    }

    /// First of these tags of a spec that would make a resource look like another cluster's or machine's.
    pub fn foreign_tag<'a>(&self, tags: impl IntoIterator<Item = &'a String>) -> Option<&'a str> {
        let marks = self.tags();
        let is_reserved = |tag: &str| RESERVED.iter().any(|start| tag.starts_with(start));
        let mut tags = tags.into_iter();
        let found = tags.find(|tag| is_reserved(tag) && !marks.contains(tag));
        found.map(String::as_str)
    }

    /// The mark at the end of a description, if any.
    pub fn in_description(description: &str) -> Option<Self> {
        let (_, mark) = description.strip_suffix(']')?.rsplit_once('[')?;
        match mark.split_once('/') {
            None => Some(Self::cluster(Identity::parse(mark)?)),
            Some((cluster, machine)) => Some(Self::machine(
                Identity::parse(cluster)?,
                Identity::parse(machine)?,
            )),
        }
    }

    /// True if the end of a description has the text of a cluster's identity at the position of a mark. This takes a
    /// fraction of the time of [`Mark::in_description`], which still has to follow.
    pub(crate) fn may_be_of(description: &str, cluster: &str) -> bool {
        let at = |closing: usize| {
            let end = description.len().checked_sub(closing)?;
            description.get(end.checked_sub(cluster.len())?..end)
        };
        // `]`, or `/`, an identity and `]`.
        [1, 2 + cluster.len()].map(at).contains(&Some(cluster))
    }

    /// The mark in the tags, if any.
    pub fn in_tags<'a>(tags: impl IntoIterator<Item = &'a String>) -> Option<Self> {
        let (mut cluster, mut machine) = (None, None);
        for tag in tags {
            cluster = cluster.or_else(|| tag.strip_prefix(CLUSTER_TAG).and_then(Identity::parse));
            machine = machine.or_else(|| tag.strip_prefix(MACHINE_TAG).and_then(Identity::parse));
        }
        Some(Self {
            cluster: cluster?,
            machine,
        })
    }
}

#[cfg(test)]
mod tests;
