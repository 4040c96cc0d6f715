//! NodeGetVolumeHealth: the disk of a volume and its file system, as this machine sees both.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use csi_spec::VolumeHealthErrorType as Status;
use csi_spec::volume_health::VolumeHealthEntry as Entry;
use csi_spec::{NodeGetVolumeHealthResponse, VolumeHealth};
use grpc::Code;

use super::layers::{Number, device_of, is_of_device};
use super::request::Health;
use super::{Machine, answers};
use crate::mountinfo::Mount;
use crate::probe::{Blocks, Device};
use crate::{filesystem, mount, mountinfo};

/// Options of a file system that the kernel has shut down after an error.
const STOPPED: &[&str] = &["shutdown"];
/// Options of a file system that the kernel has made read-only after an error.
const READ_ONLY: &[&str] = &["ro", "emergency_ro"];

pub(super) fn health(
    machine: &Machine<'_>,
    request: Health,
) -> Result<NodeGetVolumeHealthResponse, grpc::Status> {
    let (volume, path) = (request.volume.as_str(), &mount::resolved(&request.path));
    let mounts = machine.mounts(volume)?;
    let Some(seen) = mountinfo::at(&mounts, path).pop() else {
        let what = format!("nothing is mounted at {}", path.display());
        return Err(answers::status(Code::NotFound, volume, what));
    };
    let entry = match is_gone(machine, seen) {
        true => Some(entry(
            Status::Inaccessible,
            "DiskGone",
            format!(
                "the disk that is mounted at {} is not there any more",
                path.display()
            ),
        )),
        false => of_device(path).or_else(|| of_file_system(seen, path)),
    };
    Ok(NodeGetVolumeHealthResponse {
        volume_health: Some(VolumeHealth {
            volume_id: request.volume,
            health_statuses: entry.into_iter().collect(),
        }),
    })
}

fn is_gone(machine: &Machine<'_>, mount: &Mount) -> bool {
    match device_of(mount, &machine.options.dev) {
        Some(Number(major, minor)) => !machine.devices.exists(major, minor),
        None => is_of_device(mount),
    }
}

/// Finding about a block volume, whose pod has the device itself. `None` if healthy.
fn of_device(path: &Path) -> Option<Entry> {
    let is_device = fs::metadata(path).is_ok_and(|it| it.file_type().is_block_device());
    if !is_device {
        return None;
    }
    let inaccessible = |reason, message| Some(entry(Status::Inaccessible, reason, message));
    match Device::open(path) {
        Ok(device) if device.size() > 0 => None,
        Ok(_) => inaccessible("DiskEmpty", format!("{} has 0 bytes", path.display())),
        Err(error) => inaccessible("DiskUnreadable", format!("{}: {error}", path.display())),
    }
}

fn of_file_system(mount: &Mount, path: &Path) -> Option<Entry> {
    let has = |wanted: &[&str]| {
        let mut options = mount.super_options.split(',');
        options.any(|option| wanted.contains(&option))
    };
    let at = path.display();
    if has(STOPPED) {
        let message = format!(
            "the kernel has stopped the file system at {at} after an error; its log says why"
        );
        return Some(entry(Status::Inaccessible, "FileSystemStopped", message));
    }
    // A file system that was mounted read-only has the option anyway.
    if has(READ_ONLY) && !mount.is_read_only() {
        let message = format!(
            "the file system at {at} became read-only, as the kernel makes it after an error; its log says why"
        );
        return Some(entry(Status::Degraded, "FileSystemReadOnly", message));
    }
    filesystem::usage(path).err().map(|error| {
        entry(
            Status::Inaccessible,
            "FileSystemUnreadable",
            format!("{at}: {error}"),
        )
    })
}

fn entry(status: Status, reason: &str, message: String) -> Entry {
    Entry {
        status: status.into(),
        reason: reason.to_owned(),
        message,
    }
}
