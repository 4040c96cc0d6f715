//! Where superblocks, tables and headers lie, and what was read there.

use std::ops::Range;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// What O_DIRECT wants offsets and lengths to be multiples of, on any device of today.
pub(super) const BLOCK: u64 = 4 * KIB;

/// From the start: everything up to the last copy of a LUKS2 header, at 4 MiB.
const HEAD: u64 = 4 * MIB + 64 * KIB;
/// From the end: labels of ZFS (512 KiB, aligned to 256 KiB), RAID superblocks and the second GPT.
const TAIL: u64 = MIB;
/// Of each copy further inside.
const COPY: u64 = 64 * KIB;
/// Copies of superblocks: groups 1 and 3 of ext with blocks of 1, 2 and 4 KiB; btrfs; groups of a large XFS.
const COPIES: [u64; 9] = [
    8 * MIB,
    24 * MIB,
    32 * MIB,
    64 * MIB,
    96 * MIB,
    128 * MIB,
    384 * MIB,
    256 * GIB,
    1024 * GIB,
];

/// All places of a device of this size, in order, without overlap; offsets are multiples of [`BLOCK`].
pub(super) fn all(size: u64) -> Vec<Range<u64>> {
    let mut places = vec![0..HEAD, floor(size.saturating_sub(TAIL))..size];
    places.extend(COPIES.map(|at| at..at + COPY));
    // mkfs.xfs makes four groups of a device of up to 4 TiB.
    places.extend([1, 2, 3].map(|quarter| {
        let at = floor(size / 4 * quarter);
        at..at + COPY
    }));
    let mut places: Vec<Range<u64>> = places
        .into_iter()
        .map(|place| place.start..place.end.min(size))
        .filter(|place| place.start < place.end)
        .collect();
    places.sort_by_key(|place| place.start);
    let mut merged: Vec<Range<u64>> = Vec::new();
    for place in places {
        match merged.last_mut() {
            Some(last) if place.start <= last.end => last.end = last.end.max(place.end),
            _ => merged.push(place),
        }
    }
    merged
}

fn floor(offset: u64) -> u64 {
    offset / BLOCK * BLOCK
}

/// What was read of a device.
pub(super) struct Sample {
    pub(super) size: u64,
    parts: Vec<(u64, Vec<u8>)>,
}

impl Sample {
    pub(super) fn new(size: u64) -> Self {
        let parts = Vec::new();
        Self { size, parts }
    }

    pub(super) fn add(&mut self, offset: u64, bytes: Vec<u8>) {
        self.parts.push((offset, bytes));
    }

    /// `length` bytes at `offset`, if they were read.
    pub(super) fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.parts.iter().find_map(|(start, bytes)| {
            let from = usize::try_from(offset.checked_sub(*start)?).ok()?;
            bytes.get(from..from.checked_add(length)?)
        })
    }

    pub(super) fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    pub(super) fn array<const N: usize>(&self, offset: u64) -> Option<[u8; N]> {
        self.at(offset, N)?.try_into().ok()
    }

    pub(super) fn le16(&self, offset: u64) -> Option<u16> {
        self.array(offset).map(u16::from_le_bytes)
    }

    pub(super) fn le32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_le_bytes)
    }

    pub(super) fn be32(&self, offset: u64) -> Option<u32> {
        self.array(offset).map(u32::from_be_bytes)
    }

    pub(super) fn le64(&self, offset: u64) -> Option<u64> {
        self.array(offset).map(u64::from_le_bytes)
    }

    pub(super) fn be64(&self, offset: u64) -> Option<u64> {
        self.array(offset).map(u64::from_be_bytes)
    }

    pub(super) fn first_not_zero(&self) -> Option<u64> {
        self.parts.iter().find_map(|(start, bytes)| {
            let at = bytes.iter().position(|byte| *byte != 0)?;
            Some(start + at as u64)
        })
    }
}
