use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const GIB: u64 = 1 << 30;

/// A device of zeros, but for some bytes.
struct Sparse {
    size: u64,
    bytes: BTreeMap<u64, Vec<u8>>,
    broken: Option<u64>,
}

fn sparse<const N: usize>(size: u64, bytes: [(u64, &[u8]); N]) -> Sparse {
    let bytes = bytes.map(|(at, bytes)| (at, bytes.to_vec()));
    Sparse {
        size,
        bytes: bytes.into(),
        broken: None,
    }
}

impl Blocks for Sparse {
    fn size(&self) -> u64 {
        self.size
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        assert!(end <= self.size, "read past the end");
        if self.broken.is_some_and(|at| (offset..end).contains(&at)) {
            return Err(io::Error::from_raw_os_error(5));
        }
        for (at, bytes) in &self.bytes {
            for (index, byte) in bytes.iter().enumerate() {
                let at = at + index as u64;
                if (offset..end).contains(&at) {
                    buffer[(at - offset) as usize] = *byte;
                }
            }
        }
        Ok(())
    }
}

#[test]
fn zeros_are_blank_whatever_the_size() {
    for size in [512, 4096, 1 << 20, GIB, 10 * GIB + 512, 1 << 42] {
        assert_eq!(probe(&sparse(size, [])).unwrap(), Content::Blank, "{size}");
    }
}

#[test]
fn a_device_of_no_bytes_is_not_blank() {
    assert!(matches!(probe(&sparse(0, [])), Err(Error::Empty)));
}

#[test]
fn a_place_that_cannot_be_read_is_no_zero() {
    let last = [4 << 20, GIB / 4, 64 << 20, 128 << 20];
    for at in [0, 65536, GIB - 1].into_iter().chain(last) {
        let mut device = sparse(GIB, []);
        device.broken = Some(at);
        let error = probe(&device).unwrap_err();
        assert!(matches!(error, Error::Unreadable { .. }), "{at}");
        assert!(error.to_string().contains("Input/output error"), "{error}");
    }
}

/// A superblock of ext with these features.
fn ext(compatible: u32, incompatible: u32, read_only: u32, state: u16) -> Vec<u8> {
    let mut block = vec![0; 1024];
    let mut put = |at: usize, bytes: &[u8]| block[at..at + bytes.len()].copy_from_slice(bytes);
    put(4, &(262_144_u32).to_le_bytes());
    put(24, &2_u32.to_le_bytes());
    put(56, &[0x53, 0xef]);
    put(58, &state.to_le_bytes());
    put(92, &compatible.to_le_bytes());
    put(96, &incompatible.to_le_bytes());
    put(100, &read_only.to_le_bytes());
    put(104, &[0x11; 16]);
    block
}

#[test]
fn generations_of_ext_are_told_apart_by_their_features() {
    for (features, kind, dirty) in [
        (ext(0, 0x2, 0x3, 1), "ext2", false),
        (ext(0x4, 0x2, 0x3, 1), "ext3", false),
        (ext(0x4, 0x6, 0x3, 1), "ext3", true),
        (ext(0x3c, 0x2c2, 0x46b, 1), "ext4", false),
        (ext(0x3c, 0x2c6, 0x46b, 1), "ext4", true),
        (ext(0x3c, 0x2c2, 0x46b, 3), "ext4", true),
        (ext(0, 0x42, 0x3, 0), "ext4", true),
    ] {
        let found = probe(&sparse(2 * GIB, [(1024, &features)])).unwrap();
        let Content::FileSystem(found) = found else {
            panic!("{found:?}");
        };
        assert_eq!((found.kind, found.dirty), (kind, Some(dirty)));
        assert_eq!(found.bytes, GIB);
        assert_eq!(found.uuid, "11111111-1111-1111-1111-111111111111");
    }
}

#[test]
fn a_file_system_that_mkfs_has_not_finished_says_so() {
    let mut xfs = b"XFSB".to_vec();
    xfs.resize(512, 0);
    xfs[126] = 1;
    let found = probe(&sparse(GIB, [(0, &xfs)])).unwrap();
    assert_eq!(found, Content::Unfinished("xfs"));
    let found = probe(&sparse(GIB, [(65536 + 64, b"!BHRfS_M")])).unwrap();
    assert_eq!(found, Content::Unfinished("btrfs"));
}

