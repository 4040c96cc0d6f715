//! Mounts at a path, compared with the device of a volume as [`Layer`]s.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use grpc::{Code, Status};

use super::{Machine, answers, is_ours};
use crate::context::DRIVER;
use crate::mount::state::{Layer, Plan};
use crate::mount::{self, state};
use crate::mountinfo::{self, Mount};

/// Major and minor number of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Number(pub(super) u32, pub(super) u32);

impl Number {
    /// Number of the device at a device node; `None` if the file is no block device.
    pub(super) fn from_node(node: &Path) -> io::Result<Option<Self>> {
        let metadata = fs::metadata(node)?;
        let device = metadata.rdev();
        let is_block = metadata.file_type().is_block_device();
        Ok(is_block.then(|| Self(rustix::fs::major(device), rustix::fs::minor(device))))
    }
}

/// Number of the device of a mount. btrfs has anonymous numbers, so the path of its device counts; for a bind-mounted
/// device node, the name in devtmpfs counts.
pub(super) fn device_of(mount: &Mount, dev: &Path) -> Option<Number> {
    let at = |path: &Path| Number::from_node(path).ok().flatten();
    if mount.major != 0 {
        return Some(Number(mount.major, mount.minor));
    }
    let source = Path::new(&mount.source);
    match mount.fs_type.to_str() {
        Some("devtmpfs" | "tmpfs") => at(&dev.join(mount.root.strip_prefix("/").ok()?)),
        _ if source.is_absolute() => at(source),
        _ => None,
    }
}

/// True if the kubelet's `vol_data.json` names another driver for a block volume: paths of block volumes do not name
/// the driver.
fn is_of_another(target: &Path) -> bool {
    const LONGEST: u64 = 64 << 10;
    let mut above = target.ancestors();
    let Some(all) = above.find(|it| it.file_name().is_some_and(|it| it == "volumeDevices")) else {
        return false;
    };
    // publish/NAME/POD, or staging/NAME.
    let name = target.strip_prefix(all).ok();
    let Some(name) = name.and_then(|it| it.components().nth(1)) else {
        return false;
    };
    let Ok(file) = fs::File::open(all.join(name).join("data/vol_data.json")) else {
        return false;
    };
    let data: Result<serde_json::Value, _> = serde_json::from_reader(file.take(LONGEST));
    data.is_ok_and(|it| it.get("driverName").is_some_and(|name| name != DRIVER))
}

/// Number of volumes of this driver that the kubelet has staged or published on this node.
pub(super) fn volumes_in_use(mounts: &[Mount]) -> usize {
    let ours = mounts
        .iter()
        .filter(|one| is_ours(&one.target.to_string_lossy()) && !is_of_another(&one.target));
    let devices = ours.map(|one| match one.major {
        // A device node, or btrfs.
        0 => (one.root.clone(), one.source.clone()),
        _ => (
            Path::new("").into(),
            format!("{}:{}", one.major, one.minor).into(),
        ),
    });
    devices.collect::<BTreeSet<_>>().len()
}

impl Machine<'_> {
    pub(super) fn mounts(&self, volume: &str) -> Result<Vec<Mount>, Status> {
        let unknown = |error| {
            let what = format!("what is mounted is not known: {error}");
            answers::status(Code::Unavailable, volume, what)
        };
        mountinfo::read().map_err(unknown)
    }

    /// [`Layer`]s at a path, topmost last.
    pub(super) fn layers(&self, mounts: &[Mount], path: &Path, device: Number) -> Vec<Layer> {
        let at = mountinfo::at(mounts, path).into_iter();
        at.map(|one| match device_of(one, &self.options.dev) {
            Some(number) if number == device => Layer::Ours {
                read_only: one.is_read_only(),
            },
            Some(Number(major, minor)) if self.devices.exists(major, minor) => Layer::Foreign,
            // The device node went with the device. Without any device, a mount is foreign.
            None if !is_of_device(one) => Layer::Foreign,
            _ => Layer::Stale,
        })
        .collect()
    }

    /// Another mount point of the device, if there is one.
    pub(super) fn mounted_elsewhere(
        &self,
        volume: &str,
        path: &Path,
        device: Number,
    ) -> Result<Option<PathBuf>, Status> {
        let mounts = self.mounts(volume)?.into_iter();
        // A bind-mounted device node is no mount of the device's content.
        let mut mounts = mounts.filter(|one| !is_node(one) && one.target != path);
        let at = mounts.find(|one| device_of(one, &self.options.dev) == Some(device));
        Ok(at.map(|one| one.target))
    }

    /// Unmounts the layers that the [`Plan`] removes.
    pub(super) fn clear(&self, volume: &str, path: &Path, plan: Plan) -> Result<(), Status> {
        let failed = |error| answers::system(volume, "unmount", path, &error);
        for _ in 0..plan.detach {
            mount::unmount(path, true).map_err(failed)?;
        }
        for _ in 0..plan.unmount {
            mount::unmount(path, false).map_err(failed)?;
        }
        Ok(())
    }

    /// [`Plan`] from the present layers at a path to one layer of the device.
    pub(super) fn plan(
        &self,
        volume: &str,
        path: &Path,
        device: Number,
        read_only: bool,
    ) -> Result<Plan, Status> {
        let layers = self.layers(&self.mounts(volume)?, path, device);
        state::plan(&layers, read_only).map_err(|what| answers::conflict(volume, path, what))
    }

    /// Unmounts all layers at a path; lazily if the device is gone.
    pub(super) fn unmount_all(&self, volume: &str, path: &Path) -> Result<(), Status> {
        let mounts = self.mounts(volume)?;
        for one in mountinfo::at(&mounts, path).iter().rev() {
            let gone = match device_of(one, &self.options.dev) {
                Some(Number(major, minor)) => !self.devices.exists(major, minor),
                None => is_of_device(one),
            };
            mount::unmount(path, gone)
                .map_err(|error| answers::system(volume, "unmount", path, &error))?;
        }
        Ok(())
    }
}

/// True for a mount of a device whose node is gone, and with it the number.
pub(super) fn is_of_device(mount: &Mount) -> bool {
    let device = Path::new(&mount.source).is_absolute();
    device || is_node(mount)
}

/// True if the mount is a bind mount of a device node.
fn is_node(mount: &Mount) -> bool {
    matches!(mount.fs_type.to_str(), Some("devtmpfs" | "tmpfs")) && mount.root != Path::new("/")
}
