//! What a block device contains: read by ourselves, since the decision to format depends on it.
//!
//! `blkid` answers that nothing was found with the same exit code as for a device that is absent or has no bytes, and
//! clients that take it for "empty" have destroyed data. Here a device is [`Content::Blank`] only if every place where a
//! superblock, a partition table, a header of an encrypted volume, or a copy of one, may be was read and is zero.

mod device;
mod filesystem;
mod magic;
mod places;

use std::io;
use std::ops::Range;

pub use device::Device;
pub use filesystem::FileSystem;
use places::Sample;

/// Something that can be read at an offset: a block device, or bytes in a test.
pub trait Blocks {
    /// Size in bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// What the device answers; an end before the buffer is full is one.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// An image in memory.
impl Blocks for &[u8] {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(io::Error::other)?;
        let rest = self.get(start..).unwrap_or_default();
        let bytes = rest.get(..buffer.len());
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// What a device contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// It reads as zeros wherever something could be recognised.
    Blank,
    /// One that the driver mounts.
    FileSystem(FileSystem),
    /// mkfs of the driver was interrupted, as its mark says.
    HalfFormatted(&'static str),
    /// A superblock that says that somebody is making the file system: an mkfs that was interrupted, a conversion of
    /// another file system, or one wrong byte before somebody's data.
    Unfinished(&'static str),
    /// A LUKS header, or a copy of one.
    Luks,
    /// A member of something larger, or data of a kind that is no file system: LVM, RAID, swap, ZFS.
    Other(&'static str),
    /// A partition table, of this kind.
    Partitioned(&'static str),
    /// Not zero at this offset, and nothing that is recognised.
    Unknown(u64),
}

/// Why nothing can be said of a device.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It has no bytes (yet), which is not the same as being empty.
    #[error("it has 0 bytes")]
    Empty,
    /// A place of it cannot be read.
    #[error("offset {offset} cannot be read: {source}")]
    Unreadable {
        /// Where.
        offset: u64,
        /// Why.
        source: io::Error,
    },
}

/// Reads a device and says what it contains.
///
/// # Errors
/// A device without bytes, or one of whose places cannot be read: nothing is known then.
pub fn probe(blocks: &(impl Blocks + ?Sized)) -> Result<Content, Error> {
    let size = blocks.size();
    if size == 0 {
        return Err(Error::Empty);
    }
    let mut sample = Sample::new(size);
    // What is recognised at once needs no more.
    read(blocks, &mut sample, places::first(size))?;
    if let Some(content) = recognised(&sample) {
        return Ok(content);
    }
    read(blocks, &mut sample, places::all(size))?;
    let unknown = || match sample.first_not_zero() {
        Some(offset) => Content::Unknown(offset),
        None => Content::Blank,
    };
    Ok(recognised(&sample).unwrap_or_else(unknown))
}

/// Reads the places that have not been read yet, in pieces.
fn read(
    blocks: &(impl Blocks + ?Sized),
    sample: &mut Sample,
    places: Vec<Range<u64>>,
) -> Result<(), Error> {
    for piece in places.into_iter().flat_map(places::pieces) {
        if sample.has_read(&piece) {
            continue;
        }
        let mut buffer = vec![0; usize::try_from(piece.end - piece.start).unwrap_or(0)];
        let offset = piece.start;
        blocks
            .read(offset, &mut buffer)
            .map_err(|source| Error::Unreadable { offset, source })?;
        sample.add(offset, buffer);
    }
    Ok(())
}

/// Containers come first: the start of what they contain may look like a file system. Only what can be the content of a
/// file of a whole one does not count.
fn recognised(sample: &Sample) -> Option<Content> {
    let found = filesystem::recognise(sample);
    let files = match &found {
        Some(Content::FileSystem(found)) => filesystem::files(found, sample.size),
        _ => 0..0,
    };
    magic::container(sample, &files)
        .or(found)
        .or_else(|| magic::other(sample))
        .or_else(|| magic::partitions(sample))
}

/// As in a message: `an ext4 file system`, `a LUKS header`.
impl std::fmt::Display for Content {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Blank => f.write_str("nothing"),
            Self::FileSystem(found) => write!(f, "a file system of type {}", found.kind),
            Self::HalfFormatted(kind) => write!(f, "a half finished file system of type {kind}"),
            Self::Unfinished(kind) => write!(f, "an unfinished file system of type {kind}"),
            Self::Luks => f.write_str("a LUKS header"),
            Self::Other(kind) => f.write_str(kind),
            Self::Partitioned(kind) => write!(f, "a partition table ({kind})"),
            Self::Unknown(offset) => write!(f, "unknown data (the first at offset {offset})"),
        }
    }
}

#[cfg(test)]
mod tests;
