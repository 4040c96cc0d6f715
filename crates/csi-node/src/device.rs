//! The disk of a volume: found by its serial, never by a name that Nova guessed.
//!
//! The kernel's own attributes are read first, since they need no udev: the serial of virtio-blk (cut at 20 characters),
//! page 0x80 of SCSI, the serial of NVMe, and the world wide name. Then come the links of udev that the Go driver knows,
//! then the address on the bus, which the metadata service lists. A disk with several paths is used through the
//! device-mapper device that holds them.

mod search;
mod serial;
mod wait;

use std::path::PathBuf;

pub use search::{Addresses, Search};
pub(crate) use serial::is_volume;
pub use wait::{Expected, Unusable, wait};

/// A disk that has been found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Disk {
    /// As below `/sys/block`: `vda`, `dm-0`.
    pub name: String,
    /// Its node: `/dev/vda`.
    pub path: PathBuf,
    /// Bytes.
    pub size: u64,
    /// What identified it, for messages: `serial 0123…`, `link virtio-0123…`.
    pub by: String,
    /// What is on top of it, such as a LUKS or LVM device that a pod has opened on a block volume.
    pub holder: Option<String>,
}

/// What a disk is plugged into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bus {
    /// NVMe.
    Nvme,
    /// SCSI, also that of virtio.
    Scsi,
    /// virtio-blk.
    Virtio,
}

/// Why a search has no single answer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// More than one disk is the volume.
    #[error("several disks have the serial of volume {volume}: {disks}")]
    Ambiguous {
        /// Its id.
        volume: String,
        /// Their names.
        disks: String,
    },
    /// An attribute of a disk cannot be read.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// How the disks of a machine are found.
pub trait Devices: Send + Sync + 'static {
    /// The disk of a volume, if the machine has it.
    ///
    /// # Errors
    /// There is more than one.
    fn find(&self, volume: &str) -> Result<Option<Disk>, Error>;

    /// Makes the kernel look for new disks, and for the size of this one.
    fn rescan(&self, disk: Option<&Disk>);

    /// The bus of each disk, without those that are made of software.
    fn buses(&self) -> Vec<Bus>;

    /// True if a device with this number exists.
    fn exists(&self, major: u32, minor: u32) -> bool;
}

#[cfg(test)]
mod tests;
