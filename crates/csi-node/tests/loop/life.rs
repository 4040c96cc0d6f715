//! A volume from its first attachment to its last, for each kind of file system, and as a block device.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};

use csi_spec::volume_usage::Unit;
use grpc::Code;

use crate::machine::{MIB, Machine, failure, is_empty, isolated, sized};

/// Large enough for XFS.
const SIZE: u64 = 512 * MIB;

fn life(machine: &Machine, kind: &str) {
    let volume = machine.volume(1, SIZE);
    for _ in 0..2 {
        machine
            .stage_with(&volume, "stage", kind, sized(SIZE))
            .unwrap();
        machine
            .publish(&volume, ("stage", "pods/a"), kind, false)
            .unwrap();
    }
    for path in ["stage", "pods/a"] {
        let mounts = machine.mounts(path);
        assert_eq!(mounts.len(), 1, "{path}");
        assert_eq!(mounts[0].fs_type, kind);
    }
    fs::write(machine.path("pods/a/data"), "kept").unwrap();

    let usage = machine.stats(&volume, "pods/a").unwrap();
    let bytes = usage.iter().find(|one| one.unit() == Unit::Bytes).unwrap();
    let total = u64::try_from(bytes.total).unwrap();
    assert!(total > SIZE / 2 && total <= SIZE, "{bytes:?}");
    assert!(
        bytes.used > 0 && bytes.used + bytes.available <= bytes.total,
        "{bytes:?}"
    );

    // A second pod reads it.
    machine
        .publish(&volume, ("stage", "pods/b"), kind, true)
        .unwrap();
    assert_eq!(
        fs::read_to_string(machine.path("pods/b/data")).unwrap(),
        "kept"
    );
    let error = fs::write(machine.path("pods/b/data"), "x").unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
    let answer = machine.publish(&volume, ("stage", "pods/b"), kind, false);
    failure(answer, Code::AlreadyExists, "read-only");

    for target in ["pods/a", "pods/b", "pods/a"] {
        machine.unpublish(&volume, target).unwrap();
        assert!(!machine.path(target).exists());
    }
    for _ in 0..2 {
        machine.unstage(&volume, "stage").unwrap();
        assert!(machine.mounts("stage").is_empty());
    }
    assert!(is_empty(&machine.path("stage")));

    // The next time it has its data, whatever the class says.
    let first = |request: &mut csi_spec::NodeStageVolumeRequest| {
        let format = csi_node::context::FORMAT.to_owned();
        request
            .volume_context
            .insert(format, "first-attach".to_owned());
        let first = csi_node::context::FIRST_ATTACH.to_owned();
        request.publish_context.insert(first, "true".to_owned());
    };
    machine.stage_with(&volume, "stage", kind, first).unwrap();
    assert_eq!(
        fs::read_to_string(machine.path("stage/data")).unwrap(),
        "kept"
    );
    machine.unstage(&volume, "stage").unwrap();
}

#[test]
fn ext4_lives() {
    isolated("life::ext4_lives", &["mkfs.ext4"], |machine| {
        life(machine, "ext4")
    });
}

#[test]
fn ext3_lives() {
    isolated("life::ext3_lives", &["mkfs.ext3"], |machine| {
        life(machine, "ext3")
    });
}

#[test]
fn ext2_lives() {
    isolated("life::ext2_lives", &["mkfs.ext2"], |machine| {
        life(machine, "ext2")
    });
}

#[test]
fn xfs_lives() {
    isolated("life::xfs_lives", &["mkfs.xfs"], |machine| {
        life(machine, "xfs")
    });
}

#[test]
fn btrfs_lives() {
    isolated("life::btrfs_lives", &["mkfs.btrfs"], |machine| {
        life(machine, "btrfs")
    });
}

