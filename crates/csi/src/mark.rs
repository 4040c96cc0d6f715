//! What is ours: the name that a sidecar chose, and the metadata with the name of the cluster.

use std::collections::BTreeMap;

/// The metadata key with the name of the cluster.
pub const CLUSTER: &str = "cinder.csi.openstack.org/cluster";
/// The metadata key with the uid of the namespace kube-system, which no two clusters share.
pub const CLUSTER_UID: &str = "cinder.csi.openstack.org/cluster-uid";
/// The metadata key with the id of a volume's first attachment, for classes with `format: first-attach`.
pub(crate) const FIRST_ATTACHMENT: &str = "cinder.csi.openstack.org/first-attachment";
/// The description of what the driver creates.
pub(crate) const DESCRIPTION: &str = "Created by OpenStack Cinder CSI driver";
/// The parameters of a claim that become metadata of its volume.
pub(crate) const OF_VOLUMES: &[&str] = &[
    "csi.storage.k8s.io/pvc/name",
    "csi.storage.k8s.io/pvc/namespace",
    "csi.storage.k8s.io/pv/name",
];
/// The parameters of a VolumeSnapshot that become metadata of its snapshot or backup.
pub(crate) const OF_SNAPSHOTS: &[&str] = &[
    "csi.storage.k8s.io/volumesnapshot/name",
    "csi.storage.k8s.io/volumesnapshot/namespace",
    "csi.storage.k8s.io/volumesnapshotcontent/name",
];
/// Cinder's limit of a key and of a value, in characters.
pub(crate) const LONGEST: usize = 255;

/// The metadata of something new: the cluster, and `keys` of the parameters.
pub(crate) fn metadata(
    cluster: &str,
    parameters: &BTreeMap<String, String>,
    keys: &[&str],
) -> BTreeMap<String, String> {
    let cut = |text: &str| text.chars().take(LONGEST).collect::<String>();
    let mut metadata = BTreeMap::from([(CLUSTER.to_owned(), cut(cluster))]);
    for key in keys {
        if let Some(value) = parameters.get(*key) {
            metadata.insert((*key).to_owned(), cut(value));
        }
    }
    metadata
}

/// Whose something is, by its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// The uid is that of the cluster, and so is the name.
    OfUid,
    /// The name is that of the cluster, and there is no uid. Another cluster may have the same name.
    OfName,
    /// Of another cluster, or of none.
    Foreign,
}

/// Whose something with these metadata is, for the cluster with this name and this uid of its namespace kube-system.
#[must_use]
pub fn mark(cluster: &str, uid: &str, metadata: &BTreeMap<String, String>) -> Mark {
    match metadata.get(CLUSTER_UID) {
        _ if !is_of(cluster, metadata) => Mark::Foreign,
        Some(found) if found == uid => Mark::OfUid,
        Some(_) => Mark::Foreign,
        None => Mark::OfName,
    }
}

/// Whether metadata have the mark of a cluster.
pub(crate) fn is_of(cluster: &str, metadata: &BTreeMap<String, String>) -> bool {
    let mark = metadata.get(CLUSTER);
    mark.is_some_and(|mark| mark.chars().eq(cluster.chars().take(LONGEST)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uid_decides_where_there_is_one_and_a_name_alone_is_less() {
        for (name, uid, expected) in [
            (Some("blue"), Some("u"), Mark::OfUid),
            (Some("blue"), None, Mark::OfName),
            (Some("blue"), Some("v"), Mark::Foreign),
            (Some("red"), Some("u"), Mark::Foreign),
            (None, Some("u"), Mark::Foreign),
            (None, None, Mark::Foreign),
        ] {
            let mut metadata = BTreeMap::new();
            for (key, value) in [(CLUSTER, name), (CLUSTER_UID, uid)] {
                metadata.extend(value.map(|value| (key.to_owned(), value.to_owned())));
            }
            assert_eq!(mark("blue", "u", &metadata), expected, "{metadata:?}");
        }
    }
}
