//! Reads of a block device past the page cache.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use super::Blocks;
use super::places::BLOCK;

/// Open block device, or a file in tests.
///
/// The page cache may be older than the device, since another machine may have written to it.
#[derive(Debug)]
pub struct Device {
    file: File,
    size: u64,
}

impl Device {
    /// Opens a device with O_DIRECT. A file on a file system without O_DIRECT is opened without.
    ///
    /// # Errors
    /// Error of `open`.
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
        Self::from_file(file)
    }

    /// Opens a device through the page cache, which has the current superblock of a mounted ext4.
    ///
    /// # Errors
    /// Error of `open`.
    pub fn open_cached(path: &Path) -> io::Result<Self> {
        Self::from_file(File::open(path)?)
    }

    fn from_file(mut file: File) -> io::Result<Self> {
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
        // O_DIRECT demands aligned addresses, offsets and lengths.
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
