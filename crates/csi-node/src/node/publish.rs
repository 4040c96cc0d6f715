//! NodePublishVolume: a bind mount of the staged file system, or of the device, at the path of a pod.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use csi_spec::{NodePublishVolumeResponse, NodeUnpublishVolumeResponse};
use grpc::{Code, Status};
use rustix::mount::MountFlags;

use super::layers::{Number, device_of};
use super::request::{Access, Publish, Unpublish};
use super::stage::directory;
use super::{Machine, answers};
use crate::mount::state::Then;
use crate::mount::{self, Options};
use crate::mountinfo;

/// Bind-mounts the staged volume at the target. Repeating the call changes nothing.
pub(super) fn publish(
    machine: &Machine<'_>,
    request: Publish,
) -> Result<NodePublishVolumeResponse, Status> {
    let request = Publish {
        staging: mount::resolved(&request.staging),
        target: mount::resolved(&request.target),
        ..request
    };
    match &request.access {
        Access::Block => block(machine, &request)?,
        Access::Mount { .. } => filesystem(machine, &request)?,
    }
    Ok(NodePublishVolumeResponse {})
}

/// Unmounts all layers at the target and removes the mount point.
pub(super) fn unpublish(
    machine: &Machine<'_>,
    request: Unpublish,
) -> Result<NodeUnpublishVolumeResponse, Status> {
    let (volume, target) = (request.volume.as_str(), &mount::resolved(&request.target));
    machine.unmount_all(volume, target)?;
    remove(target).map_err(|error| answers::system(volume, "remove", target, &error))?;
    Ok(NodeUnpublishVolumeResponse {})
}

fn filesystem(machine: &Machine<'_>, request: &Publish) -> Result<(), Status> {
    let volume = request.volume.as_str();
    let (number, inherited) = staged(machine, request)?;
    let read_only = request.read_only || inherited.is_read_only();
    if inherited.is_read_only() && !request.read_only {
        let what = format!(
            "its file system is read-only at {}: see the log of the kernel, and unstage it",
            request.staging.display()
        );
        return Err(answers::status(Code::FailedPrecondition, volume, what));
    }
    let mut flags = inherited.flags;
    flags.set(MountFlags::RDONLY, read_only);
    let target = request.target.as_path();
    exclusive(machine, request, number)?;
    let plan = machine.plan(volume, target, number, read_only)?;
    machine.clear(volume, target, plan)?;
    let failed = |error| answers::system(volume, "mount it at", target, &error);
    match plan.then {
        Then::Mount => {
            directory(volume, target)?;
            let flags = if read_only {
                flags
            } else {
                MountFlags::empty()
            };
            mount::bind(&request.staging, target, flags).map_err(failed)
        }
        Then::RestrictToReading => mount::remount(target, flags).map_err(failed),
        Then::Keep => Ok(()),
    }
}

/// Staged device, and flags of the staging mount; the flags of the pod are added to these.
fn staged(machine: &Machine<'_>, request: &Publish) -> Result<(Number, Options), Status> {
    let (volume, staging) = (request.volume.as_str(), request.staging.as_path());
    let mounts = machine.mounts(volume)?;
    let Some(mount) = mountinfo::at(&mounts, staging).pop() else {
        let what = format!("it is not staged at {}: stage it first", staging.display());
        return Err(answers::status(Code::FailedPrecondition, volume, what));
    };
    let number = device_of(mount, &machine.options.dev);
    let found = number.filter(|Number(major, minor)| machine.devices.exists(*major, *minor));
    let Some(number) = found else {
        let what = format!(
            "the device staged at {} is gone: unstage it",
            staging.display()
        );
        return Err(answers::status(Code::Unavailable, volume, what));
    };
    let disk = machine.devices.find(volume);
    let disk = disk.map_err(|why| answers::unusable(volume, &why.into()))?;
    let same = match &disk {
        Some(disk) => machine.number(volume, disk)? == number,
        None => false,
    };
    if !same {
        let what = format!(
            "another device is staged at {}: unstage it",
            staging.display()
        );
        return Err(answers::status(Code::FailedPrecondition, volume, what));
    }
    let mut options = Options::parse(mount.options.iter().map(String::as_str));
    // The kernel may have made the file system read-only after an error.
    let read_only = mount.super_options.split(',').any(|option| option == "ro");
    options
        .flags
        .set(MountFlags::RDONLY, read_only || mount.is_read_only());
    Ok((number, options))
}

fn block(machine: &Machine<'_>, request: &Publish) -> Result<(), Status> {
    let (volume, target) = (request.volume.as_str(), request.target.as_path());
    let disk = machine.disk(volume, request.expected)?;
    let number = machine.number(volume, &disk)?;
    exclusive(machine, request, number)?;
    let plan = machine.plan(volume, target, number, request.read_only)?;
    machine.clear(volume, target, plan)?;
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::RDONLY, request.read_only);
    let failed = |error| answers::system(volume, "show its device at", target, &error);
    match plan.then {
        Then::Mount => {
            file(volume, target)?;
            mount::bind(&disk.path, target, flags).map_err(failed)
        }
        Then::RestrictToReading => mount::remount(target, flags).map_err(failed),
        Then::Keep => Ok(()),
    }
}

/// Refuses a second target for a volume with access mode `SINGLE_NODE_SINGLE_WRITER`.
fn exclusive(machine: &Machine<'_>, request: &Publish, device: Number) -> Result<(), Status> {
    if !request.exclusive {
        return Ok(());
    }
    let volume = request.volume.as_str();
    let mounts = machine.mounts(volume)?;
    let places = [&request.staging, &request.target];
    let is_place = |path: &Path| places.iter().any(|place| is_same_place(path, place));
    let mut others = mounts.iter().filter(|one| !is_place(&one.target));
    match others.find(|one| device_of(one, &machine.options.dev) == Some(device)) {
        None => Ok(()),
        Some(other) => {
            let what = format!(
                "it is for one writer, and is published at {}: unpublish it there first",
                other.target.display()
            );
            Err(answers::status(Code::FailedPrecondition, volume, what))
        }
    }
}

/// True if both paths are one place: if the kubelet's directory is a bind mount, mountinfo lists each mount in it
/// twice.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let parent = |path: &Path| fs::metadata(path.parent()?).ok();
    let is_same = || {
        let (one, other) = (parent(one)?, parent(other)?);
        Some((one.dev(), one.ino()) == (other.dev(), other.ino()))
    };
    one == other || one.file_name() == other.file_name() && is_same() == Some(true)
}

/// Creates an empty file, as mount point for a device node.
fn file(volume: &str, path: &Path) -> Result<(), Status> {
    if let Some(parent) = path.parent() {
        directory(volume, parent)?;
    }
    if let Ok(metadata) = fs::symlink_metadata(path) {
        if metadata.is_file() {
            return Ok(());
        }
        let what = format!("{} is no file: remove it", path.display());
        return Err(answers::status(Code::FailedPrecondition, volume, what));
    }
    let mut options = OpenOptions::new();
    let created = options.write(true).create_new(true).mode(0o660).open(path);
    created
        .map(drop)
        .map_err(|error| answers::system(volume, "create", path, &error))
}

/// Removes a mount point. A directory that is not empty, or a file with content, stays: neither was made by the driver.
fn remove(target: &Path) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(target) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    if metadata.is_dir() {
        fs::remove_dir(target)
    } else if metadata.is_file() && metadata.len() == 0 {
        fs::remove_file(target)
    } else {
        Err(io::Error::other(
            "it is neither an empty file nor a directory",
        ))
    }
}
