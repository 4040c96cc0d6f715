//! A block device, read past the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::Blocks;
use super::places::BLOCK;

/// An open device, or a file, for tests.
///
/// What the page cache has of a device may be older than the device: another machine may have written to it since.
#[derive(Debug)]
pub struct Device {
    file: File,
    size: u64,
}

impl Device {
    /// Opens it with O_DIRECT. A file on a file system that has no such access (not a device) is opened without.
    ///
    /// # Errors
    /// What `open` answers.
    pub fn open(path: &Path) -> io::Result<Self> {
        let direct = i32::try_from(OFlags::DIRECT.bits()).unwrap_or(0);
        let mut options = OpenOptions::new();
        options.read(true);
        let opened = options.clone().custom_flags(direct).open(path);
        let file = match opened {
            Err(error)
                if error.kind() == io::ErrorKind::InvalidInput
                    && std::fs::metadata(path)?.is_file() =>
            {
                options.open(path)?
            }
            opened => opened?,
        };
        Self::of(file)
    }

    /// Opens it through the page cache, where the superblock of a mounted ext4 is newer than on the device.
    ///
    /// # Errors
    /// What `open` answers.
    pub fn open_cached(path: &Path) -> io::Result<Self> {
        Self::of(File::open(path)?)
    }

    fn of(mut file: File) -> io::Result<Self> {
        let size = file.seek(SeekFrom::End(0))?;
        Ok(Self { file, size })
    }
}

impl Blocks for Device {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = offset / BLOCK * BLOCK;
        let skip = usize::try_from(offset - start).map_err(io::Error::other)?;
        let block = usize::try_from(BLOCK).map_err(io::Error::other)?;
        // O_DIRECT wants address, offset and length to be aligned.
        let length = (skip + buffer.len()).next_multiple_of(block);
        let mut memory = vec![0; length + block];
        let first = memory.as_ptr().align_offset(block);
        let aligned = memory.get_mut(first..first + length);
        let aligned = aligned.ok_or_else(|| io::Error::other("no aligned memory"))?;
        let mut filled = 0;
        while filled < skip + buffer.len() {
            let rest = aligned.get_mut(filled..).unwrap_or_default();
            match self.file.read_at(rest, start + filled as u64) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        let wanted = aligned.get(skip..skip + buffer.len()).unwrap_or_default();
        buffer.copy_from_slice(wanted);
        Ok(())
    }
}
