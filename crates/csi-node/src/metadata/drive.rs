//! Config drive: a disk or partition with the label config-2, read like an archive.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{FILE, fat, iso9660};
use crate::device;
use crate::probe::{Blocks, Device};

/// Label, as Nova writes it. On FAT a label is in upper case, so case is ignored.
const LABEL: &str = "config-2";
/// Prefixes of devices that are never a config drive.
const OTHERS: [&str; 6] = ["dm-", "fd", "loop", "nbd", "ram", "zram"];

/// Reason why a config drive has no document.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No disk has the label.
    #[error("no disk is labelled {LABEL}")]
    Absent,
    /// The drive is damaged, or lacks the document.
    #[error("the config drive {} cannot be read: {source}", path.display())]
    Unreadable {
        /// Device node of the drive.
        path: PathBuf,
        /// Error of the read.
        source: io::Error,
    },
}

/// Search for config drives below the directories of sysfs and of devices.
#[derive(Clone, Debug)]
pub struct Drives {
    sys: PathBuf,
    dev: PathBuf,
}

impl Drives {
    /// Search in the given directories: `/sys` and `/dev`, except in tests.
    pub fn new(sys: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self {
            sys: sys.into(),
            dev: dev.into(),
        }
    }

    /// Reads the document from the first drive whose superblock has the label.
    ///
    /// # Errors
    /// No disk has the label, or no drive can be read.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut failure = Error::Absent;
        for path in self.candidates() {
            // A drive without a medium, or without permission for this process.
            let Ok(device) = Device::open(&path) else {
                continue;
            };
            match read_image(&device) {
                Ok(Some(document)) => return Ok(document),
                Ok(None) => {}
                // Another device may be the intact drive.
                Err(source) => failure = Error::Unreadable { path, source },
            }
        }
        Err(failure)
    }

    /// Disks and partitions, without volumes of the cloud: the writer of a volume could make it a config drive, and so
    /// give this server another identity.
    fn candidates(&self) -> Vec<PathBuf> {
        let blocks = fs::read_dir(self.sys.join("class/block"));
        let mut names: Vec<String> = blocks
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !OTHERS.iter().any(|other| name.starts_with(other)))
            .filter(|name| !self.is_volume(name))
            .collect();
        // The optical drive first: Nova attaches the config drive as one.
        names.sort_by_key(|name| (!name.starts_with("sr"), name.clone()));
        names.iter().map(|name| self.dev.join(name)).collect()
    }

    fn is_volume(&self, name: &str) -> bool {
        let entry = self.sys.join("class/block").join(name);
        // sysfs has the directory of a partition inside the one of its disk.
        let directory = entry.canonicalize().unwrap_or(entry);
        let disk = directory
            .parent()
            .filter(|_| directory.join("partition").exists());
        device::is_volume(disk.unwrap_or(&directory))
    }
}

/// Reads the document in an image of a config drive. `None` for another image, or another label.
///
/// # Errors
/// The config drive is damaged, or lacks the document.
pub fn read_image(blocks: &dyn Blocks) -> io::Result<Option<Vec<u8>>> {
    if let Some(volume) = iso9660::Volume::open(blocks)?
        && volume.label().eq_ignore_ascii_case(LABEL)
    {
        return volume.read(FILE).map(Some);
    }
    if let Some(volume) = fat::Volume::open(blocks)?
        && volume.label()?.eq_ignore_ascii_case(LABEL)
    {
        return volume.read(FILE).map(Some);
    }
    Ok(None)
}
