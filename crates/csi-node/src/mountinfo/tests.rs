use proptest::prelude::*;

use super::*;

#[test]
fn lines_have_any_number_of_optional_fields() {
    let content = b"\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw,errors=remount-ro\n\
36 35 98:0 /mnt1 /a\\040b\\134c rw,noatime master:1 shared:2 - ext3 /dev/root rw\n\
37 35 0:5 /vdb /target ro propagate_from:2 - devtmpfs  rw,size=4k\n";
    let mounts = parse(content).unwrap();
    assert_eq!(mounts.len(), 3);
    assert_eq!(mounts[1].target, Path::new("/a b\\c"));
    assert_eq!((mounts[1].major, mounts[1].minor), (98, 0));
    assert_eq!(mounts[1].root, Path::new("/mnt1"));
    assert_eq!(mounts[1].options, ["rw", "noatime"]);
    assert_eq!((mounts[2].id, mounts[2].parent), (37, 35));
    assert_eq!(mounts[2].source, "");
    assert_eq!(mounts[0].super_options, "rw,errors=remount-ro");
    assert!(mounts[2].is_read_only() && !mounts[1].is_read_only());
    assert_eq!(at(&mounts, Path::new("/a b\\c")), [&mounts[1]]);
}

#[test]
fn a_line_that_is_no_mount_is_named() {
    for (line, field) in [
        ("x", "id"),
        ("1", "parent"),
        ("1 2 3 / /", "device"),
        ("1 2 3:x / / rw - a b c", "device"),
        ("1 2 3:4 / / rw master:1", "separator"),
        ("1 2 3:4 / / rw -", "type"),
        ("1 2 3:4 / / rw - ext4", "source"),
        ("1 2 3:4 / / rw - ext4 x", "options of the file system"),
        ("1 2 3:4  / rw - ext4 x y", "root"),
        ("99999999999999999999 2 3:4 / / rw - a b c", "id"),
    ] {
        let content = format!("22 1 254:0 / / rw - ext4 /dev/vda rw\n{line}\n");
        let error = parse(content.as_bytes()).unwrap_err();
        assert_eq!(error, Malformed { line: 2, field }, "{line}");
    }
}

#[test]
fn the_mounts_of_this_machine_are_read() {
    let mounts = read().unwrap();
    assert!(!at(&mounts, Path::new("/")).is_empty());
}

/// As the kernel escapes.
fn escaped(bytes: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    for byte in bytes {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' | b'#' => line.extend(format!("\\{byte:03o}").bytes()),
            _ => line.push(*byte),
        }
    }
    line
}

proptest! {
    #[test]
    fn any_path_comes_back(bytes in proptest::collection::vec(1_u8.., 1..200)) {
        let mut line = b"1 2 3:4 / ".to_vec();
        line.extend(escaped(&bytes));
        line.extend(b" rw shared:1 - ext4 /dev/vda rw\n");
        let mounts = parse(&line).unwrap();
        prop_assert_eq!(&mounts[0].target, &PathBuf::from(OsString::from_vec(bytes)));
    }

    #[test]
    fn bytes_of_any_kind_end_in_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count();
        if let Ok(mounts) = parse(&bytes) {
            prop_assert_eq!(mounts.len(), lines);
        }
    }
}
