//! Keys and words that the controller and the node agree on, beside those of the specification.

/// The driver's name.
pub const DRIVER: &str = crate::driver::NAME;
/// The key of the zone in the topology of a node.
pub const ZONE: &str = "topology.cinder.csi.openstack.org/zone";

/// In the volume context: `true` if the file system is smaller than the volume, which was restored or cloned.
pub const RESIZE: &str = "cinder.csi.openstack.org/resizeRequired";
/// In the volume context: when a device counts as empty, as the parameter `format` of the StorageClass says.
pub const FORMAT: &str = "cinder.csi.openstack.org/format";
/// In the volume context: ids of the volumes on whose back end the volume was to be, between commas.
pub const AFFINITY: &str = "affinity";
/// In the volume context: ids of the volumes on whose back end it was not to be, between commas.
pub const ANTI_AFFINITY: &str = "anti-affinity";
/// In the publish context: the size of the volume when it was attached, in bytes.
pub const SIZE: &str = "cinder.csi.openstack.org/size";
/// In the publish context: `true` if this is the first attachment of the volume.
pub const FIRST_ATTACH: &str = "cinder.csi.openstack.org/firstAttach";
/// In the publish context: the device that Nova names, which is a guess; for those who read the Go driver's.
pub const DEVICE: &str = "DevicePath";
/// The file systems that nodes make and mount.
pub const FILE_SYSTEMS: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "xfs"];
/// The parameter of a StorageClass that becomes [`FORMAT`].
pub const FORMAT_PARAMETER: &str = "format";
/// The values of [`FORMAT`].
pub const FORMATS: &[&str] = &["blank", "first-attach", "blkid"];
