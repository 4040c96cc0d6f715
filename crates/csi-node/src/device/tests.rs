use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;

const VOLUME: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

/// Directories with the files of some disks: (path below /sys/block, content).
fn machine(files: &[(&str, &[u8])]) -> (TempDir, Search) {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join("sys/block").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    fs::create_dir_all(root.path().join("dev/disk/by-id")).unwrap();
    let search = Search::new(root.path().join("sys"), root.path().join("dev"));
    (root, search)
}

fn link(root: &Path, link: &str, device: &str) {
    let device = root.join("dev").join(device);
    fs::write(&device, "").unwrap();
    let link = root.join("dev/disk").join(link);
    fs::create_dir_all(link.parent().unwrap()).unwrap();
    symlink(device, link).unwrap();
}

#[test]
fn a_disk_is_found_by_the_serial_of_each_bus() {
    let page = [&[0, 0x80, 0, 36], VOLUME.as_bytes()].concat();
    let wwid = b"naa.0A1b2c3d4e5f60718293a4b5c6d7e8f9\n";
    for (name, file, content) in [
        ("vdb", "serial", &b"0a1b2c3d-4e5f-6071-8"[..]),
        ("sda", "device/vpd_pg80", &page),
        ("sdb", "device/wwid", wwid),
        ("nvme1n1", "device/serial", b"0a1b2c3d-4e5f-6071-8\n"),
        ("nvme2n1", "device/serial", b"0a1b2c3d4e5f60718293\n"),
    ] {
        let file = format!("{name}/{file}");
        let size = format!("{name}/size");
        let (root, search) = machine(&[
            (&file, content),
            (&size, b"2097152\n"),
            ("vda/serial", b""),
            ("vda/size", b"8\n"),
            ("loop0/serial", content),
        ]);
        let disk = search.find(VOLUME).unwrap().unwrap();
        assert_eq!((disk.name.as_str(), disk.size), (name, 1 << 30));
        assert_eq!(disk.path, root.path().join("dev").join(name));
        assert!(
            search
                .find("0a1b2c3d-4e5f-6071-9293-a4b5c6d7e8f9")
                .unwrap()
                .is_none()
        );
    }
}

#[test]
fn a_short_or_empty_id_matches_no_cut_serial() {
    for (serial, volume, is) in [
        ("", "", false),
        ("", VOLUME, false),
        ("0a1b2c3d", VOLUME, false),
        ("0a1b2c3d-4e5f-6071-8", VOLUME, true),
        ("0a1b2c3d-4e5f-6071-82", VOLUME, false),
        ("0123456789", "0123456789", true),
        ("01234567", "0123456789", false),
        ("0123456789", "01234567890123456789012", false),
        (VOLUME, VOLUME, true),
    ] {
        assert_eq!(serial::is_of(serial, volume), is, "{serial} {volume}");
    }
}

#[test]
fn links_and_then_the_address_lead_to_a_disk_without_serial() {
    let (root, search) = machine(&[("sdc/size", b"16\n"), ("loop9/size", b"32\n")]);
    assert_eq!(search.find(VOLUME).unwrap(), None);
    let search = search.with_addresses(Arc::new(|volume| {
        (volume == VOLUME).then(|| ("scsi".to_owned(), "0:0:0:2".to_owned()))
    }));
    link(root.path(), "by-path/acpi-VMBUS:00-scsi-0:0:0:2", "sdc");
    link(root.path(), "by-path/acpi-VMBUS:00-scsi-0:0:0:1", "sdd");
    let disk = search.find(VOLUME).unwrap().unwrap();
    assert_eq!((disk.name.as_str(), disk.size), ("sdc", 8192));
    assert_eq!(disk.by, "address scsi 0:0:0:2");
    link(root.path(), "by-id/virtio-0a1b2c3d-4e5f-6071-8", "loop9");
    let disk = search.find(VOLUME).unwrap().unwrap();
    assert_eq!((disk.name.as_str(), disk.size), ("loop9", 16384));
}

