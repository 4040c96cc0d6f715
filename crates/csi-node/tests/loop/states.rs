//! Each state in which an earlier call, or somebody else, may have left a path.

use std::fs;

use csi_node::mount;
use grpc::Code;
use rustix::mount::MountFlags;

use crate::machine::{MIB, Machine, Volume, failure, isolated, run};

const SIZE: u64 = 64 * MIB;

fn staged(machine: &Machine) -> Volume {
    let volume = machine.volume(1, SIZE);
    machine.stage(&volume, "stage", "ext4").unwrap();
    volume
}

fn bind(machine: &Machine, source: &str, target: &str) {
    mount::bind(
        &machine.path(source),
        &machine.path(target),
        MountFlags::empty(),
    )
    .unwrap();
}

#[test]
fn stacked_mounts_become_one_and_all_go() {
    let name = "states::stacked_mounts_become_one_and_all_go";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = staged(machine);
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
        bind(machine, "stage", "pod");
        bind(machine, "stage", "pod");
        assert_eq!(machine.mounts("pod").len(), 3);
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
        assert_eq!(machine.mounts("pod").len(), 1);
        bind(machine, "stage", "pod");
        machine.unpublish(&volume, "pod").unwrap();
        assert!(!machine.path("pod").exists());
        // As the Go driver leaves a block volume.
        machine
            .publish(&volume, ("stage", "dev/b"), "block", false)
            .unwrap();
        let device = volume.device.strip_prefix("/").unwrap();
        mount::bind(&volume.device, &machine.path("dev/b"), MountFlags::empty()).unwrap();
        assert_eq!(machine.mounts("dev/b").len(), 2, "{}", device.display());
        machine
            .publish(&volume, ("stage", "dev/b"), "block", false)
            .unwrap();
        assert_eq!(machine.mounts("dev/b").len(), 1);
        machine.unpublish(&volume, "dev/b").unwrap();
        machine.unstage(&volume, "stage").unwrap();
    });
}

#[test]
fn a_call_that_stopped_half_way_is_completed() {
    let name = "states::a_call_that_stopped_half_way_is_completed";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = staged(machine);
        // Bound, and not yet read-only.
        fs::create_dir(machine.path("pod")).unwrap();
        bind(machine, "stage", "pod");
        machine
            .publish(&volume, ("stage", "pod"), "ext4", true)
            .unwrap();
        let mounts = machine.mounts("pod");
        assert!(mounts.len() == 1 && mounts[0].is_read_only(), "{mounts:?}");
        // Unmounted, and not yet removed.
        mount::unmount(&machine.path("pod"), false).unwrap();
        machine.unpublish(&volume, "pod").unwrap();
        assert!(!machine.path("pod").exists());
        // A directory or a file that waits for its mount.
        fs::create_dir(machine.path("pod")).unwrap();
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
        fs::write(machine.path("block"), "").unwrap();
        machine
            .publish(&volume, ("stage", "block"), "block", false)
            .unwrap();
        for target in ["pod", "block"] {
            assert_eq!(machine.mounts(target).len(), 1, "{target}");
            machine.unpublish(&volume, target).unwrap();
        }
    });
}

#[test]
fn a_volume_for_one_writer_is_published_once() {
    let name = "states::a_volume_for_one_writer_is_published_once";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = staged(machine);
        for (kind, first, second) in [
            ("rwop,ext4", "pod", "pod2"),
            ("rwop,block", "block", "block2"),
        ] {
            for _ in 0..2 {
                machine
                    .publish(&volume, ("stage", first), kind, false)
                    .unwrap();
            }
            let answer = machine.publish(&volume, ("stage", second), kind, false);
            failure(answer, Code::FailedPrecondition, "for one writer");
            assert!(!machine.path(second).exists());
            machine.unpublish(&volume, first).unwrap();
            machine
                .publish(&volume, ("stage", second), kind, false)
                .unwrap();
            machine.unpublish(&volume, second).unwrap();
        }
    });
}

/// As where `/var/lib/kubelet` is a bind mount of a larger disk: what is mounted in one is seen in the other.
#[test]
fn a_place_that_is_seen_by_two_paths_is_one() {
    let name = "states::a_place_that_is_seen_by_two_paths_is_one";
    isolated(name, &["mkfs.ext4", "mount"], |machine| {
        let script = "mkdir disk kubelet && mount --bind disk disk && mount --make-rshared disk && mount --bind disk kubelet";
        let bound = std::process::Command::new("sh")
            .args(["-c", script])
            .current_dir(machine.path(""))
            .status()
            .unwrap();
        assert!(bound.success());
        let volume = machine.volume(1, SIZE);
        for (kind, first, second) in [
            ("rwop,ext4", "kubelet/pod", "kubelet/pod2"),
            ("rwop,block", "kubelet/block", "kubelet/block2"),
        ] {
            for _ in 0..2 {
                machine.stage(&volume, "kubelet/stage", "ext4").unwrap();
                machine
                    .publish(&volume, ("kubelet/stage", first), kind, false)
                    .unwrap();
            }
            let answer = machine.publish(&volume, ("kubelet/stage", second), kind, false);
            failure(answer, Code::FailedPrecondition, "for one writer");
            machine.unpublish(&volume, first).unwrap();
        }
        machine.unstage(&volume, "kubelet/stage").unwrap();
        assert!(machine.mounts("disk/stage").is_empty());
    });
}

