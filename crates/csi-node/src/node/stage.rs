//! NodeStageVolume: the device of a volume is found, formatted if empty, and mounted once for all pods of the node.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use csi_spec::{NodeStageVolumeResponse, NodeUnstageVolumeResponse};
use grpc::{Code, Status};

use super::layers::Number;
use super::request::{Access, Stage, Unstage};
use super::{Machine, answers};
use crate::device::{self, Disk, Expected};
use crate::filesystem::{self, Kind};
use crate::format::{Decision, Refusal, Wanted, decide, mark};
use crate::mount::state::Then;
use crate::mount::{self, Options};
use crate::probe::{self, Content, Device, FileSystem, probe};

pub(super) fn stage(
    machine: &Machine<'_>,
    request: Stage,
) -> Result<NodeStageVolumeResponse, Status> {
    let path = &mount::resolved(&request.path);
    let disk = machine.disk(&request.volume, request.expected)?;
    let Access::Mount { kind, options } = &request.access else {
        // A block volume is published directly from its device.
        return Ok(NodeStageVolumeResponse {});
    };
    let volume = request.volume.as_str();
    let number = machine.number(volume, &disk)?;
    let plan = machine.plan(volume, path, number, options.is_read_only())?;
    machine.clear(volume, path, plan)?;
    let elsewhere = machine.mounted_elsewhere(volume, path, number)?;
    // A file system in use is not unmounted in order to grow.
    let alone = elsewhere.is_none().then_some(options);
    match plan.then {
        Then::Mount => {
            let found = prepare(machine, &request, &disk, (*kind, options), elsewhere)?;
            directory(volume, path)?;
            if alone.is_some_and(|options| !options.is_read_only()) {
                grow_first(volume, &disk, &found);
            }
            mount_at(volume, &disk, path, &found, options)?;
        }
        Then::RestrictToReading => {
            let flags = options.flags;
            mount::remount(path, flags)
                .map_err(|error| answers::system(volume, "remount", path, &error))?;
        }
        Then::Keep => {}
    }
    if request.grow && !options.is_read_only() {
        machine.grow(volume, &disk, path, alone)?;
    }
    Ok(NodeStageVolumeResponse {})
}

pub(super) fn unstage(
    machine: &Machine<'_>,
    request: Unstage,
) -> Result<NodeUnstageVolumeResponse, Status> {
    machine.unmount_all(&request.volume, &mount::resolved(&request.path))?;
    Ok(NodeUnstageVolumeResponse {})
}

/// File system on the device after any mkfs or repair, ready for a mount.
fn prepare(
    machine: &Machine<'_>,
    request: &Stage,
    disk: &Disk,
    (kind, options): (Kind, &Options),
    mounted: Option<PathBuf>,
) -> Result<FileSystem, Status> {
    let (volume, path) = (request.volume.as_str(), disk.path.as_path());
    let wanted = Wanted {
        kind,
        mode: request.mode,
        first_attach: request.first_attach,
        read_only: options.is_read_only(),
    };
    let held = held(machine, volume, disk)?;
    let over = match decide(&content(volume, path, kind), &wanted) {
        Decision::Mount(found) => {
            let cleared = mark::clear(path, volume);
            cleared.map_err(|error| answers::system(volume, "write to", path, &error))?;
            // A file system mounted elsewhere is dirty by nature, and must not be checked.
            if found.dirty == Some(true) && !wanted.read_only && mounted.is_none() {
                repair(volume, path, &found)?;
            }
            return Ok(found);
        }
        Decision::Refuse(why) => return Err(answers::refusal(volume, path, &why)),
        Decision::Make { over } => over,
    };
    let user = mounted.map(|at| format!("it is mounted at {}", at.display()));
    let user = user.or_else(|| Some(format!("{} is on top of it", disk.holder.as_ref()?)));
    if let Some(user) = user {
        return Err(answers::refusal(volume, path, &Refusal::NotUsable(user)));
    }
    // The device name may have moved to another disk since.
    let again = machine.devices.find(volume).ok().flatten();
    if again.as_ref() != Some(disk) {
        let why = Refusal::NotUsable("the device has changed while it was read".to_owned());
        return Err(answers::refusal(volume, path, &why));
    }
    tracing::info!(
        "volume {volume}: {} ({}) is formatted with {kind}",
        path.display(),
        disk.by
    );
    let written = |error| answers::system(volume, "write to", path, &error);
    mark::set(path, volume).map_err(written)?;
    filesystem::make(kind, path, over).map_err(|error| answers::program(volume, path, &error))?;
    mark::clear(path, volume).map_err(written)?;
    let content = content(volume, path, kind);
    drop(held);
    match content {
        Ok(Content::FileSystem(found)) => Ok(found),
        Ok(other) => {
            let what = format!("{} has {other} after it was formatted", path.display());
            Err(answers::status(Code::Internal, volume, what))
        }
        Err(error) => {
            let what = format!("{} after it was formatted: {error}", path.display());
            Err(answers::status(Code::Unavailable, volume, what))
        }
    }
}

