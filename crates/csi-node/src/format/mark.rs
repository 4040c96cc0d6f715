//! Mark on a device while mkfs runs, to tell an interrupted mkfs from somebody's data.
//!
//! The superblocks of XFS and btrfs have a flag for an unfinished mkfs. The flag alone proves nothing: a conversion
//! sets the same one, and one wrong byte before data looks alike; ext4 writes its superblock last. So the driver writes
//! its mark to a blank device before mkfs starts and clears the mark after mkfs ends. Of its two places every mkfs
//! leaves one alone: they lie behind the area that XFS clears at the end, outside the tables of ext4, and before the
//! area that btrfs clears.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::probe::{Blocks, Device};

/// Size of the mark in bytes.
const BLOCK: u64 = 4096;
/// Distances of the two places from the end of the device, in bytes. A device without the second place is too small for
/// btrfs.
const FROM_END: [u64; 2] = [256 << 10, 4 << 20];

/// Writes the mark of a volume to its device. The device must be blank, or already have the mark.
///
/// # Errors
/// Error of the device.
pub fn set(device: &Path, volume: &str) -> io::Result<()> {
    let places = places(Device::open(device)?.size());
    write(device, &places, &block(volume))
}

/// Clears the mark of a volume; no-op if the device does not have the mark.
///
/// # Errors
/// Error of the device.
pub fn clear(device: &Path, volume: &str) -> io::Result<()> {
    let marked = marked(&Device::open(device)?, volume)?;
    write(device, &marked, &[0; BLOCK as usize])
}

/// True if a device has the mark of this volume, compared byte by byte.
///
/// # Errors
/// Error of the device.
pub fn is_there(device: &impl Blocks, volume: &str) -> io::Result<bool> {
    Ok(!marked(device, volume)?.is_empty())
}

/// Offsets of the places with the mark.
fn marked(device: &impl Blocks, volume: &str) -> io::Result<Vec<u64>> {
    let mut marked = Vec::new();
    for place in places(device.size()) {
        let mut found = block("");
        device.read(place, &mut found)?;
        if found == block(volume) {
            marked.push(place);
        }
    }
    Ok(marked)
}

fn write(device: &Path, places: &[u64], block: &[u8]) -> io::Result<()> {
    if places.is_empty() {
        return Ok(());
    }
    let device = File::options().write(true).open(device)?;
    for place in places {
        device.write_all_at(block, *place)?;
    }
    device.sync_all()
}

/// Offsets of both places; none on a device too small for any file system.
fn places(size: u64) -> Vec<u64> {
    let place = |from_end| Some(u64::checked_sub(size, from_end)? / BLOCK * BLOCK);
    FROM_END.into_iter().filter_map(place).collect()
}

fn block(volume: &str) -> Vec<u8> {
    let mut block = format!("ferrostack: mkfs has begun on volume {volume}\n").into_bytes();
    block.resize(BLOCK as usize, 0);
    block
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::{Content, probe};

    #[test]
    fn a_mark_is_of_one_volume_and_goes_without_a_trace() {
        for size in [4096, 256 << 10, (1 << 20) + 512, 8 << 20] {
            let file = tempfile::NamedTempFile::new().unwrap();
            file.as_file().set_len(size).unwrap();
            let there = |volume| is_there(&Device::open(file.path()).unwrap(), volume).unwrap();
            let has_room = size >= 256 << 10;
            set(file.path(), "a").unwrap();
            assert_eq!(
                (there("a"), there("b"), there("")),
                (has_room, false, false)
            );
            // It is no zero to the prober.
            let content = probe(&Device::open(file.path()).unwrap()).unwrap();
            assert_eq!(matches!(content, Content::Unknown(_)), has_room);
            clear(file.path(), "b").unwrap();
            assert_eq!(there("a"), has_room);
            clear(file.path(), "a").unwrap();
            let content = probe(&Device::open(file.path()).unwrap()).unwrap();
            assert_eq!(content, Content::Blank);
        }
    }
}