/// As where `/var/lib/kubelet` leads to a larger disk.
#[test]
fn a_path_through_a_link_is_the_place_that_it_leads_to() {
    let name = "states::a_path_through_a_link_is_the_place_that_it_leads_to";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = machine.volume(1, SIZE);
        fs::create_dir(machine.path("large")).unwrap();
        std::os::unix::fs::symlink("large", machine.path("kubelet")).unwrap();
        for _ in 0..2 {
            machine.stage(&volume, "kubelet/stage", "ext4").unwrap();
            let paths = ("kubelet/stage", "kubelet/pod");
            machine.publish(&volume, paths, "ext4", false).unwrap();
            machine
                .publish(&volume, ("kubelet/stage", "kubelet/block"), "block", false)
                .unwrap();
        }
        for path in ["stage", "pod", "block"] {
            let path = format!("large/{path}");
            assert_eq!(machine.mounts(&path).len(), 1, "{path}");
        }
        machine.stats(&volume, "kubelet/pod").unwrap();
        machine.expand(&volume, "kubelet/pod", SIZE).unwrap();
        for path in ["pod", "block"] {
            machine
                .unpublish(&volume, &format!("kubelet/{path}"))
                .unwrap();
            assert!(!machine.path(&format!("large/{path}")).exists());
        }
        machine.unstage(&volume, "kubelet/stage").unwrap();
        assert!(machine.mounts("large/stage").is_empty());
    });
}

/// After an error of the disk, ext4 goes on read-only.
#[test]
fn a_file_system_that_became_read_only_is_not_published_for_writing() {
    let name = "states::a_file_system_that_became_read_only_is_not_published_for_writing";
    isolated(name, &["mkfs.ext4", "mount"], |machine| {
        let volume = staged(machine);
        let stage = machine.path("stage");
        run("mount", &["-o", "remount,ro", stage.to_str().unwrap()]);
        let answer = machine.publish(&volume, ("stage", "pod"), "ext4", false);
        failure(answer, Code::FailedPrecondition, "is read-only at");
        machine
            .publish(&volume, ("stage", "pod"), "ext4", true)
            .unwrap();
    });
}

#[test]
fn what_is_wrong_with_a_volume_is_seen_on_its_node() {
    let name = "states::what_is_wrong_with_a_volume_is_seen_on_its_node";
    isolated(name, &["mkfs.ext4", "mount"], |machine| {
        let volume = staged(machine);
        for (path, readonly) in [("pod", false), ("reader", true)] {
            machine
                .publish(&volume, ("stage", path), "ext4", readonly)
                .unwrap();
        }
        let block = machine.volume(2, SIZE);
        machine
            .publish(&block, ("other", "dev/b"), "block", false)
            .unwrap();
        let none: [&str; 0] = [];
        for path in ["stage", "pod", "reader"] {
            assert_eq!(machine.health(&volume, path).unwrap(), none, "{path}");
        }
        assert_eq!(machine.health(&block, "dev/b").unwrap(), none);
        failure(
            machine.health(&volume, "elsewhere"),
            Code::NotFound,
            "nothing is mounted at",
        );
        // As after an error of the disk.
        rustix::mount::mount_remount(machine.path("pod"), MountFlags::RDONLY, "").unwrap();
        run(
            "mount",
            &[
                "-o",
                "remount,bind,rw",
                machine.path("pod").to_str().unwrap(),
            ],
        );
        let degraded = ["Degraded FileSystemReadOnly"];
        assert_eq!(machine.health(&volume, "pod").unwrap(), degraded);
        assert_eq!(machine.health(&volume, "reader").unwrap(), none);
        let gone = ["Inaccessible DiskGone"];
        machine.lose(&volume);
        machine.lose(&block);
        for (it, path) in [(&volume, "pod"), (&volume, "reader"), (&block, "dev/b")] {
            assert_eq!(machine.health(it, path).unwrap(), gone, "{path}");
        }
    });
}

