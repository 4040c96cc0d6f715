//! What is ours: the name that a sidecar chose, and the metadata with the name of the cluster.

use std::collections::BTreeMap;

/// The metadata key with the name of the cluster.
pub(crate) const CLUSTER: &str = "cinder.csi.openstack.org/cluster";
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

/// Whether metadata have the mark of a cluster.
pub(crate) fn is_of(cluster: &str, metadata: &BTreeMap<String, String>) -> bool {
    let mark = metadata.get(CLUSTER);
    mark.is_some_and(|mark| mark.chars().eq(cluster.chars().take(LONGEST)))
}
