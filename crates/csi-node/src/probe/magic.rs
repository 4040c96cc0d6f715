//! Content other than file systems of the driver, by magic bytes.

use std::ops::Range;

use super::Content;
use super::places::Sample;

const KIB: u64 = 1 << 10;
const SECTOR: u64 = 512;

/// Containers, whose start may look like a file system: LUKS, RAID, LVM, ZFS. Magic bytes inside the range `files` may
/// belong to a file and do not count.
pub(super) fn container(sample: &Sample, files: &Range<u64>) -> Option<Content> {
    if is_luks(sample, files) {
        return Some(Content::Luks);
    }
    let lvm = (0..4).any(|sector| sample.has(sector * SECTOR, b"LABELONE"));
    let kind = if lvm {
        "a physical volume of LVM"
    } else if is_raid(sample, files) {
        "a member of a RAID"
    } else if is_zfs(sample, files) {
        "a member of a ZFS pool"
    } else {
        let mut outside = CONTAINERS.iter().filter(|it| !files.contains(&it.1));
        outside.find_map(|magic| magic.found(sample))?
    };
    Some(Content::Other(kind))
}

/// Other file systems and data.
pub(super) fn other(sample: &Sample) -> Option<Content> {
    let swap = [4, 8, 16, 32, 64].iter().any(|page| {
        let at = page * KIB - 10;
        let marks: [&[u8]; 4] = [b"SWAPSPACE2", b"SWAP-SPACE", b"S1SUSPEND\0", b"ULSUSPEND\0"];
        marks.iter().any(|mark| sample.has(at, mark))
    });
    let kind = if swap {
        "swap space"
    } else {
        OTHERS.iter().find_map(|magic| magic.found(sample))?
    };
    Some(Content::Other(kind))
}

pub(super) fn partitions(sample: &Sample) -> Option<Content> {
    // After the protective record, and at the end, for sectors of 512 and of 4096 bytes.
    let gpt = [SECTOR, 4 * KIB].iter().any(|sector| {
        sample.has(*sector, GPT) || sample.has(sample.size.wrapping_sub(*sector), GPT)
    });
    let kind = if gpt {
        "GPT"
    } else if is_dos(sample) {
        "MBR"
    } else {
        TABLES.iter().find_map(|magic| magic.found(sample))?
    };
    Some(Content::Partitioned(kind))
}

const GPT: &[u8] = b"EFI PART";

fn is_luks(sample: &Sample, files: &Range<u64>) -> bool {
    // Second header of LUKS2, at an offset that depends on the size of the first.
    let copies = (4..=12).map(|power| KIB << power);
    let mut copies = copies.filter(|at| !files.contains(at));
    sample.has(0, b"LUKS\xba\xbe") || copies.any(|at| sample.has(at, b"SKUL\xba\xbe"))
}

/// True with a superblock of Linux RAID (0.90 and 1.0 lie near the end) or of RAID firmware.
fn is_raid(sample: &Sample, files: &Range<u64>) -> bool {
    const LINUX: [u8; 4] = 0xa92b_4efc_u32.to_le_bytes();
    let size = sample.size;
    let has = |at: u64, magic: &[u8]| !files.contains(&at) && sample.has(at, magic);
    let old = (size & !(64 * KIB - 1)).checked_sub(64 * KIB);
    let late = size.checked_sub(8 * KIB).map(|at| at & !(4 * KIB - 1));
    let linux = [Some(0), Some(4 * KIB), old, late];
    linux.into_iter().flatten().any(|at| has(at, &LINUX))
        || has(size.wrapping_sub(SECTOR), &0xde11_de11_u32.to_be_bytes())
        || has(size.wrapping_sub(2 * SECTOR), b"Intel Raid ISM Cfg Sig.")
}

/// True with an uberblock in any of the four labels. Inside the range `files` of an intact file system, only two labels
/// with several uberblocks each count: the rest of a pool from before somebody overwrote its start.
fn is_zfs(sample: &Sample, files: &Range<u64>) -> bool {
    const MAGIC: u64 = 0x00ba_b10c;
    const SEVERAL: usize = 4;
    let label = 256 * KIB;
    let end = sample.size & !(label - 1);
    let labels = [
        Some(0),
        Some(label),
        end.checked_sub(2 * label),
        end.checked_sub(label),
    ];
    let labels = labels.into_iter().flatten().map(|start| {
        let places = (0..128).map(|index| start + 128 * KIB + index * KIB);
        let found = places
            .filter(|at| sample.le64(*at) == Some(MAGIC) || sample.be64(*at) == Some(MAGIC))
            .collect::<Vec<_>>();
        let outside = found.iter().any(|at| !files.contains(at));
        (outside, found.len())
    });
    let labels: Vec<_> = labels.collect();
    let full = labels.iter().filter(|(_, found)| *found >= SEVERAL);
    labels.iter().any(|(outside, _)| *outside) || full.count() >= 2
}

