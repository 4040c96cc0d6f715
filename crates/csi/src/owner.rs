//! Owner of an object of Cinder. The name of a cluster may be shared by many clusters; the uid of the namespace
//! kube-system is unique.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::Options;
use crate::mark::{CLUSTER, is_of};

/// Metadata key with the uid.
pub const CLUSTER_UID: &str = "cinder.csi.openstack.org/cluster-uid";

/// Uid of the namespace kube-system, once known. Clones share the cell.
#[derive(Clone, Debug, Default)]
pub struct ClusterUid(Arc<OnceLock<String>>);

impl ClusterUid {
    /// Sets the uid. Later calls are ignored: a uid does not change.
    pub fn set(&self, uid: String) {
        let _ = self.0.set(uid);
    }

    /// The uid; `None` while unknown.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        let uid = self.0.get().map(String::as_str);
        uid.filter(|uid| !uid.is_empty())
    }
}

/// Owner of an object, relative to one cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// This cluster: uid and name match.
    Cluster,
    /// The name matches, and there is no uid. A cluster with the same name may be the owner.
    Namesake,
    /// Another cluster, or none.
    Other,
}

/// [`Owner`] of an object with this metadata, relative to the cluster with this name and uid.
#[must_use]
pub fn owner(cluster: &str, uid: &str, metadata: &BTreeMap<String, String>) -> Owner {
    match metadata.get(CLUSTER_UID) {
        _ if !is_of(cluster, metadata) => Owner::Other,
        Some(found) if found == uid => Owner::Cluster,
        Some(_) => Owner::Other,
        None => Owner::Namesake,
    }
}

/// True for metadata of an object of this driver or of the Go driver, for any cluster.
#[must_use]
pub fn is_marked(metadata: &BTreeMap<String, String>) -> bool {
    metadata.contains_key(CLUSTER)
}

/// Metadata without the uid.
pub(crate) fn without_uid(
    metadata: &BTreeMap<String, String>,
) -> impl Iterator<Item = (&String, &String)> {
    metadata.iter().filter(|(key, _)| *key != CLUSTER_UID)
}

impl Options {
    /// Adds the [`ClusterUid`], if known, to metadata with the name of the cluster.
    pub(crate) fn sign(&self, metadata: &mut BTreeMap<String, String>) {
        if let Some(uid) = self.cluster_uid.get() {
            metadata.insert(CLUSTER_UID.to_owned(), uid.to_owned());
        }
    }

    /// True if an object with the wanted name and this metadata is adopted, since its [`Owner`] may be this cluster:
    /// the name of the cluster matches, and there is no uid of another cluster. Objects of the Go driver have no uid,
    /// nor have objects of this driver from before it knew the uid.
    pub(crate) fn owns(&self, metadata: &BTreeMap<String, String>) -> bool {
        match self.cluster_uid.get() {
            None => is_of(&self.cluster, metadata),
            Some(uid) => owner(&self.cluster, uid, metadata) != Owner::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_decides_where_there_is_one_and_a_name_alone_is_less() {
        let known = Options {
            cluster: "blue".to_owned(),
            ..Options::default()
        };
        let unknown = Options {
            cluster_uid: ClusterUid::default(),
            ..known.clone()
        };
        known.cluster_uid.set("u".to_owned());
        for (name, uid, expected, adopted) in [
            (Some("blue"), Some("u"), Owner::Cluster, [true, true]),
            (Some("blue"), None, Owner::Namesake, [true, true]),
            (Some("blue"), Some("v"), Owner::Other, [false, true]),
            (Some("red"), Some("u"), Owner::Other, [false, false]),
            (None, Some("u"), Owner::Other, [false, false]),
            (None, None, Owner::Other, [false, false]),
        ] {
            let mut metadata = BTreeMap::new();
            for (key, value) in [(CLUSTER, name), (CLUSTER_UID, uid)] {
                metadata.extend(value.map(|value| (key.to_owned(), value.to_owned())));
            }
            assert_eq!(owner("blue", "u", &metadata), expected, "{metadata:?}");
            let adopts = [known.owns(&metadata), unknown.owns(&metadata)];
            assert_eq!(adopts, adopted, "{metadata:?}");
        }
    }
}
