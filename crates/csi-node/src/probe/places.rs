//! Places of superblocks, tables and headers, and a [`Sample`] of their content.

use std::ops::Range;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Alignment of offsets and lengths for O_DIRECT that every device accepts.
pub(super) const BLOCK: u64 = 4 * KIB;

/// Unit of reading and of keeping. No magic crosses a multiple of it.
const PIECE: u64 = 256 * KIB;
/// Bytes at the start for the first look: the magic of anything with an intact start, and two labels of ZFS.
const START: u64 = 512 * KIB;
/// Bytes at the start for the second look: up to the last copy of a LUKS2 header, at 4 MiB.
const HEAD: u64 = 4 * MIB + 64 * KIB;
/// Bytes at the end: labels of ZFS (512 KiB, aligned to 256 KiB), RAID superblocks and the second GPT.
const TAIL: u64 = MIB;
/// Bytes of each copy inside the device.
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

/// Places for the first look, enough to recognise intact content.
pub(super) fn first(size: u64) -> Vec<Range<u64>> {
    merged(vec![0..START, tail(size)], size)
}

/// All places, including copies of superblocks.
pub(super) fn all(size: u64) -> Vec<Range<u64>> {
    let mut places = vec![0..HEAD, tail(size)];
    places.extend(COPIES.map(|at| at..at + COPY));
    // mkfs.xfs makes four groups on a device of up to 4 TiB.
    places.extend([1, 2, 3].map(|quarter| {
        let at = floor(size / 4 * quarter);
        at..at + COPY
    }));
    merged(places, size)
}

/// Splits a place at the multiples of a piece.
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

/// Sorts, clips to the device, and merges; offsets become multiples of [`BLOCK`].
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

/// Content of the places read so far.
pub(super) struct Sample {
    pub(super) size: u64,
    parts: Vec<Part>,
}

/// Piece of the device; without bytes if all are zero.
struct Part {
    place: Range<u64>,
    bytes: Vec<u8>,
}

/// At least as long as any magic.
static ZEROS: [u8; 64] = [0; 64];

impl Sample {
    pub(super) fn new(size: u64) -> Self {
        let parts = Vec::new();
        Self { size, parts }
    }

    /// True if the whole piece was read.
    pub(super) fn has_read(&self, piece: &Range<u64>) -> bool {
        self.parts.iter().any(|part| part.place == *piece)
    }

    /// Adds a piece; the bytes are dropped if all are zero.
    pub(super) fn add(&mut self, offset: u64, mut bytes: Vec<u8>) {
        let place = offset..offset + bytes.len() as u64;
        if bytes.iter().all(|byte| *byte == 0) {
            bytes = Vec::new();
        }
        self.parts.push(Part { place, bytes });
    }

    /// `length` bytes at `offset`; `None` unless all were read.
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

    /// True if the bytes at `offset` were read and are `magic`.
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

    /// Offset of the first byte other than zero.
    pub(super) fn first_not_zero(&self) -> Option<u64> {
        let places = self.parts.iter().filter_map(|part| {
            let at = part.bytes.iter().position(|byte| *byte != 0)?;
            Some(part.place.start + at as u64)
        });
        places.min()
    }
}
