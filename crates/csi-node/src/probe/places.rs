//! Where superblocks, tables and headers lie, and what was read there.

use std::ops::Range;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// What O_DIRECT wants offsets and lengths to be multiples of, on any device of today.
pub(super) const BLOCK: u64 = 4 * KIB;

/// What is read at once, and kept or not as a whole. No magic crosses a multiple of it.
const PIECE: u64 = 256 * KIB;
/// From the start: what identifies anything whose start is not lost, and two labels of ZFS.
const START: u64 = 512 * KIB;
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

/// The places that identify what is whole.
pub(super) fn first(size: u64) -> Vec<Range<u64>> {
    merged(vec![0..START, tail(size)], size)
}

/// All places, also of copies.
pub(super) fn all(size: u64) -> Vec<Range<u64>> {
    let mut places = vec![0..HEAD, tail(size)];
    places.extend(COPIES.map(|at| at..at + COPY));
    // mkfs.xfs makes four groups of a device of up to 4 TiB.
    places.extend([1, 2, 3].map(|quarter| {
        let at = floor(size / 4 * quarter);
        at..at + COPY
    }));
    merged(places, size)
}

/// The parts of a place between multiples of a piece.
pub(super) fn pieces(place: Range<u64>) -> impl Iterator<Item = Range<u64>> {
    let next = |at: u64| (at / PIECE + 1) * PIECE;
    let starts = std::iter::successors(Some(place.start), move |at| Some(next(*at)));
    let end = place.end;
    let starts = starts.take_while(move |at| *at < end);
    starts.map(move |at| at..next(at).min(end))
}

fn tail(size: u64) -> Range<u64> {
    floor(size.saturating_sub(TAIL))..size
}

/// In order, inside the device, without overlap; offsets are multiples of [`BLOCK`].
fn merged(places: Vec<Range<u64>>, size: u64) -> Vec<Range<u64>> {
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
    parts: Vec<Part>,
}

/// A piece; of one that is zero nothing is kept.
struct Part {
    place: Range<u64>,
    bytes: Vec<u8>,
}

/// As many as any magic has.
static ZEROS: [u8; 64] = [0; 64];

impl Sample {
    pub(super) fn new(size: u64) -> Self {
        let parts = Vec::new();
        Self { size, parts }
    }

    pub(super) fn has_read(&self, piece: &Range<u64>) -> bool {
        self.parts.iter().any(|part| part.place == *piece)
    }

    pub(super) fn add(&mut self, offset: u64, mut bytes: Vec<u8>) {
        let place = offset..offset + bytes.len() as u64;
        if bytes.iter().all(|byte| *byte == 0) {
            bytes = Vec::new();
        }
        self.parts.push(Part { place, bytes });
    }

    /// `length` bytes at `offset`, if they were read.
    pub(super) fn at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        self.parts.iter().find_map(|part| {
            let from = offset.checked_sub(part.place.start)?;
            let inside = offset.checked_add(length as u64)? <= part.place.end;
            if part.bytes.is_empty() && inside {
                return ZEROS.get(..length);
            }
            let from = usize::try_from(from).ok()?;
            part.bytes.get(from..from.checked_add(length)?)
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
        let places = self.parts.iter().filter_map(|part| {
            let at = part.bytes.iter().position(|byte| *byte != 0)?;
            Some(part.place.start + at as u64)
        });
        places.min()
    }
}