#[test]
fn what_is_no_file_system_of_ours_is_recognised() {
    use Content::*;
    let entry = [0x80, 0, 0, 0, 0x83, 0, 0, 0, 0, 8, 0, 0, 0, 0, 1, 0];
    let raid = 0xa92b_4efc_u32.to_le_bytes();
    let uber = 0x00ba_b10c_u64.to_be_bytes();
    for (device, content) in [
        (sparse(GIB, [(0, b"LUKS\xba\xbe\0\x01")]), Luks),
        (sparse(GIB, [(0x4000, b"SKUL\xba\xbe\0\x02")]), Luks),
        (sparse(GIB, [(4 << 20, b"SKUL\xba\xbe\0\x02")]), Luks),
        (sparse(GIB, [(512, b"EFI PART")]), Partitioned("GPT")),
        (sparse(GIB, [(GIB - 512, b"EFI PART")]), Partitioned("GPT")),
        (
            sparse(GIB, [(446, &entry), (510, b"\x55\xaa")]),
            Partitioned("MBR"),
        ),
        (sparse(GIB, [(510, b"\x55\xaa")]), Unknown(510)),
        (
            sparse(GIB, [(512, b"LABELONE")]),
            Other("a physical volume of LVM"),
        ),
        (sparse(GIB, [(4096, &raid)]), Other("a member of a RAID")),
        (
            sparse(GIB, [(GIB - 65536, &raid)]),
            Other("a member of a RAID"),
        ),
        (
            sparse(GIB, [(GIB - 8192, &raid)]),
            Other("a member of a RAID"),
        ),
        (
            sparse(GIB, [(GIB - 131_072, &uber)]),
            Other("a member of a ZFS pool"),
        ),
        (sparse(GIB, [(4086, b"SWAPSPACE2")]), Other("swap space")),
        (
            sparse(GIB, [(3, b"NTFS    ")]),
            Other("an NTFS file system"),
        ),
        (sparse(GIB, [(0, b"x")]), Unknown(0)),
        (sparse(GIB, [(GIB - 1, b"x")]), Unknown(GIB - 1)),
        // Copies of superblocks whose first one is gone.
        (
            sparse(GIB, [((128 << 20) + 56, b"\x53\xef")]),
            Unknown((128 << 20) + 56),
        ),
        (sparse(4 * GIB, [(GIB, b"XFSB")]), Unknown(GIB)),
        (
            sparse(GIB, [((64 << 20) + 64, b"_BHRfS_M")]),
            Unknown((64 << 20) + 64),
        ),
    ] {
        assert_eq!(probe(&device).unwrap(), content);
    }
}

#[test]
fn a_header_of_luks_wins_over_an_old_superblock() {
    let old = ext(0x3c, 0x2c2, 0x46b, 1);
    let device = sparse(GIB, [(0, b"LUKS\xba\xbe"), (1024, &old)]);
    assert_eq!(probe(&device).unwrap(), Content::Luks);
}

/// Content of users' files is no reason to refuse the file system around it.
#[test]
fn bytes_of_a_file_do_not_hide_its_file_system() {
    let whole = ext(0x3c, 0x2c2, 0x46b, 1);
    let raid = 0xa92b_4efc_u32.to_le_bytes();
    let uber = 0x00ba_b10c_u64.to_le_bytes();
    let firmware = 0xde11_de11_u32.to_be_bytes();
    for (at, bytes) in [
        (GIB - (128 << 10), &uber[..]),
        (300 << 10, &uber),
        (GIB - 65536, &raid),
        (GIB - 8192, &raid),
        (GIB - 512, &firmware),
        (GIB - 1024, b"Intel Raid ISM Cfg Sig."),
        (1 << 20, b"\x0d\xd0\x01\xc0"),
        (4 << 20, b"SKUL\xba\xbe\0\x02"),
    ] {
        let found = probe(&sparse(GIB, [(1024, &whole), (at, bytes)])).unwrap();
        assert!(matches!(found, Content::FileSystem(_)), "{at}: {found}");
    }
}