/// A clone has the UUID of its source.
fn beside_its_clone(machine: &Machine, kind: &str) {
    let source = machine.volume(1, SIZE);
    machine.stage(&source, "source", kind).unwrap();
    fs::write(machine.path("source/data"), "of the source").unwrap();
    machine.unstage(&source, "source").unwrap();
    let clone = machine.volume(2, SIZE);
    clone.copy(&source);
    machine.stage(&source, "source", kind).unwrap();
    machine.stage(&clone, "clone", kind).unwrap();
    fs::write(machine.path("clone/data"), "of the clone").unwrap();
    let data = |path: &str| fs::read_to_string(machine.path(path)).unwrap();
    assert_eq!(data("source/data"), "of the source");
    assert_eq!(data("clone/data"), "of the clone");
}

#[test]
fn ext4_is_mounted_beside_its_clone() {
    let name = "life::ext4_is_mounted_beside_its_clone";
    isolated(name, &["mkfs.ext4"], |machine| {
        beside_its_clone(machine, "ext4")
    });
}

#[test]
fn xfs_is_mounted_beside_its_clone() {
    let name = "life::xfs_is_mounted_beside_its_clone";
    isolated(name, &["mkfs.xfs"], |machine| {
        beside_its_clone(machine, "xfs")
    });
}

#[test]
fn a_block_volume_is_shown_once_however_often_it_is_published() {
    let name = "life::a_block_volume_is_shown_once_however_often_it_is_published";
    isolated(name, &[], |machine| {
        let volume = machine.volume(1, SIZE);
        let before = volume.bytes();
        for _ in 0..3 {
            machine.stage(&volume, "stage", "block").unwrap();
            machine
                .publish(&volume, ("stage", "dev/a"), "block", false)
                .unwrap();
            machine
                .publish(&volume, ("stage", "dev/b"), "block", true)
                .unwrap();
        }
        let device = fs::metadata(&volume.device).unwrap().rdev();
        for target in ["dev/a", "dev/b"] {
            assert_eq!(machine.mounts(target).len(), 1);
            let metadata = fs::metadata(machine.path(target)).unwrap();
            assert!(metadata.file_type().is_block_device());
            assert_eq!(metadata.rdev(), device);
            let usage = machine.stats(&volume, target).unwrap();
            assert_eq!(usage.len(), 1);
            assert_eq!(usage[0].total, i64::try_from(SIZE).unwrap());
        }
        volume.grow(2 * SIZE);
        assert_eq!(
            machine.expand(&volume, "dev/a", 2 * SIZE).unwrap(),
            2 * SIZE
        );
        for target in ["dev/a", "dev/b", "dev/a"] {
            machine.unpublish(&volume, target).unwrap();
            assert!(!machine.path(target).exists());
        }
        machine.unstage(&volume, "stage").unwrap();
        // Nothing was written to it.
        assert!(volume.bytes().starts_with(&before));
    });
}

#[test]
fn flags_of_a_mount_reach_the_kernel() {
    let name = "life::flags_of_a_mount_reach_the_kernel";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        let kind = "ext4,noatime,nosuid,commit=30,_netdev";
        machine.stage(&volume, "stage", kind).unwrap();
        let mount = &machine.mounts("stage")[0];
        for option in ["noatime", "nosuid"] {
            assert!(mount.options.iter().any(|one| one == option), "{mount:?}");
        }
        assert!(mount.super_options.contains("commit=30"), "{mount:?}");
        // A read-only view keeps them.
        machine
            .publish(&volume, ("stage", "pod"), kind, true)
            .unwrap();
        let mount = &machine.mounts("pod")[0];
        for option in ["ro", "noatime", "nosuid"] {
            assert!(mount.options.iter().any(|one| one == option), "{mount:?}");
        }
        machine.unpublish(&volume, "pod").unwrap();
        machine.unstage(&volume, "stage").unwrap();
        let answer = machine.stage(&volume, "stage", "ext4,no-such-option");
        failure(answer, Code::Internal, "no-such-option");
    });
}
