//! A volume that has grown.

use std::fs;

use csi_node::context;
use csi_node::filesystem::usage;
use csi_node::probe::{Content, Device, probe};
use csi_spec::NodeStageVolumeRequest;
use csi_spec::volume_capability::AccessMode as Access;
use csi_spec::volume_capability::access_mode::Mode as AccessMode;
use grpc::Code;

use crate::machine::{MIB, Machine, failure, isolated, run, with};

const SIZE: u64 = 512 * MIB;

/// Grown while mounted, which the kernel of the machine must allow.
fn while_mounted(machine: &Machine, kind: &str) {
    let volume = machine.volume(1, SIZE);
    machine.stage(&volume, "stage", kind).unwrap();
    machine
        .publish(&volume, ("stage", "pod"), kind, false)
        .unwrap();
    fs::write(machine.path("pod/data"), "kept").unwrap();
    // The cloud says so, and the machine has not seen it.
    let answer = machine.expand(&volume, "pod", 2 * SIZE);
    failure(answer, Code::Unavailable, "has not seen it grow");
    volume.grow(2 * SIZE);
    for _ in 0..2 {
        assert_eq!(machine.expand(&volume, "pod", 2 * SIZE).unwrap(), 2 * SIZE);
        let total = usage(&machine.path("pod")).unwrap().total;
        assert!(total > SIZE * 3 / 2, "{total}");
    }
    assert_eq!(
        fs::read_to_string(machine.path("pod/data")).unwrap(),
        "kept"
    );
}

#[test]
fn xfs_grows_while_mounted() {
    let programs = ["mkfs.xfs", "xfs_growfs"];
    isolated("growth::xfs_grows_while_mounted", &programs, |machine| {
        while_mounted(machine, "xfs");
    });
}

#[test]
fn btrfs_grows_while_mounted() {
    let programs = ["mkfs.btrfs", "btrfs"];
    isolated("growth::btrfs_grows_while_mounted", &programs, |machine| {
        while_mounted(machine, "btrfs");
    });
}

/// A volume that was restored to a larger one; ext4 grows without being mounted where the kernel does not let it.
#[test]
fn a_restored_volume_grows_when_it_is_staged() {
    let name = "growth::a_restored_volume_grows_when_it_is_staged";
    let programs = ["mkfs.ext4", "resize2fs", "e2fsck"];
    isolated(name, &programs, |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        fs::write(machine.path("stage/data"), "kept").unwrap();
        machine.unstage(&volume, "stage").unwrap();
        volume.grow(2 * SIZE);
        for _ in 0..2 {
            let grow = with(context::RESIZE, "true");
            machine.stage_with(&volume, "stage", "ext4", grow).unwrap();
            assert_eq!(machine.mounts("stage").len(), 1);
            assert!(usage(&machine.path("stage")).unwrap().total > SIZE * 3 / 2);
        }
        assert_eq!(
            fs::read_to_string(machine.path("stage/data")).unwrap(),
            "kept"
        );
        machine.unstage(&volume, "stage").unwrap();
        let Content::FileSystem(found) = probe(&Device::open(&volume.device).unwrap()).unwrap()
        else {
            panic!("it has no file system");
        };
        assert_eq!(found.bytes, 2 * SIZE);
    });
}

/// The kubelet expands a volume that has grown between its staging and its first pod.
#[test]
fn a_staged_volume_grows_before_its_first_pod() {
    let name = "growth::a_staged_volume_grows_before_its_first_pod";
    let programs = ["mkfs.ext4", "resize2fs", "e2fsck"];
    isolated(name, &programs, |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        fs::write(machine.path("stage/data"), "kept").unwrap();
        volume.grow(2 * SIZE);
        for _ in 0..2 {
            let grown = machine.expand_staged(&volume, "stage", 2 * SIZE, "ext4");
            assert_eq!(grown.unwrap(), 2 * SIZE);
            assert_eq!(machine.mounts("stage").len(), 1);
            assert!(usage(&machine.path("stage")).unwrap().total > SIZE * 3 / 2);
        }
        let data = fs::read_to_string(machine.path("stage/data")).unwrap();
        assert_eq!(data, "kept");
        // A volume in use by a pod is not unmounted.
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
        volume.grow(3 * SIZE);
        if let Err(status) = machine.expand_staged(&volume, "stage", 3 * SIZE, "ext4") {
            assert!(status.message.contains("resize2fs failed"), "{status}");
        }
        for path in ["stage", "pod"] {
            assert_eq!(machine.mounts(path).len(), 1, "{path}");
        }
    });
}

