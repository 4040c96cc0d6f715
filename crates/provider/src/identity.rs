//! Whose a resource of the cloud is.
//!
//! Every OpenStackCluster and OpenStackMachine has an identity of its own, a UUID in an annotation
//! that is stored before the first write to the cloud and that survives `clusterctl move`. It is
//! part of the creating request of everything made for the object: in the description (Neutron,
//! Octavia, Cinder) or in the tags (Nova). Neutron drops or refuses tags at creation, so they come
//! later and only for people; the description decides. No name decides anything.

use std::fmt;

use kube::ResourceExt;
use uuid::Uuid;

/// Annotation with the identity of an OpenStackCluster.
pub const CLUSTER_ID: &str = api::names::CLUSTER_IDENTITY_ANNOTATION;
/// Annotation with the identity of an OpenStackMachine.
pub const MACHINE_ID: &str = api::names::MACHINE_IDENTITY_ANNOTATION;

/// The identity of a cluster or machine.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Uuid);

impl Identity {
    /// A new one.
    pub fn new() -> Self {
        Self(Uuid::new_v4())
    }

    /// The one in an object's annotation. Text that is no UUID is no identity: it would end up in
    /// searches for what may be deleted.
    pub fn of(object: &impl ResourceExt, annotation: &str) -> Option<Self> {
        object
            .annotations()
            .get(annotation)
            .and_then(|text| Self::parse(text))
    }

    /// Reads one.
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

/// The mark on a resource: the cluster that it belongs to and, if it is a machine's, the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mark {
    /// The cluster.
    pub cluster: Identity,
    /// The machine.
    pub machine: Option<Identity>,
}

const CLUSTER_TAG: &str = "ferrostack:cluster=";
const MACHINE_TAG: &str = "ferrostack:machine=";

impl Mark {
    /// The mark of what belongs to a cluster as a whole.
    pub fn cluster(cluster: Identity) -> Self {
        Self {
            cluster,
            machine: None,
        }
    }

    /// The mark of what belongs to one machine.
    pub fn machine(cluster: Identity, machine: Identity) -> Self {
        Self {
            cluster,
            machine: Some(machine),
        }
    }

    /// `text` with the mark at its end: ` [<cluster>]` or ` [<cluster>/<machine>]`.
    pub fn description(&self, text: &str) -> String {
        // Neutron's limit is 255 characters; the mark must not be what is cut off.
        let text: String = text.chars().take(170).collect();
        format!("{text} {}", self.suffix())
    }

    /// What a description with this mark ends with.
    pub fn suffix(&self) -> String {
        match self.machine {
            None => format!("[{}]", self.cluster),
            Some(machine) => format!("[{}/{machine}]", self.cluster),
        }
    }

    /// The tags that show the mark.
    pub fn tags(&self) -> Vec<String> {
        let mut tags = vec![format!("{CLUSTER_TAG}{}", self.cluster)];
        tags.extend(
            self.machine
                .map(|machine| format!("{MACHINE_TAG}{machine}")),
        );
        tags
    }

    /// The mark at the end of a description.
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

    /// The mark among tags.
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
