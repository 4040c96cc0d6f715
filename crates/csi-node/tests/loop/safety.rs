//! Content of a device is not overwritten.

use std::fs::{self, File};
use std::process::{Command, Stdio};

use csi_node::context;
use csi_node::format::mark;
use csi_node::probe::{Content, Device, probe};
use grpc::Code;

use crate::machine::{MIB, Machine, Volume, failure, isolated, run, sized, with};

const SIZE: u64 = 64 * MIB;

/// Refused by each way to format, with every byte as before.
#[track_caller]
fn refused(machine: &Machine, volume: &Volume, code: Code, words: &str) {
    let before = volume.bytes();
    for mode in ["blank", "first-attach", "blkid"] {
        let change = with(context::FORMAT, mode);
        failure(
            machine.stage_with(volume, "stage", "ext4", change),
            code,
            words,
        );
    }
    assert!(volume.bytes() == before, "{words}: it was written to");
    assert!(machine.mounts("stage").is_empty());
}

#[test]
fn what_a_device_has_stays() {
    isolated("safety::what_a_device_has_stays", &["mkswap"], |machine| {
        let precondition = Code::FailedPrecondition;
        let luks = machine.volume(1, SIZE);
        luks.write(0, b"LUKS\xba\xbe\0\x02");
        refused(machine, &luks, precondition, "a LUKS header");
        let table = machine.volume(2, SIZE);
        table.write(512, b"EFI PART");
        refused(machine, &table, precondition, "a partition table (GPT)");
        let swap = machine.volume(3, SIZE);
        run("mkswap", &[swap.device.to_str().unwrap()]);
        refused(machine, &swap, precondition, "swap space");
        let lvm = machine.volume(4, SIZE);
        lvm.write(512, b"LABELONE");
        refused(machine, &lvm, precondition, "a physical volume of LVM");
    });
}

#[test]
fn another_file_system_stays() {
    let name = "safety::another_file_system_stays";
    isolated(name, &["mkfs.xfs", "mkfs.ext4"], |machine| {
        let volume = machine.volume(1, 512 * MIB);
        machine.stage(&volume, "stage", "xfs").unwrap();
        machine.unstage(&volume, "stage").unwrap();
        let words = "a file system of type xfs and ext4 is asked for";
        refused(machine, &volume, Code::FailedPrecondition, words);
    });
}

#[test]
fn unknown_data_are_formatted_only_if_the_class_says_so() {
    let name = "safety::unknown_data_are_formatted_only_if_the_class_says_so";
    isolated(name, &["mkfs.ext4"], |machine| {
        for (number, mode) in [(1, "first-attach"), (2, "blkid")] {
            let volume = machine.volume(number, SIZE);
            volume.write(SIZE - 100, b"somebody's");
            let before = volume.bytes();
            let answer = machine.stage(&volume, "stage", "ext4");
            failure(answer, Code::Unavailable, "cannot be known to be empty");
            if mode == "first-attach" {
                // It may have been attached before.
                let answer =
                    machine.stage_with(&volume, "stage", "ext4", with(context::FORMAT, mode));
                failure(answer, Code::Unavailable, "cannot be known to be empty");
            }
            assert!(volume.bytes() == before);
            let formatted = machine.stage_with(&volume, "stage", "ext4", |request| {
                with(context::FORMAT, mode)(request);
                let first = context::FIRST_ATTACH.to_owned();
                request.publish_context.insert(first, "true".to_owned());
            });
            formatted.unwrap();
            machine.unstage(&volume, "stage").unwrap();
        }
    });
}

#[test]
fn a_device_of_no_bytes_or_too_few_is_not_formatted() {
    let name = "safety::a_device_of_no_bytes_or_too_few_is_not_formatted";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, 0);
        let answer = machine.stage_with(&volume, "stage", "ext4", sized(SIZE));
        failure(answer, Code::Unavailable, "has 0 bytes");
        volume.grow(SIZE / 2);
        let answer = machine.stage_with(&volume, "stage", "ext4", sized(SIZE));
        failure(answer, Code::Unavailable, "should have 67108864");
        assert!(volume.bytes().iter().all(|byte| *byte == 0));
        volume.grow(SIZE);
        machine
            .stage_with(&volume, "stage", "ext4", sized(SIZE))
            .unwrap();
        machine.unstage(&volume, "stage").unwrap();
    });
}