/// The kubelet expands a volume when its pod has it. Where the kernel then lets nobody grow ext4, it has grown before.
#[test]
fn ext4_grows_before_it_is_mounted_where_it_may_not_grow_afterwards() {
    let name = "growth::ext4_grows_before_it_is_mounted_where_it_may_not_grow_afterwards";
    let programs = ["mkfs.ext4", "resize2fs", "e2fsck"];
    isolated(name, &programs, |machine| {
        let volume = machine.volume(1, SIZE);
        let publish = || machine.publish(&volume, ("stage", "pod"), "ext4", false);
        machine.stage(&volume, "stage", "ext4").unwrap();
        publish().unwrap();
        fs::write(machine.path("pod/data"), "kept").unwrap();
        volume.grow(2 * SIZE);
        if let Err(status) = machine.expand_staged(&volume, "stage", 2 * SIZE, "ext4") {
            assert!(status.message.contains("resize2fs failed"), "{status}");
        }
        machine.unpublish(&volume, "pod").unwrap();
        machine.unstage(&volume, "stage").unwrap();
        machine.stage(&volume, "stage", "ext4").unwrap();
        publish().unwrap();
        let grown = machine.expand_staged(&volume, "stage", 2 * SIZE, "ext4");
        assert_eq!(grown.unwrap(), 2 * SIZE);
        for path in ["stage", "pod"] {
            assert!(usage(&machine.path(path)).unwrap().total > SIZE * 3 / 2);
        }
        assert_eq!(
            fs::read_to_string(machine.path("pod/data")).unwrap(),
            "kept"
        );
    });
}

/// A reader's volume stays as it is.
#[test]
fn ext4_that_is_read_does_not_grow() {
    let name = "growth::ext4_that_is_read_does_not_grow";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        machine.unstage(&volume, "stage").unwrap();
        volume.grow(2 * SIZE);
        let reads = |it: &mut NodeStageVolumeRequest| {
            let mode = AccessMode::MultiNodeReaderOnly.into();
            it.volume_capability.as_mut().unwrap().access_mode = Some(Access { mode });
        };
        machine.stage_with(&volume, "stage", "ext4", reads).unwrap();
        assert!(usage(&machine.path("stage")).unwrap().total < SIZE);
    });
}

/// A kubelet that was restarted stages what its pods use.
#[test]
fn a_volume_in_use_stays_mounted_when_it_does_not_grow() {
    let name = "growth::a_volume_in_use_stays_mounted_when_it_does_not_grow";
    isolated(name, &["mkfs.ext4", "resize2fs"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
        volume.grow(2 * SIZE);
        let grow = with(context::RESIZE, "true");
        if let Err(status) = machine.stage_with(&volume, "stage", "ext4", grow) {
            assert!(status.message.contains("resize2fs failed"), "{status}");
        }
        for path in ["stage", "pod"] {
            assert_eq!(machine.mounts(path).len(), 1, "{path}");
        }
    });
}

/// `resize2fs` fails on a mounted ext4 here, and that is not success.
#[test]
fn growth_that_fails_is_no_success() {
    let name = "growth::growth_that_fails_is_no_success";
    isolated(name, &["mkfs.ext4", "resize2fs"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        volume.grow(2 * SIZE);
        let answer = machine.expand(&volume, "stage", 2 * SIZE);
        let total = usage(&machine.path("stage")).unwrap().total;
        match answer {
            Ok(size) => assert!(size == 2 * SIZE && total > SIZE),
            answer => {
                assert!(total < SIZE);
                failure(answer, Code::Internal, "resize2fs failed");
            }
        }
    });
}

/// A file system that e2fsck leaves to a person does not grow, and pods that have it go on.
#[test]
fn a_volume_whose_growth_fails_is_mounted_again() {
    let name = "growth::a_volume_whose_growth_fails_is_mounted_again";
    isolated(name, &["mkfs.ext4", "resize2fs", "debugfs"], |machine| {
        let volume = machine.volume(1, SIZE);
        machine.stage(&volume, "stage", "ext4").unwrap();
        for name in ["stage/data", "stage/broken"] {
            fs::write(machine.path(name), "kept").unwrap();
        }
        machine.unstage(&volume, "stage").unwrap();
        // e2fsck -p leaves a file of no type to a person.
        let device = volume.device.to_str().unwrap();
        run("debugfs", &["-w", "-R", "sif broken mode 0", device]);
        machine.stage(&volume, "stage", "ext4").unwrap();
        volume.grow(2 * SIZE);
        let answer = machine.expand_staged(&volume, "stage", 2 * SIZE, "ext4");
        let mounts = machine.mounts("stage");
        assert_eq!(mounts.len(), 1, "{answer:?}");
        assert_eq!(
            fs::read_to_string(machine.path("stage/data")).unwrap(),
            "kept"
        );
    });
}
