//! Superblocks of the file systems that the driver makes: ext2 to ext4, XFS, btrfs.

use std::ops::Range;

use super::Content;
use super::places::Sample;

/// File system of a type that the driver can mount and grow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileSystem {
    /// Type, as for `mount -t`.
    pub kind: &'static str,
    /// UUID in lower case, with dashes.
    pub uuid: String,
    /// True if not cleanly unmounted, or with errors. `None` for XFS and btrfs: only the kernel can tell.
    pub dirty: Option<bool>,
    /// Bytes of the device that the file system covers.
    pub bytes: u64,
    /// Bytes of these that `statvfs` does not count: the log of XFS.
    pub log: u64,
}

pub(super) fn recognise(sample: &Sample) -> Option<Content> {
    ext(sample)
        .or_else(|| xfs(sample))
        .or_else(|| btrfs(sample))
}

/// Range that may contain files. Empty if the superblock does not fit the device.
pub(super) fn files(found: &FileSystem, device: u64) -> Range<u64> {
    // Before this offset are superblock, group descriptors, and space that btrfs reserves for boot loaders.
    const FIRST: u64 = 64 << 10;
    match found.bytes <= device {
        true => FIRST..found.bytes,
        false => 0..0,
    }
}

fn ext(sample: &Sample) -> Option<Content> {
    const AT: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    const RECOVER: u32 = 0x4;
    const WIDE: u32 = 0x80;
    // Features that ext2 has, and ext3 besides RECOVER: filetype, meta_bg; sparse_super, large_file, btree_dir.
    const INCOMPATIBLE: u32 = 0x2 | 0x10;
    const READ_ONLY: u32 = 0x1 | 0x2 | 0x4;
    const CLEAN: u16 = 1;
    const ERRORS: u16 = 2;
    (sample.le16(AT + 56)? == 0xef53).then_some(())?;
    let state = sample.le16(AT + 58)?;
    let (compatible, incompatible, read_only) = (
        sample.le32(AT + 92)?,
        sample.le32(AT + 96)?,
        sample.le32(AT + 100)?,
    );
    if incompatible & JOURNAL_DEVICE != 0 {
        return Some(Content::Other("an external journal of ext4"));
    }
    let journal = compatible & HAS_JOURNAL != 0;
    let old = incompatible & !(INCOMPATIBLE | RECOVER) == 0 && read_only & !READ_ONLY == 0;
    let kind = match (old, journal) {
        (true, false) => "ext2",
        (true, true) => "ext3",
        (false, _) => "ext4",
    };
    let high = if incompatible & WIDE == 0 {
        0
    } else {
        u64::from(sample.le32(AT + 336)?)
    };
    let blocks = high << 32 | u64::from(sample.le32(AT + 4)?);
    let block = 1024_u64.checked_shl(sample.le32(AT + 24)?)?;
    let dirty = state & CLEAN == 0 || state & ERRORS != 0 || incompatible & RECOVER != 0;
    Some(Content::FileSystem(FileSystem {
        kind,
        uuid: uuid(sample.array(AT + 104)?),
        dirty: Some(dirty),
        bytes: blocks.saturating_mul(block),
        log: 0,
    }))
}

fn xfs(sample: &Sample) -> Option<Content> {
    sample.has(0, b"XFSB").then_some(())?;
    // mkfs.xfs sets the flag first and clears it last.
    if sample.array::<1>(126)? != [0] {
        return Some(Content::Unfinished("xfs"));
    }
    let block = u64::from(sample.be32(4)?);
    Some(Content::FileSystem(FileSystem {
        kind: "xfs",
        uuid: uuid(sample.array(32)?),
        dirty: None,
        bytes: sample.be64(8)?.saturating_mul(block),
        log: u64::from(sample.be32(96)?).saturating_mul(block),
    }))
}

fn btrfs(sample: &Sample) -> Option<Content> {
    const AT: u64 = 64 << 10;
    // Magic of a superblock until mkfs.btrfs has finished.
    if sample.has(AT + 64, b"!BHRfS_M") {
        return Some(Content::Unfinished("btrfs"));
    }
    sample.has(AT + 64, b"_BHRfS_M").then_some(())?;
    Some(Content::FileSystem(FileSystem {
        kind: "btrfs",
        uuid: uuid(sample.array(AT + 32)?),
        dirty: None,
        // Size of this device's item: the file system may span several devices.
        bytes: sample.le64(AT + 0xc9 + 8)?,
        log: 0,
    }))
}

fn uuid(bytes: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}
