//! The config drive: the disk or partition that is labelled so, read like an archive.

use std::fs;
use std::io;
use std::path::PathBuf;

use super::{FILE, fat, iso9660};
use crate::device;
use crate::probe::{Blocks, Device};

/// As Nova labels it; FAT has upper case alone.
const LABEL: &str = "config-2";
/// Devices that are no config drive.
const OTHERS: [&str; 6] = ["dm-", "fd", "loop", "nbd", "ram", "zram"];

/// Why there is no config drive, or no file in it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing is labelled so.
    #[error("no disk is labelled {LABEL}")]
    Absent,
    /// It is damaged, or lacks the file.
    #[error("the config drive {} cannot be read: {source}", path.display())]
    Unreadable {
        /// Its device.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Looks for config drives below these directories.
#[derive(Clone, Debug)]
pub struct Drives {
    sys: PathBuf,
    dev: PathBuf,
}

impl Drives {
    /// With `/sys` and `/dev`, or others for tests.
    pub fn new(sys: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self {
            sys: sys.into(),
            dev: dev.into(),
        }
    }

    /// The document, from the first drive that is labelled so by its own superblock.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        let mut failure = Error::Absent;
        for path in self.candidates() {
            // A drive without a medium, and one that this process may not open.
            let Ok(device) = Device::open(&path) else {
                continue;
            };
            match read_image(&device) {
                Ok(Some(document)) => return Ok(document),
                Ok(None) => {}
                // Another one may be the drive.
                Err(source) => failure = Error::Unreadable { path, source },
            }
        }
        Err(failure)
    }

    /// Disks and partitions, but not those of volumes: who may write to a volume could make it a config drive, and this
    /// server another one.
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
        // The optical drive first, where Nova puts it.
        names.sort_by_key(|name| (!name.starts_with("sr"), name.clone()));
        names.iter().map(|name| self.dev.join(name)).collect()
    }

    fn is_volume(&self, name: &str) -> bool {
        let entry = self.sys.join("class/block").join(name);
        // The directory of a partition is in that of its disk.
        let directory = entry.canonicalize().unwrap_or(entry);
        let disk = directory
            .parent()
            .filter(|_| directory.join("partition").exists());
        device::is_volume(disk.unwrap_or(&directory))
    }
}

/// The document in an image of a config drive; none if it is something else, or labelled otherwise.
///
/// # Errors
/// It is a config drive and damaged, or lacks the file.
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