/// True for a boot record with a plausible partition entry; FAT and NTFS have the same signature, but no table.
fn is_dos(sample: &Sample) -> bool {
    const TABLE: u64 = 446;
    sample.has(510, &[0x55, 0xaa])
        && (0..4).any(|index| {
            let at = TABLE + index * 16;
            let boot = sample.array::<1>(at);
            let kind = sample.array::<1>(at + 4);
            matches!(boot, Some([0 | 0x80]))
                && kind != Some([0])
                && sample.le32(at + 12).is_some_and(|sectors| sectors > 0)
        })
}

/// Name of the content, offset, and magic bytes.
struct Magic(&'static str, u64, &'static [u8]);

impl Magic {
    fn found(&self, sample: &Sample) -> Option<&'static str> {
        let Self(kind, offset, bytes) = self;
        sample.has(*offset, bytes).then_some(*kind)
    }
}

#[rustfmt::skip]
const CONTAINERS: &[Magic] = &[
    Magic("a BitLocker volume", 3, b"-FVE-FS-"),
    Magic("a device of a Ceph cluster", 0, b"bluestore block device"),
    Magic("a device of bcache", 4096 + 24, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    Magic("a device of bcachefs", 4096 + 24, b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef"),
    Magic("a device of Stratis", 512 + 4, b"!Stra0tis\x86\xff\x02^\x41rh"),
    Magic("a device of VDO", 0, b"dmvdo001"),
    Magic("a VMFS volume", 1 << 20, &0xc001_d00d_u32.to_le_bytes()),
];

#[rustfmt::skip]
const OTHERS: &[Magic] = &[
    Magic("an APFS container", 32, b"NXSB"),
    Magic("a CramFS file system", 0, &0x28cd_3d45_u32.to_le_bytes()),
    Magic("an EROFS file system", 1024, &0xe0f5_e1e2_u32.to_le_bytes()),
    Magic("an exFAT file system", 3, b"EXFAT   "),
    Magic("an F2FS file system", 1024, &0xf2f5_2010_u32.to_le_bytes()),
    Magic("a FAT file system", 54, b"FAT12   "),
    Magic("a FAT file system", 54, b"FAT16   "),
    Magic("a FAT file system", 82, b"FAT32   "),
    Magic("a GFS2 file system", 65536, &0x0116_1970_u32.to_be_bytes()),
    Magic("an HFS+ file system", 1024, b"H+"),
    Magic("an HFS+ file system", 1024, b"HX"),
    Magic("an HFS file system", 1024, b"BD"),
    Magic("an ISO 9660 file system", 32769, b"CD001"),
    Magic("a JFS file system", 32768, b"JFS1"),
    Magic("a NILFS2 file system", 1024 + 6, &0x3434_u16.to_le_bytes()),
    Magic("an NTFS file system", 3, b"NTFS    "),
    Magic("an OCFS2 file system", 1024, b"OCFSV2"),
    Magic("an OCFS2 file system", 2048, b"OCFSV2"),
    Magic("an OCFS2 file system", 4096, b"OCFSV2"),
    Magic("an OCFS2 file system", 8192, b"OCFSV2"),
    Magic("a ReiserFS file system", 65536 + 52, b"ReIsEr"),
    Magic("a ReiserFS file system", 8192 + 52, b"ReIsEr"),
    Magic("a SquashFS file system", 0, b"hsqs"),
    Magic("a UDF file system", 32769, b"BEA01"),
    Magic("a UFS file system", 65536 + 1372, &0x0001_1954_u32.to_le_bytes()),
    Magic("a UFS file system", 8192 + 1372, &0x0001_1954_u32.to_le_bytes()),
    Magic("a UFS2 file system", 65536 + 1372, &0x1954_0119_u32.to_le_bytes()),
];

#[rustfmt::skip]
const TABLES: &[Magic] = &[
    Magic("BSD", 512, &0x8256_4557_u32.to_le_bytes()),
    Magic("BSD", 64, &0x8256_4557_u32.to_le_bytes()),
    Magic("Sun", 508, &[0xda, 0xbe]),
    Magic("Apple", 512, b"PM\0\0"),
];
