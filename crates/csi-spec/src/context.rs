//! Keys and values shared by controller and node, besides those of the specification.

/// Name of the driver.
pub const DRIVER: &str = crate::driver::NAME;
/// Key of the zone in the topology of a node.
pub const ZONE: &str = "topology.cinder.csi.openstack.org/zone";

/// Volume context: `true` for a restored or cloned volume, whose file system may be smaller than the volume.
pub const RESIZE: &str = "cinder.csi.openstack.org/resizeRequired";
/// Volume context: condition under which a device counts as empty, one of [`FORMATS`].
pub const FORMAT: &str = "cinder.csi.openstack.org/format";
/// Volume context: ids of volumes on whose back end the volume should be, separated by commas.
pub const AFFINITY: &str = "affinity";
/// Volume context: ids of volumes on whose back end the volume should not be, separated by commas.
pub const ANTI_AFFINITY: &str = "anti-affinity";
/// Publish context: size of the volume at the time of the attachment, in bytes.
pub const SIZE: &str = "cinder.csi.openstack.org/size";
/// Publish context: `true` for the first attachment of the volume.
pub const FIRST_ATTACH: &str = "cinder.csi.openstack.org/firstAttach";
/// Publish context: device name by Nova, a guess. For readers of the Go driver's context; the node ignores it.
pub const DEVICE: &str = "DevicePath";
/// File systems that nodes make and mount.
pub const FILE_SYSTEMS: &[&str] = &["btrfs", "ext2", "ext3", "ext4", "xfs"];
/// Parameter of a StorageClass that becomes [`FORMAT`].
pub const FORMAT_PARAMETER: &str = "format";
/// Values of [`FORMAT`].
pub const FORMATS: &[&str] = &["blank", "first-attach", "blkid"];
