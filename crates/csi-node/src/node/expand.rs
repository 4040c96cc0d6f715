//! NodeExpandVolume: the kernel reads the new size of the disk, and the file system grows to it.

use std::path::Path;

use csi_spec::NodeExpandVolumeResponse;
use grpc::{Code, Status};

use super::layers::{Number, device_of};
use super::request::Expand;
use super::{Machine, answers};
use crate::device::Disk;
use crate::filesystem::{self, Kind};
use crate::mount::{self, Options};
use crate::mountinfo::{self, Mount};
use crate::probe::{Content, Device, FileSystem, probe};

pub(super) fn expand(
    machine: &Machine<'_>,
    request: Expand,
) -> Result<NodeExpandVolumeResponse, Status> {
    let (volume, path) = (request.volume.as_str(), &mount::resolved(&request.path));
    let mounts = machine.mounts(volume)?;
    let place = place(path, request.staging.as_deref(), &mounts);
    let visible = Number::from_node(path);
    let number = match (place, &visible) {
        (Some(place), _) => device_of(place, &machine.options.dev),
        (None, Ok(Some(number))) => Some(*number),
        // For a block volume the kubelet may pass a directory of its own.
        (None, Ok(None)) if request.block => None,
        (None, _) => {
            let what = format!("it is not mounted at {}", path.display());
            return Err(answers::status(Code::NotFound, volume, what));
        }
    };
    let disk = machine.disk(volume, request.expected)?;
    let is_other = |number| machine.number(volume, &disk).map(|ours| ours != number);
    if number.map_or(Ok(place.is_some()), is_other)? {
        let what = format!("another device is mounted at {}", path.display());
        return Err(answers::status(Code::FailedPrecondition, volume, what));
    }
    if request.limit.is_some_and(|limit| disk.size > limit) {
        let what = format!("it has {} bytes already, more than limit_bytes", disk.size);
        return Err(answers::status(Code::OutOfRange, volume, what));
    }
    if let Some(place) = place
        && Kind::parse(&place.fs_type.to_string_lossy()).is_some()
    {
        let elsewhere = match number {
            Some(number) => machine.mounted_elsewhere(volume, &place.target, number)?,
            None => None,
        };
        // The kubelet also expands between staging and the first pod.
        let alone = request.options.as_ref();
        let alone = alone.filter(|options| elsewhere.is_none() && !options.is_read_only());
        machine.grow(volume, &disk, &place.target, alone)?;
    }
    Ok(NodeExpandVolumeResponse {
        capacity_bytes: i64::try_from(disk.size).unwrap_or(i64::MAX),
    })
}

/// Mount to grow: the staging mount if given, since the mount of a pod may be read-only.
fn place<'a>(path: &Path, staging: Option<&Path>, mounts: &'a [Mount]) -> Option<&'a Mount> {
    let at = |path: &Path| mountinfo::at(mounts, path).pop();
    let published = at(path)?;
    let staged = staging.and_then(|staging| at(&mount::resolved(staging)));
    // A block volume is staged without a mount.
    Some(staged.unwrap_or(published))
}

impl Machine<'_> {
    /// Grows the mounted file system at a path to its device, unless it already [covers](filesystem::covers) the
    /// device, and verifies the result.
    ///
    /// `alone`: options of the mount while nothing else uses it. If the kernel refuses to grow a mounted ext file
    /// system, the file system is unmounted, grown, and mounted again with these.
    pub(super) fn grow(
        &self,
        volume: &str,
        disk: &Disk,
        path: &Path,
        options: Option<&Options>,
    ) -> Result<(), Status> {
        let found = self.mounted(volume, disk, path)?;
        let Some(kind) = Kind::parse(found.kind) else {
            return Ok(());
        };
        if self.is_whole(volume, disk, path, &found)? {
            return Ok(());
        }
        let failed = |error| answers::program(volume, &disk.path, &error);
        match (filesystem::grow_mounted(kind, &disk.path, path), options) {
            (Err(_), Some(options)) if kind.is_ext() => {
                mount::unmount(path, false)
                    .map_err(|error| answers::system(volume, "unmount", path, &error))?;
                let grown = filesystem::grow_unmounted(kind, &disk.path);
                // Mount also after a failure: otherwise the next pod would write to the directory below.
                mount::mount(&disk.path, path, found.kind, options)
                    .map_err(|error| answers::system(volume, "mount it at", path, &error))?;
                grown.map_err(failed)?;
            }
            (grown, _) => grown.map_err(failed)?,
        }
        let found = self.mounted(volume, disk, path)?;
        if self.is_whole(volume, disk, path, &found)? {
            return Ok(());
        }
        let what = format!(
            "the file system on {} has grown and still does not cover its {} bytes: call again",
            disk.path.display(),
            disk.size
        );
        Err(answers::status(Code::Unavailable, volume, what))
    }

    /// Superblock, as the kernel has it in the page cache.
    fn mounted(&self, volume: &str, disk: &Disk, path: &Path) -> Result<FileSystem, Status> {
        let unknown = |what: String| {
            let node = disk.path.display();
            answers::status(Code::Unavailable, volume, format!("{node}: {what}"))
        };
        let device = Device::open_cached(&disk.path).map_err(|error| unknown(error.to_string()))?;
        match probe(&device) {
            Ok(Content::FileSystem(found)) => Ok(found),
            Ok(other) => {
                let at = path.display();
                Err(unknown(format!("it is mounted at {at} and has {other}")))
            }
            Err(error) => Err(unknown(error.to_string())),
        }
    }

    fn is_whole(
        &self,
        volume: &str,
        disk: &Disk,
        path: &Path,
        found: &FileSystem,
    ) -> Result<bool, Status> {
        let usage = filesystem::usage(path)
            .map_err(|error| answers::system(volume, "statvfs", path, &error))?;
        Ok(filesystem::covers(found, Some(usage.total), disk.size))
    }
}