#[test]
fn another_device_at_a_path_is_left_alone() {
    let name = "states::another_device_at_a_path_is_left_alone";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = staged(machine);
        let other = machine.volume(2, SIZE);
        machine.stage(&other, "other", "ext4").unwrap();
        let foreign = "another device is mounted at";
        let precondition = Code::FailedPrecondition;
        failure(
            machine.stage(&volume, "other", "ext4"),
            precondition,
            foreign,
        );
        machine
            .publish(&other, ("other", "pod"), "ext4", false)
            .unwrap();
        let answer = machine.publish(&volume, ("stage", "pod"), "ext4", false);
        failure(answer, precondition, foreign);
        let answer = machine.publish(&volume, ("other", "pod2"), "ext4", false);
        failure(answer, precondition, "another device is staged");
        let answer = machine.expand(&volume, "other", SIZE);
        failure(answer, precondition, foreign);
        machine
            .publish(&other, ("other", "block"), "block", false)
            .unwrap();
        let answer = machine.publish(&volume, ("stage", "block"), "block", false);
        failure(answer, precondition, foreign);
        for path in ["other", "pod", "block"] {
            assert_eq!(machine.mounts(path).len(), 1, "{path}");
        }
    });
}

#[test]
fn a_mount_of_a_device_that_is_gone_is_replaced() {
    let name = "states::a_mount_of_a_device_that_is_gone_is_replaced";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = staged(machine);
        let old = machine.volume(2, SIZE);
        machine.stage(&old, "old", "ext4").unwrap();
        machine
            .publish(&old, ("old", "pod"), "ext4", false)
            .unwrap();
        machine
            .publish(&old, ("old", "block"), "block", false)
            .unwrap();
        machine.lose(&old);
        for (path, kind) in [("pod", "ext4"), ("block", "block")] {
            machine
                .publish(&volume, ("stage", path), kind, false)
                .unwrap();
            assert_eq!(machine.mounts(path).len(), 1, "{path}");
            machine.unpublish(&volume, path).unwrap();
        }
        machine.stage(&volume, "old", "ext4").unwrap();
        assert_eq!(machine.mounts("old").len(), 1);
    });
}

#[test]
fn a_place_that_is_full_or_read_only_is_said_to_be() {
    let name = "states::a_place_that_is_full_or_read_only_is_said_to_be";
    isolated(name, &["mkfs.ext4", "mount"], |machine| {
        let volume = staged(machine);
        for (directory, options, words) in [
            ("full", "nr_inodes=1", "No space left"),
            ("kept", "ro", "Read-only file system"),
        ] {
            fs::create_dir(machine.path(directory)).unwrap();
            let path = machine.path(directory);
            run(
                "mount",
                &[
                    "-t",
                    "tmpfs",
                    "-o",
                    options,
                    "tmpfs",
                    path.to_str().unwrap(),
                ],
            );
            for (place, kind) in [("pod", "ext4"), ("block", "block")] {
                let target = format!("{directory}/{place}");
                let answer = machine.publish(&volume, ("stage", &target), kind, false);
                failure(answer, Code::Internal, words);
                machine.unpublish(&volume, &target).unwrap();
            }
        }
        let long = format!("stage{}", "/a".repeat(2100));
        let answer = machine.publish(&volume, ("stage", &long), "ext4", false);
        failure(answer, Code::InvalidArgument, "longer than 4095 bytes");
        let long = format!("long/{}", "a".repeat(300));
        let answer = machine.publish(&volume, ("stage", &long), "ext4", false);
        failure(answer, Code::Internal, "File name too long");
    });
}

#[test]
fn what_is_in_the_way_of_a_mount_stays() {
    let name = "states::what_is_in_the_way_of_a_mount_stays";
    isolated(name, &["mkfs.ext4"], |machine| {
        let volume = staged(machine);
        let precondition = Code::FailedPrecondition;
        fs::write(machine.path("file"), "data").unwrap();
        std::os::unix::fs::symlink("/etc", machine.path("link")).unwrap();
        for target in ["file", "link"] {
            let answer = machine.publish(&volume, ("stage", target), "ext4", false);
            failure(answer, precondition, "is no directory");
            failure(
                machine.unpublish(&volume, target),
                Code::Internal,
                "neither an empty file",
            );
        }
        fs::create_dir(machine.path("directory")).unwrap();
        let answer = machine.publish(&volume, ("stage", "directory"), "block", false);
        failure(answer, precondition, "is no file");
        assert_eq!(fs::read_to_string(machine.path("file")).unwrap(), "data");
        // A file that a pod holds open keeps its mount, which is not torn away.
        machine
            .publish(&volume, ("stage", "pod"), "ext4", false)
            .unwrap();
        let held = fs::File::create(machine.path("pod/held")).unwrap();
        failure(machine.unpublish(&volume, "pod"), precondition, "unmount");
        drop(held);
        machine.unpublish(&volume, "pod").unwrap();
    });
}