/// A member of something larger, whose content starts where the device does, ends before what identifies it.
#[test]
fn a_container_that_starts_with_its_file_system_is_recognised() {
    let raid = 0xa92b_4efc_u32.to_le_bytes();
    let inner = ext(0x3c, 0x2c2, 0x46b, 1);
    let size = GIB + (128 << 10);
    for at in [size - 65536, size - 8192] {
        let device = sparse(size, [(1024, &inner), (at, &raid)]);
        let found = probe(&device).unwrap();
        assert_eq!(found, Content::Other("a member of a RAID"));
    }
    // A superblock that zpool has left, and labels of a pool that are whole.
    let uber = 0x00ba_b10c_u64.to_be_bytes();
    let mut device = sparse(GIB, [(1024, &inner)]);
    for label in [0, 256 << 10, GIB - (512 << 10), GIB - (256 << 10)] {
        for index in 0..4 {
            let at = label + (128 << 10) + index * 1024;
            device.bytes.insert(at, uber.to_vec());
        }
    }
    let found = probe(&device).unwrap();
    assert_eq!(found, Content::Other("a member of a ZFS pool"));
    // Half of a superblock is none.
    let mut broken = inner.clone();
    broken[24] = 40;
    let device = sparse(GIB, [(1024, &broken), (GIB - 65536, &raid)]);
    assert_eq!(
        probe(&device).unwrap(),
        Content::Other("a member of a RAID")
    );
}

#[test]
fn a_file_is_read_at_any_offset_and_a_short_one_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("disk");
    let bytes: Vec<u8> = (0..10_000_u32).map(|n| (n % 251) as u8).collect();
    std::fs::write(&path, &bytes).unwrap();
    let device = Device::open(&path).unwrap();
    assert_eq!(device.size(), 10_000);
    for (offset, length) in [(0, 10_000), (1, 4096), (4095, 2), (9_999, 1), (5000, 5000)] {
        let mut buffer = vec![0; length];
        device.read(offset, &mut buffer).unwrap();
        let at = offset as usize;
        assert_eq!(buffer, bytes[at..at + length]);
    }
    let past = device.read(9_999, &mut [0; 2]).unwrap_err();
    assert_eq!(past.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn places_are_in_order_inside_and_do_not_overlap() {
    for size in [1, 4096, 5000, 4 << 20, GIB, 3 * GIB + 4096, 1 << 41] {
        let places = places::all(size);
        assert_eq!(places[0].start, 0);
        assert_eq!(places.last().unwrap().end, size);
        assert!(places.windows(2).all(|two| two[0].end < two[1].start));
        assert!(places.iter().all(|place| place.start % 4096 == 0));
        for place in places {
            let pieces: Vec<_> = places::pieces(place.clone()).collect();
            assert_eq!(pieces[0].start, place.start);
            assert_eq!(pieces.last().unwrap().end, place.end);
            assert!(pieces.windows(2).all(|two| two[0].end == two[1].start));
            assert!(
                pieces
                    .iter()
                    .all(|piece| piece.end - piece.start <= 256 << 10)
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is written at the start or the end, the device is not blank, and nothing panics.
    #[test]
    fn no_byte_of_a_small_device_is_overlooked(
        size in 1_u64..(5 << 20),
        at in 0_u64..(5 << 20),
        bytes in proptest::collection::vec(1_u8.., 1..300),
    ) {
        let at = at % size;
        let bytes: Vec<u8> = bytes.into_iter().take((size - at) as usize).collect();
        // From its end a device of 5 MiB is read without a gap.
        let device = sparse(size, [(at, &bytes)]);
        prop_assert_ne!(probe(&device).unwrap(), Content::Blank);
    }

    #[test]
    fn bytes_of_any_kind_end_in_an_answer(bytes in proptest::collection::vec(any::<u8>(), 1..70_000)) {
        let device = sparse(bytes.len() as u64, [(0, &bytes)]);
        prop_assert!(probe(&device).is_ok());
    }
}
