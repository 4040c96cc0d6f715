//! Content of a block device, read without `blkid`, since the decision to format depends on the answer.
//!
//! `blkid` exits with the same code for a device without a known content, an absent device, and a device of 0 bytes;
//! clients have destroyed data by taking all three for "empty". Here a device is [`Content::Blank`] only if every
//! possible place of a superblock, a partition table, an encryption header, or a copy of one, was read and is zero.
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

/// Random access for reading: a [`Device`], or bytes in a test.
pub trait Blocks {
    /// Size in bytes.
    fn size(&self) -> u64;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// Error of the device, or an end before the buffer is full.
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

/// Content of a device, as [`probe`] recognises it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Zeros at every place that could identify content.
    Blank,
    /// A file system that the driver mounts.
    FileSystem(FileSystem),
    /// Rest of an interrupted mkfs of the driver, by its [mark](crate::format::mark).
    HalfFormatted(&'static str),
    /// A superblock with the flag of an unfinished mkfs: from another interrupted mkfs, from a conversion, or from one
    /// wrong byte before somebody's data.
    Unfinished(&'static str),
    /// A LUKS header, or a copy of one.
    Luks,
    /// Member of a larger whole, or data other than a file system: LVM, RAID, swap, ZFS.
    Other(&'static str),
    /// A partition table of this type.
    Partitioned(&'static str),
    /// Unrecognised bytes, at this offset.
    Unknown(u64),
}

/// Reason why the content of a device is unknown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The device has 0 bytes, which does not mean that it is empty.
    #[error("it has 0 bytes")]
    Empty,
    /// A read failed.
    #[error("offset {offset} cannot be read: {source}")]
    Unreadable {
        /// Offset in bytes.
        offset: u64,
        /// Error of the read.
        source: io::Error,
    },
}

/// Reads a device and recognises its [`Content`].
///
/// # Errors
/// [`Error`]: the device has 0 bytes, or a read failed. The content is then unknown.
pub fn probe(blocks: &(impl Blocks + ?Sized)) -> Result<Content, Error> {
    let size = blocks.size();
    if size == 0 {
        return Err(Error::Empty);
    }
    let mut sample = Sample::new(size);
    // Most content is recognised from the first places alone.
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

/// Reads the places that the [`Sample`] lacks, in pieces.
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

/// Content by the sample. Containers win over file systems: the start of their payload may look like a file system.
/// Bytes that may belong to a file of an intact file system do not count.
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

/// Noun phrase for messages: `an ext4 file system`, `a LUKS header`.
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