/// Opens the device and keeps it open. Meanwhile the kernel gives its name to no other disk: the disk that was probed,
/// the one found again by serial, and the one that mkfs opens by name are the same.
fn held(machine: &Machine<'_>, volume: &str, disk: &Disk) -> Result<File, Status> {
    let unusable = |what: String| answers::refusal(volume, &disk.path, &Refusal::NotUsable(what));
    let file = File::open(&disk.path).map_err(|error| unusable(error.to_string()))?;
    let device = file
        .metadata()
        .map_err(|error| unusable(error.to_string()))?
        .rdev();
    let held = Number(rustix::fs::major(device), rustix::fs::minor(device));
    match machine.number(volume, disk)? == held {
        true => Ok(file),
        false => Err(unusable(
            "the device has changed while it was opened".to_owned(),
        )),
    }
}

/// Content of the device. A device with the mark of this volume and without other intact content is
/// [`Content::HalfFormatted`].
fn content(volume: &str, path: &Path, kind: Kind) -> Result<Content, probe::Error> {
    let unreadable = |source| probe::Error::Unreadable { offset: 0, source };
    let device = Device::open(path).map_err(unreadable)?;
    match probe(&device)? {
        Content::Unknown(_) | Content::Unfinished(_)
            if mark::is_there(&device, volume).map_err(unreadable)? =>
        {
            Ok(Content::HalfFormatted(kind.as_str()))
        }
        content => Ok(content),
    }
}

fn repair(volume: &str, path: &Path, found: &FileSystem) -> Result<(), Status> {
    let Some(kind) = Kind::parse(found.kind) else {
        return Ok(());
    };
    filesystem::repair(kind, path).map_err(|error| {
        let what = format!(
            "{}: {error}. Repair it by hand, with e2fsck on this node or on another that it is attached to",
            path.display()
        );
        answers::status(Code::FailedPrecondition, volume, what)
    })
}

/// Grows an ext file system before its first mount where the kernel lets nobody grow a mounted one: the kubelet expands
/// only after the pod has the volume. A failure does not fail the staging; a later NodeExpandVolume reports the size.
fn grow_first(volume: &str, disk: &Disk, found: &FileSystem) {
    let Some(kind) = Kind::parse(found.kind).filter(|kind| kind.is_ext()) else {
        return;
    };
    if filesystem::covers(found, None, disk.size) || filesystem::may_grow_mounted() {
        return;
    }
    if let Err(error) = filesystem::grow_unmounted(kind, &disk.path) {
        tracing::warn!(
            "volume {volume}: {} does not grow: {error}",
            disk.path.display()
        );
    }
}

fn mount_at(
    volume: &str,
    disk: &Disk,
    path: &Path,
    found: &FileSystem,
    options: &Options,
) -> Result<(), Status> {
    mount::mount(&disk.path, path, found.kind, options).map_err(|error| {
        let device = disk.path.display();
        let (kind, data) = (found.kind, &options.data);
        let what = format!("mount {device} ({kind}, options `{data}`) at");
        answers::system(volume, &what, path, &error)
    })
}

/// Creates the mount point, unless the caller has.
pub(super) fn directory(volume: &str, path: &Path) -> Result<(), Status> {
    if let Ok(metadata) = std::fs::symlink_metadata(path) {
        if metadata.is_dir() {
            return Ok(());
        }
        let what = format!("{} is no directory: remove it", path.display());
        return Err(answers::status(Code::FailedPrecondition, volume, what));
    }
    let created = DirBuilder::new().recursive(true).mode(0o750).create(path);
    created.map_err(|error| answers::system(volume, "create", path, &error))
}

impl Machine<'_> {
    /// Disk of a volume, once it has the expected size.
    pub(super) fn disk(&self, volume: &str, expected: Expected) -> Result<Disk, Status> {
        let mut pause = std::thread::sleep;
        device::wait(self.devices, volume, expected, self.patience, &mut pause)
            .map_err(|why| answers::unusable(volume, &why))
    }

    pub(super) fn number(&self, volume: &str, disk: &Disk) -> Result<Number, Status> {
        let node = disk.path.display();
        let what = match Number::from_node(&disk.path) {
            Ok(Some(number)) => return Ok(number),
            Ok(None) => format!("{node} is no block device"),
            Err(error) => format!("{node}: {error}"),
        };
        Err(answers::status(Code::Unavailable, volume, what))
    }
}
