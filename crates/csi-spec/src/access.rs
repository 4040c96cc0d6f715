//! The [`Mode`]s that a file system on a shared disk can have.

use crate::VolumeCapability;
use crate::volume_capability::AccessType;
use crate::volume_capability::access_mode::Mode;

/// Why a [`VolumeCapability`] is refused with which [`shares_what_it_writes`] is true.
pub const ONE_WRITER: &str = "a file system on a volume of Cinder is changed by one node at a time, or read by several: two that change it destroy \
     it. Use ReadWriteOnce, ReadOnlyMany, or a block volume (volumeMode: Block)";

/// True if a node mounts a volume of this [`VolumeCapability`] for writing.
pub fn mounts_for_writing(capability: &VolumeCapability) -> bool {
    let mode = capability.access_mode.map(|it| it.mode());
    let reads = matches!(
        mode,
        Some(Mode::SingleNodeReaderOnly | Mode::MultiNodeReaderOnly)
    );
    matches!(capability.access_type, Some(AccessType::Mount(_))) && !reads
}

/// True if [`mounts_for_writing`] is, and other nodes have the volume at the same time.
pub fn shares_what_it_writes(capability: &VolumeCapability) -> bool {
    let mode = capability.access_mode.map(|it| it.mode());
    let several = matches!(
        mode,
        Some(Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter)
    );
    several && mounts_for_writing(capability)
}
