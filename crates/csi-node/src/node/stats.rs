//! NodeGetVolumeStats: bytes and inodes of a volume.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;

use csi_spec::volume_usage::Unit;
use csi_spec::{NodeGetVolumeStatsResponse, VolumeUsage};
use grpc::{Code, Status};

use super::request::Stats;
use super::{Machine, answers};
use crate::filesystem::{self, Usage};
use crate::probe::{Blocks, Device};
use crate::{mount, mountinfo};

pub(super) fn stats(
    machine: &Machine<'_>,
    request: Stats,
) -> Result<NodeGetVolumeStatsResponse, Status> {
    let (volume, path) = (request.volume.as_str(), &mount::resolved(&request.path));
    let unread = |error: io::Error| {
        let what = format!("{}: {error}", path.display());
        let code = match error.kind() {
            io::ErrorKind::NotFound => Code::NotFound,
            _ => Code::Unavailable,
        };
        answers::status(code, volume, what)
    };
    let metadata = fs::metadata(path).map_err(unread)?;
    if metadata.file_type().is_block_device() {
        let size = Device::open(path).map_err(unread)?.size();
        return Ok(NodeGetVolumeStatsResponse {
            usage: vec![usage(Unit::Bytes, size, 0, 0)],
        });
    }
    // Without a mount, `statvfs` would measure the disk of the node.
    if mountinfo::at(&machine.mounts(volume)?, path).is_empty() {
        let what = format!("nothing is mounted at {}", path.display());
        return Err(answers::status(Code::NotFound, volume, what));
    }
    let Usage {
        total,
        available,
        used,
        inodes,
        inodes_free,
    } = filesystem::usage(path).map_err(unread)?;
    let inodes_used = inodes.saturating_sub(inodes_free);
    Ok(NodeGetVolumeStatsResponse {
        usage: vec![
            usage(Unit::Bytes, total, available, used),
            usage(Unit::Inodes, inodes, inodes_free, inodes_used),
        ],
    })
}

fn usage(unit: Unit, total: u64, available: u64, used: u64) -> VolumeUsage {
    let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    VolumeUsage {
        available: number(available),
        total: number(total),
        used: number(used),
        unit: unit.into(),
    }
}
