//! Marks of our objects: the name from a sidecar, and metadata with the name of the cluster.

use std::collections::{BTreeMap, BTreeSet};

/// Metadata key with the name of the cluster.
pub(crate) const CLUSTER: &str = "cinder.csi.openstack.org/cluster";
/// Metadata key with the id of a volume's first attachment, for classes with `format: first-attach`.
pub(crate) const FIRST_ATTACHMENT: &str = "cinder.csi.openstack.org/first-attachment";
/// Description of objects that the driver creates.
pub(crate) const DESCRIPTION: &str = "Created by OpenStack Cinder CSI driver";
/// Parameters of a claim that become metadata of its volume.
pub(crate) const OF_VOLUMES: &[&str] = &[
    "csi.storage.k8s.io/pvc/name",
    "csi.storage.k8s.io/pvc/namespace",
    "csi.storage.k8s.io/pv/name",
];
/// Parameters of a VolumeSnapshot that become metadata of its snapshot or backup.
pub(crate) const OF_SNAPSHOTS: &[&str] = &[
    "csi.storage.k8s.io/volumesnapshot/name",
    "csi.storage.k8s.io/volumesnapshot/namespace",
    "csi.storage.k8s.io/volumesnapshotcontent/name",
];
/// Cinder's limit for a key and for a value, in characters.
pub(crate) const LONGEST: usize = 255;
/// Length of the [`set`] in a description, in characters.
const SET: usize = 16;

/// Metadata of a new object: the cluster, and `keys` of the parameters.
pub(crate) fn metadata(
    cluster: &str,
    parameters: &BTreeMap<String, String>,
    keys: &[&str],
) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::from([(CLUSTER.to_owned(), cut(cluster))]);
    for key in keys {
        if let Some(value) = parameters.get(*key) {
            metadata.insert((*key).to_owned(), cut(value));
        }
    }
    metadata
}

/// True if `metadata` has the mark of the cluster.
pub(crate) fn is_of(cluster: &str, metadata: &BTreeMap<String, String>) -> bool {
    let mark = metadata.get(CLUSTER);
    mark.is_some_and(|mark| mark.chars().eq(cluster.chars().take(LONGEST)))
}

/// Description of a group, in place of metadata: of the cluster with this uid, or of any cluster with the name.
pub(crate) fn of_group(cluster: &str, uid: Option<&str>) -> String {
    // The uid first: Cinder cuts a long description.
    let uid = uid.map_or(String::new(), |uid| format!("uid={uid}; "));
    cut(&format!("{DESCRIPTION}; {uid}{CLUSTER}={cluster}"))
}

/// Description of a group snapshot, in place of metadata, with the [`set`] of its volumes.
pub(crate) fn of_group_snapshot(cluster: &str, volumes: &BTreeSet<String>) -> String {
    described(cluster, &set(volumes))
}

/// The [`set`] in the description of a group snapshot of this cluster.
pub(crate) fn set_of_group_snapshot(cluster: &str, description: &str) -> Option<String> {
    let rest = description.strip_prefix(&format!("{DESCRIPTION}; volumes="))?;
    let set = rest.get(..SET)?;
    (described(cluster, set) == description).then(|| set.to_owned())
}

fn described(cluster: &str, set: &str) -> String {
    cut(&format!(
        "{DESCRIPTION}; volumes={set}; {CLUSTER}={cluster}"
    ))
}

/// Short name of a set of volumes: FNV-1a of the sorted ids, in hexadecimal.
pub(crate) fn set(volumes: &BTreeSet<String>) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in volumes.iter().flat_map(|id| id.bytes().chain([b','])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    }
    format!("{hash:016x}")
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_snapshot_says_whose_it_is_and_of_which_volumes() {
        let volumes = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect();
        let (one, two) = (volumes(&["a", "bc"]), volumes(&["ab", "c"]));
        assert_ne!(set(&one), set(&two));
        let long = "x".repeat(1000);
        for cluster in ["", "kubernetes", "größe", &long] {
            let description = of_group_snapshot(cluster, &one);
            assert!(description.chars().count() <= LONGEST);
            assert_eq!(
                set_of_group_snapshot(cluster, &description),
                Some(set(&one))
            );
            assert_eq!(set_of_group_snapshot("other", &description), None);
            assert_eq!(
                set_of_group_snapshot(cluster, &of_group(cluster, None)),
                None
            );
        }
        assert_eq!(
            set_of_group_snapshot("", "Created by OpenStack Cinder CSI driver"),
            None
        );
    }
}
