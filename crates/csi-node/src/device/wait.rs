//! Wait for a disk: a disk appears, gets its size and grows some time after the cloud has reported success.

use std::time::Duration;

use super::{Devices, Disk, Error};

/// Properties of the disk, as the cloud has announced them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Size in bytes; `None` if the controller did not pass one.
    pub size: Option<u64>,
}

impl Expected {
    /// True if a disk of `size` bytes is large enough. The header of an encryption below the guest makes the disk up to
    /// 16 MiB smaller than the volume; a volume grown since is larger.
    pub fn fits(self, size: u64) -> bool {
        const HEADER: u64 = 16 << 20;
        size > 0
            && self
                .size
                .is_none_or(|expected| size.saturating_add(HEADER) >= expected)
    }
}

/// Reason why a disk cannot be used yet.
#[derive(Debug, thiserror::Error)]
pub enum Unusable {
    /// No disk is the volume.
    #[error(
        "no disk of this machine has the serial of volume {0}, and no link below /dev/disk/by-id names it: \
         see whether the volume is attached to this server, and its serial below /sys/block"
    )]
    Absent(String),
    /// The disk has 0 bytes.
    #[error("{disk} has 0 bytes: it is not ready, or its host has lost it")]
    Empty {
        /// Device node of the disk.
        disk: String,
    },
    /// The search failed.
    #[error(transparent)]
    Search(#[from] Error),
    /// The disk is smaller than the volume.
    #[error("{disk} has {size} bytes and should have {expected}: the machine has not seen it grow")]
    Small {
        /// Device node of the disk.
        disk: String,
        /// Size of the disk in bytes.
        size: u64,
        /// Expected size in bytes.
        expected: u64,
    },
}

/// Looks for the disk of a volume until its size is as [`Expected`], for at most `limit`, and rescans in between.
///
/// # Errors
/// Reason of the last attempt, as [`Unusable`].
pub fn wait(
    devices: &dyn Devices,
    volume: &str,
    expected: Expected,
    limit: Duration,
    pause: &mut dyn FnMut(Duration),
) -> Result<Disk, Unusable> {
    const LONGEST: Duration = Duration::from_secs(1);
    let (mut waited, mut step) = (Duration::ZERO, Duration::from_millis(50));
    loop {
        let found = devices.find(volume)?;
        let lacks = match found.as_ref() {
            Some(disk) if expected.fits(disk.size) => return Ok(disk.clone()),
            None => Unusable::Absent(volume.to_owned()),
            Some(disk) if disk.size == 0 => Unusable::Empty {
                disk: disk.path.display().to_string(),
            },
            Some(disk) => Unusable::Small {
                disk: disk.path.display().to_string(),
                size: disk.size,
                expected: expected.size.unwrap_or_default(),
            },
        };
        if waited >= limit {
            return Err(lacks);
        }
        devices.rescan(found.as_ref());
        pause(step);
        waited += step;
        step = (step * 2).min(LONGEST);
    }
}