#[test]
fn a_device_that_is_gone_is_not_found_and_comes_back() {
    let name = "safety::a_device_that_is_gone_is_not_found_and_comes_back";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        machine.lose(&volume);
        let answer = machine.publish(&volume, ("stage", "pod"), "ext4", false);
        failure(answer, Code::Unavailable, "is gone");
        let answer = machine.stage(&volume, "stage", "ext4");
        failure(answer, Code::Unavailable, "no disk of this machine");
        // Even while something uses it.
        let held = File::create(machine.path("stage/held")).unwrap();
        machine.unstage(&volume, "stage").unwrap();
        assert!(machine.mounts("stage").is_empty());
        drop(held);
    });
}

#[test]
fn a_dirty_file_system_is_repaired_and_a_broken_one_is_left() {
    let name = "safety::a_dirty_file_system_is_repaired_and_a_broken_one_is_left";
    isolated(name, &["mkfs.ext4", "e2fsck", "debugfs"], |machine| {
        let volume = machine.volume(1, SIZE);
        let device = volume.device.to_str().unwrap();
        machine.stage(&volume, "stage", "ext4").unwrap();
        fs::write(machine.path("stage/data"), "kept").unwrap();
        machine.unstage(&volume, "stage").unwrap();
        run("debugfs", &["-w", "-R", "ssv state 0", device]);
        assert!(is_dirty(&volume));
        machine.stage(&volume, "stage", "ext4").unwrap();
        assert_eq!(
            fs::read_to_string(machine.path("stage/data")).unwrap(),
            "kept"
        );
        machine.unstage(&volume, "stage").unwrap();
        assert!(!is_dirty(&volume));
        // The root directory is gone.
        run("debugfs", &["-w", "-R", "clri <2>", device]);
        run("debugfs", &["-w", "-R", "ssv state 2", device]);
        let answer = machine.stage(&volume, "stage", "ext4");
        failure(answer, Code::FailedPrecondition, "Repair it by hand");
        assert!(machine.mounts("stage").is_empty());
    });
}

fn is_dirty(volume: &Volume) -> bool {
    match probe(&Device::open(&volume.device).unwrap()).unwrap() {
        Content::FileSystem(found) => found.dirty == Some(true),
        other => panic!("it has {other}"),
    }
}

/// It is looked for when it is awaited, before it is formatted, and when it is published.
#[test]
fn a_device_that_vanishes_at_any_look_is_left_as_it_is() {
    let name = "safety::a_device_that_vanishes_at_any_look_is_left_as_it_is";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        for looks in 0..2 {
            machine.vanish_after(Some(looks));
            let answer = machine.stage(&volume, "stage", "ext4");
            assert_eq!(answer.unwrap_err().code, Code::Unavailable);
            assert!(volume.bytes().iter().all(|byte| *byte == 0));
            assert!(machine.mounts("stage").is_empty());
        }
        machine.vanish_after(Some(2));
        machine.stage(&volume, "stage", "ext4").unwrap();
        let answer = machine.publish(&volume, ("stage", "pod"), "ext4", false);
        failure(answer, Code::FailedPrecondition, "another device is staged");
        let answer = machine.expand(&volume, "stage", SIZE);
        failure(answer, Code::Unavailable, "no disk of this machine");
        machine.vanish_after(None);
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
    });
}

#[test]
fn a_device_with_another_one_on_top_is_shown_and_not_formatted() {
    let name = "safety::a_device_with_another_one_on_top_is_shown_and_not_formatted";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.put_on_top(Some("dm-7"));
        let answer = machine.stage(&volume, "stage", "ext4");
        failure(answer, Code::Unavailable, "dm-7 is on top of it");
        assert!(volume.bytes().iter().all(|byte| *byte == 0));
        machine.stage(&volume, "stage", "block").unwrap();
        machine
            .publish(&volume, ("stage", "block"), "block", false)
            .unwrap();
        machine.put_on_top(None);
        machine.stage(&volume, "stage", "ext4").unwrap();
    });
}

