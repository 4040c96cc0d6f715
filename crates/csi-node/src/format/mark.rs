//! A mark on a device while mkfs is at work, so that one that was interrupted can be told from data of somebody.
//!
//! XFS and btrfs say in their superblock that mkfs has not finished, but only once they have written it, and so does a
//! conversion, or one wrong byte before data; ext4 writes its superblock last. The mark is written to a blank device before
//! mkfs starts and cleared when it has ended. It lies in two places, in one of which no mkfs writes: behind what XFS clears at
//! the end, in no table of ext4, and before what btrfs clears.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::probe::{Blocks, Device};

/// Bytes of the mark.
const BLOCK: u64 = 4096;
/// How far it is from the end of the device. Devices without the second place are too small for btrfs.
const FROM_END: [u64; 2] = [256 << 10, 4 << 20];

/// Writes the mark of a volume to its device, which must be blank or have it.
///
/// # Errors
/// What the device answers.
pub fn set(device: &Path, volume: &str) -> io::Result<()> {
    let places = places(Device::open(device)?.size());
    write(device, &places, &block(volume))
}

/// Clears the mark of a volume, if its device still has it.
///
/// # Errors
/// What the device answers.
pub fn clear(device: &Path, volume: &str) -> io::Result<()> {
    let marked = marked(&Device::open(device)?, volume)?;
    write(device, &marked, &[0; BLOCK as usize])
}

/// Whether a device has the mark of this volume, byte by byte.
///
/// # Errors
/// What the device answers.
pub fn is_there(device: &impl Blocks, volume: &str) -> io::Result<bool> {
    Ok(!marked(device, volume)?.is_empty())
}

/// The places that have the mark.
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

/// None on a device that is too small for any file system.
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