#[test]
fn several_paths_are_used_through_the_multipath_device_that_holds_them() {
    let page = [&[0, 0x80, 0, 36], VOLUME.as_bytes()].concat();
    let (root, search) = machine(&[
        ("sda/device/vpd_pg80", &page),
        ("sdb/device/vpd_pg80", &page),
        ("sda/size", b"8\n"),
        ("sdb/size", b"8\n"),
        ("dm-0/size", b"8\n"),
        ("dm-0/dm/uuid", b"mpath-360\n"),
    ]);
    let error = search.find(VOLUME).unwrap_err();
    assert!(error.to_string().contains("sda, sdb"), "{error}");
    for path in ["sda", "sdb"] {
        let holder = root.path().join(format!("sys/block/{path}/holders/dm-0"));
        fs::create_dir_all(holder).unwrap();
    }
    assert_eq!(search.find(VOLUME).unwrap().unwrap().name, "dm-0");
    fs::write(root.path().join("sys/block/dm-0/dm/uuid"), "LVM-x\n").unwrap();
    // Devices that a pod has opened on the disks.
    let error = search.find(VOLUME).unwrap_err();
    assert!(error.to_string().contains("sda, sdb"), "{error}");
    fs::remove_dir_all(root.path().join("sys/block/sdb")).unwrap();
    let disk = search.find(VOLUME).unwrap().unwrap();
    assert_eq!(
        (disk.name.as_str(), disk.holder.as_deref()),
        ("sda", Some("dm-0"))
    );
}

#[test]
fn a_rescan_reaches_the_disk_and_every_bus() {
    let (root, search) = machine(&[("sda/size", b"0\n"), ("sda/device/rescan", b"")]);
    let host = root.path().join("sys/class/scsi_host/host0");
    fs::create_dir_all(&host).unwrap();
    let disk = search.disk_for_tests("sda");
    search.rescan(Some(&disk));
    let written = |path: &str| fs::read_to_string(root.path().join("sys").join(path)).unwrap();
    assert_eq!(written("class/scsi_host/host0/scan"), "- - -");
    assert_eq!(written("block/sda/device/rescan"), "1");
}

impl Search {
    fn disk_for_tests(&self, name: &str) -> Disk {
        Disk {
            name: name.to_owned(),
            path: name.into(),
            size: 0,
            by: String::new(),
            holder: None,
        }
    }
}

/// A disk that changes with each look.
struct Slow(Vec<Option<u64>>, AtomicUsize, AtomicUsize);

impl Devices for Slow {
    fn find(&self, _: &str) -> Result<Option<Disk>, Error> {
        let look = self.1.fetch_add(1, Ordering::Relaxed);
        let size = self.0[look.min(self.0.len() - 1)];
        Ok(size.map(|size| Disk {
            name: "vdb".to_owned(),
            path: "/dev/vdb".into(),
            size,
            by: String::new(),
            holder: None,
        }))
    }

    fn rescan(&self, _: Option<&Disk>) {
        self.2.fetch_add(1, Ordering::Relaxed);
    }

    fn buses(&self) -> Vec<Bus> {
        Vec::new()
    }

    fn exists(&self, _: u32, _: u32) -> bool {
        true
    }
}

#[test]
fn a_disk_is_awaited_until_it_has_its_size() {
    const GIB: u64 = 1 << 30;
    for (looks, expected, answer) in [
        (vec![Some(GIB)], Some(GIB), Ok(0)),
        (vec![None, Some(0), Some(GIB)], Some(GIB), Ok(2)),
        (vec![Some(GIB), Some(2 * GIB)], Some(2 * GIB), Ok(1)),
        (vec![Some(2 * GIB)], Some(GIB), Ok(0)),
        (vec![Some(GIB - (16 << 20))], Some(GIB), Ok(0)),
        (vec![Some(1)], None, Ok(0)),
        (vec![None], Some(GIB), Err("no disk of this machine")),
        (vec![Some(0)], None, Err("/dev/vdb has 0 bytes")),
        (
            vec![Some(GIB)],
            Some(2 * GIB),
            Err("should have 2147483648"),
        ),
    ] {
        let devices = Slow(looks, AtomicUsize::new(0), AtomicUsize::new(0));
        let mut slept = Duration::ZERO;
        let limit = Duration::from_secs(5);
        let size = Expected { size: expected };
        let found = wait(&devices, VOLUME, size, limit, &mut |step| slept += step);
        match answer {
            Ok(rescans) => {
                found.unwrap();
                assert_eq!(devices.2.load(Ordering::Relaxed), rescans);
            }
            Err(words) => {
                let error = found.unwrap_err().to_string();
                assert!(error.contains(words), "{error}");
                assert!(slept >= limit && slept < limit * 2, "{slept:?}");
            }
        }
    }
}

proptest! {
    #[test]
    fn pages_and_serials_of_any_kind_do_no_harm(page in proptest::collection::vec(any::<u8>(), 0..64), id in "\\PC*") {
        let serial = serial::of_page(&page).unwrap_or_default();
        serial::is_of(serial, &id);
        serial::is_wwn_of(serial, &id);
        prop_assert!(!serial::names(&id).is_empty());
    }
}
