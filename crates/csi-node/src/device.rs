//! Disk of a volume, found by its serial, never by the device name of Nova's answer, a guess.
//!
//! Order of the search, by [`Search`]: attributes of the kernel first, without need of udev: the serial of virtio-blk
//! (cut at 20 characters), page 0x80 of SCSI, the serial of NVMe, and the world wide name. Next are the links of udev
//! known to the Go driver, and last the bus address, as the metadata service lists one. A disk with several paths is
//! used through its device-mapper multipath device.

mod search;
mod serial;
mod wait;

use std::path::PathBuf;

pub use search::{Addresses, Search};
pub(crate) use serial::is_volume;
pub use wait::{Expected, Unusable, wait};

/// Disk of a volume, as the machine has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// Name below `/sys/block`: `vda`, `dm-0`.
    pub name: String,
    /// Device node: `/dev/vda`.
    pub path: PathBuf,
    /// Size in bytes.
    pub size: u64,
    /// Evidence for the match, for messages: `serial 0123…`, `link virtio-0123…`.
    pub by: String,
    /// Device on top of this one, such as a LUKS or LVM device opened by a pod on a block volume.
    pub holder: Option<String>,
}

/// Bus of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// NVMe.
    Nvme,
    /// SCSI, including virtio-scsi.
    Scsi,
    /// virtio-blk.
    Virtio,
}

/// Failure of [`Devices::find`].
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More than one disk is the volume.
    #[error("several disks have the serial of volume {volume}: {disks}")]
    Ambiguous {
        /// Id of the volume.
        volume: String,
        /// Names of the disks, separated by commas.
        disks: String,
    },
    /// An attribute of a disk cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// File of the attribute.
        path: PathBuf,
        /// Error of the read.
        source: std::io::Error,
    },
}

/// Access to the disks of a machine: sysfs and udev ([`Search`]), or a model in tests.
pub trait Devices: Send + Sync + 'static {
    /// Looks for the disk of a volume, by the id of the volume. `None` if the machine has no such disk.
    ///
    /// # Errors
    /// [`Error::Ambiguous`] if several disks match, [`Error::Unreadable`] if an attribute cannot be read.
    fn find(&self, volume: &str) -> Result<Option<Disk>, Error>;

    /// Makes the kernel scan for new disks, and read the size of `disk` again.
    fn rescan(&self, disk: Option<&Disk>);

    /// Bus of each disk of hardware; disks made of software, such as loop devices, are left out.
    fn buses(&self) -> Vec<Bus>;

    /// True if the kernel has a block device with this number.
    fn exists(&self, major: u32, minor: u32) -> bool;
}

#[cfg(test)]
mod tests;
