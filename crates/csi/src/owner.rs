//! Whose something is: by the name of the cluster, which many clusters share, and by the uid of its namespace kube-system,
//! which no two do.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use crate::Options;
use crate::mark::{CLUSTER, is_of};

/// The metadata key with the uid.
pub const CLUSTER_UID: &str = "cinder.csi.openstack.org/cluster-uid";

/// The uid of the namespace kube-system, once it is known. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct ClusterUid(Arc<OnceLock<String>>);

impl ClusterUid {
    /// Makes it known. A uid does not change, so that the first one stays.
    pub fn set(&self, uid: String) {
        let _ = self.0.set(uid);
    }

    /// The uid, if it is known.
    #[must_use]
    pub fn get(&self) -> Option<&str> {
        let uid = self.0.get().map(String::as_str);
        uid.filter(|uid| !uid.is_empty())
    }
}

/// Whose something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The uid is that of the cluster, and so is the name.
    Cluster,
    /// The name is that of the cluster, and there is no uid. Another cluster may have the same name.
    Namesake,
    /// Another cluster, or none.
    Other,
}

/// Whose something with these metadata is, for the cluster with this name and uid.
#[must_use]
pub fn owner(cluster: &str, uid: &str, metadata: &BTreeMap<String, String>) -> Owner {
    match metadata.get(CLUSTER_UID) {
        _ if !is_of(cluster, metadata) => Owner::Other,
        Some(found) if found == uid => Owner::Cluster,
        Some(_) => Owner::Other,
        None => Owner::Namesake,
    }
}

/// True if metadata are those of something that the driver made, or the Go one, for whatever cluster.
#[must_use]
pub fn is_marked(metadata: &BTreeMap<String, String>) -> bool {
    metadata.contains_key(CLUSTER)
}

/// Metadata but for the uid.
pub(crate) fn without_uid(
    metadata: &BTreeMap<String, String>,
) -> impl Iterator<Item = (&String, &String)> {
    metadata.iter().filter(|(key, _)| *key != CLUSTER_UID)
}

impl Options {
    /// Adds the uid to metadata with the name of the cluster, if it is known.
    pub(crate) fn sign(&self, metadata: &mut BTreeMap<String, String>) {
        if let Some(uid) = self.cluster_uid.get() {
            metadata.insert(CLUSTER_UID.to_owned(), uid.to_owned());
        }
    }

    /// True if what has these metadata, and a name that is asked for, is adopted: it has the name of the cluster, and no uid of
    /// another one. What the driver created before it knew the uid has none, as what the Go driver created.
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
