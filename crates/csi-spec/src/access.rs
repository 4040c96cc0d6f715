//! Access [`Mode`]s of a file system on a shared disk.

use crate::VolumeCapability;
use crate::volume_capability::AccessType;
use crate::volume_capability::access_mode::Mode;

/// Message for a [`VolumeCapability`] with [`shares_what_it_writes`].
pub const ONE_WRITER: &str = "a file system on a volume of Cinder is changed by one node at a time, or read by several: two that change it destroy \
     it. Use ReadWriteOnce, ReadOnlyMany, or a block volume (volumeMode: Block)";

/// True if a node mounts a volume with this [`VolumeCapability`] for writing.
pub fn mounts_for_writing(capability: &VolumeCapability) -> bool {
    let mode = capability.access_mode.map(|it| it.mode());
    let reads = matches!(
        mode,
        Some(Mode::SingleNodeReaderOnly | Mode::MultiNodeReaderOnly)
    );
    matches!(capability.access_type, Some(AccessType::Mount(_))) && !reads
}

/// True if [`mounts_for_writing`] is true while other nodes may have the volume.
pub fn shares_what_it_writes(capability: &VolumeCapability) -> bool {
    let mode = capability.access_mode.map(|it| it.mode());
    let several = matches!(
        mode,
        Some(Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter)
    );
    several && mounts_for_writing(capability)
}