/// A second staging path, as after a change of the driver: mounted there, too, and neither checked nor formatted.
#[test]
fn a_volume_that_is_mounted_elsewhere_is_mounted_again() {
    let name = "safety::a_volume_that_is_mounted_elsewhere_is_mounted_again";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "old", "ext4").unwrap();
        machine
            .publish(&volume, ("old", "block"), "block", false)
            .unwrap();
        fs::write(machine.path("old/data"), "kept").unwrap();
        machine.stage(&volume, "new", "ext4").unwrap();
        assert_eq!(
            fs::read_to_string(machine.path("new/data")).unwrap(),
            "kept"
        );
        // It was wiped, and is still in use.
        rustix::fs::sync();
        volume.write(0, &vec![0; usize::try_from(SIZE).unwrap()]);
        let answer = machine.stage(&volume, "third", "ext4");
        failure(answer, Code::Unavailable, "it is mounted at");
    });
}

/// The plugin is ended at any moment while a program writes: the next call makes a whole file system.
#[test]
fn an_mkfs_that_was_ended_is_done_again() {
    let name = "safety::an_mkfs_that_was_ended_is_done_again";
    isolated(name, &["mkfs.ext4", "mkfs.xfs"], |machine| {
        let ways = ["ext4", "xfs"]
            .into_iter()
            .flat_map(|kind| [0, 1, 2, 4, 8, 16].map(|wait| (kind, wait)));
        for (number, (kind, wait)) in (1..).zip(ways) {
            let volume = machine.volume(number, 512 * MIB);
            mark::set(&volume.device, &volume.id).unwrap();
            // As the driver runs it: a program that discards first would take the mark with it.
            let keep: &[&str] = match kind {
                "xfs" => &["-K"],
                _ => &["-F", "-m0", "-E", "nodiscard"],
            };
            let mut mkfs = Command::new(format!("mkfs.{kind}"));
            let mkfs = mkfs
                .args(keep)
                .arg(&volume.device)
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            let mut mkfs = mkfs.spawn().unwrap();
            // Not to wait for it, but to end it somewhere.
            std::thread::sleep(std::time::Duration::from_millis(wait));
            mkfs.kill().unwrap();
            mkfs.wait().unwrap();
            machine.stage(&volume, "stage", kind).unwrap();
            fs::write(machine.path("stage/data"), "kept").unwrap();
            machine.unstage(&volume, "stage").unwrap();
            assert!(!mark::is_there(&Device::open(&volume.device).unwrap(), &volume.id).unwrap());
        }
    });
}

#[test]
fn the_mark_of_another_volume_says_nothing() {
    let name = "safety::the_mark_of_another_volume_says_nothing";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        mark::set(&volume.device, "another").unwrap();
        let before = volume.bytes();
        let answer = machine.stage(&volume, "stage", "ext4");
        failure(answer, Code::Unavailable, "cannot be known to be empty");
        assert!(volume.bytes() == before);
    });
}

/// One wrong byte of a superblock is no proof that nobody has data behind it.
#[test]
fn a_half_made_file_system_without_our_mark_stays() {
    let name = "safety::a_half_made_file_system_without_our_mark_stays";
    isolated(name, &["mkfs.xfs", "mkfs.btrfs"], |machine| {
        for (number, kind, at, byte) in [(1, "xfs", 126, 1), (2, "btrfs", (64 << 10) + 64, b'!')] {
            let volume = machine.volume(number, 512 * MIB);
            machine.stage(&volume, "stage", kind).unwrap();
            fs::write(machine.path("stage/data"), "kept").unwrap();
            machine.unstage(&volume, "stage").unwrap();
            volume.write(at, &[byte]);
            let before = volume.bytes();
            for mode in ["blank", "first-attach", "blkid"] {
                let change = with(context::FORMAT, mode);
                let answer = machine.stage_with(&volume, "stage", kind, change);
                failure(answer, Code::Unavailable, "did not begin it");
            }
            assert!(volume.bytes() == before, "{kind}");
            // With the mark it was ours.
            mark::set(&volume.device, &volume.id).unwrap();
            machine.stage(&volume, "stage", kind).unwrap();
            machine.unstage(&volume, "stage").unwrap();
        }
    });
}

/// The kernel gives the name of a disk that goes to the next one that comes, unless somebody has it open.
#[test]
fn a_device_is_held_from_the_look_before_it_is_formatted() {
    let name = "safety::a_device_is_held_from_the_look_before_it_is_formatted";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        // The first look awaits it.
        assert_eq!(machine.open_at_looks(), [false, true]);
        machine.unstage(&volume, "stage").unwrap();
    });
}
