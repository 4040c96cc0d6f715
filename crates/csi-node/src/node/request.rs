//! Parsed requests: an invalid field is refused before any work.

use std::collections::BTreeMap;
use std::path::PathBuf;

use csi_spec::access;
use csi_spec::volume_capability::{AccessType, MountVolume, access_mode::Mode as AccessMode};
use csi_spec::{
    CapacityRange, NodeExpandVolumeRequest, NodeGetVolumeHealthRequest, NodeGetVolumeStatsRequest,
    NodePublishVolumeRequest, NodeStageVolumeRequest, NodeUnpublishVolumeRequest,
    NodeUnstageVolumeRequest, VolumeCapability,
};
use grpc::{Code, Status};

use super::answers::invalid;
use crate::context;
use crate::device::Expected;
use crate::filesystem::Kind;
use crate::format::Mode;
use crate::mount::{BadPath, Options, checked};

/// Kind of access to a volume: as a block device, or as a mounted file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Block,
    Mount { kind: Kind, options: Options },
}

/// NodeStageVolume, with the settings of the StorageClass from the publish and volume contexts.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) volume: String,
    pub(super) path: PathBuf,
    pub(super) access: Access,
    pub(super) expected: Expected,
    pub(super) mode: Mode,
    pub(super) first_attach: bool,
    pub(super) grow: bool,
}

/// NodeUnstageVolume.
#[derive(Debug)]
pub(super) struct Unstage {
    pub(super) volume: String,
    pub(super) path: PathBuf,
}

/// NodePublishVolume.
#[derive(Debug)]
pub(super) struct Publish {
    pub(super) volume: String,
    pub(super) staging: PathBuf,
    pub(super) target: PathBuf,
    pub(super) access: Access,
    pub(super) read_only: bool,
    /// True if only one target may have the volume.
    pub(super) exclusive: bool,
    pub(super) expected: Expected,
}

/// NodeUnpublishVolume.
#[derive(Debug)]
pub(super) struct Unpublish {
    pub(super) volume: String,
    pub(super) target: PathBuf,
}

/// NodeGetVolumeStats.
#[derive(Debug)]
pub(super) struct Stats {
    pub(super) volume: String,
    pub(super) path: PathBuf,
}

/// NodeGetVolumeHealth.
#[derive(Debug)]
pub(super) struct Health {
    pub(super) volume: String,
    pub(super) path: PathBuf,
}

/// NodeExpandVolume. `expected` and `limit` are in bytes.
#[derive(Debug)]
pub(super) struct Expand {
    pub(super) volume: String,
    pub(super) path: PathBuf,
    pub(super) staging: Option<PathBuf>,
    pub(super) expected: Expected,
    pub(super) limit: Option<u64>,
    /// True if the capability says that this is a block volume.
    pub(super) block: bool,
    /// Options of the staging mount, if the capability has usable ones.
    pub(super) options: Option<Options>,
}

impl Stage {
    pub(super) fn parse(request: NodeStageVolumeRequest) -> Result<Self, Status> {
        let (access, _) = access(request.volume_capability)?;
        let format = text(&request.volume_context, context::FORMAT);
        let mode = Mode::parse(format).ok_or_else(|| {
            invalid(format!(
                "volume_context {} is `{format}`: it can be blank, first-attach or blkid",
                context::FORMAT
            ))
        })?;
        let grow = text(&request.volume_context, context::RESIZE) == "true";
        Ok(Self {
            volume: volume(request.volume_id)?,
            path: path("staging_target_path", &request.staging_target_path)?,
            access,
            expected: expected(&request.publish_context)?,
            // A restored or cloned volume has the content of its source, on any storage.
            mode: if grow { Mode::Blank } else { mode },
            first_attach: text(&request.publish_context, context::FIRST_ATTACH) == "true",
            grow,
        })
    }
}

impl Unstage {
    pub(super) fn parse(request: NodeUnstageVolumeRequest) -> Result<Self, Status> {
        Ok(Self {
            volume: volume(request.volume_id)?,
            path: path("staging_target_path", &request.staging_target_path)?,
        })
    }
}

impl Publish {
    pub(super) fn parse(request: NodePublishVolumeRequest) -> Result<Self, Status> {
        let (access, mode) = access(request.volume_capability)?;
        // `ro` may also be among the mount options of the StorageClass with which the volume was staged.
        let options = match &access {
            Access::Mount { options, .. } => options.is_read_only(),
            Access::Block => false,
        };
        Ok(Self {
            volume: volume(request.volume_id)?,
            staging: staged(&request.staging_target_path)?,
            target: path("target_path", &request.target_path)?,
            access,
            read_only: request.readonly || is_reader(mode) || options,
            exclusive: mode == AccessMode::SingleNodeSingleWriter,
            expected: expected(&request.publish_context)?,
        })
    }
}

impl Unpublish {
    pub(super) fn parse(request: NodeUnpublishVolumeRequest) -> Result<Self, Status> {
        Ok(Self {
            volume: volume(request.volume_id)?,
            target: path("target_path", &request.target_path)?,
        })
    }
}

impl Stats {
    pub(super) fn parse(request: NodeGetVolumeStatsRequest) -> Result<Self, Status> {
        Ok(Self {
            path: place(&request.volume_id, &request.volume_path)?,
            volume: volume(request.volume_id)?,
        })
    }
}

impl Health {
    /// Checks the path that the pod has: the published one, if both are given.
    pub(super) fn parse(request: NodeGetVolumeHealthRequest) -> Result<Self, Status> {
        let path = match request.volume_publish_path.as_str() {
            "" => &request.staging_target_path,
            path => path,
        };
        Ok(Self {
            path: place(&request.volume_id, path)?,
            volume: volume(request.volume_id)?,
        })
    }
}

impl Expand {
    pub(super) fn parse(request: NodeExpandVolumeRequest) -> Result<Self, Status> {
        let CapacityRange {
            required_bytes,
            limit_bytes,
        } = request.capacity_range.unwrap_or_default();
        let size = bytes("capacity_range.required_bytes", required_bytes)?;
        let limit = bytes("capacity_range.limit_bytes", limit_bytes)?;
        if let (Some(size), Some(limit)) = (size, limit)
            && limit < size
        {
            let message =
                format!("capacity_range: limit_bytes {limit} is less than required_bytes {size}");
            return Err(Status::new(Code::OutOfRange, message));
        }
        let staging = request.staging_target_path;
        let staging = match staging.as_str() {
            "" => None,
            given => Some(path("staging_target_path", given)?),
        };
        let kind = request.volume_capability.as_ref();
        let kind = kind.and_then(|one| one.access_type.as_ref());
        Ok(Self {
            path: place(&request.volume_id, &request.volume_path)?,
            volume: volume(request.volume_id)?,
            staging,
            expected: Expected { size },
            limit,
            block: matches!(kind, Some(AccessType::Block(_))),
            options: match access(request.volume_capability) {
                Ok((Access::Mount { options, .. }, _)) => Some(options),
                _ => None,
            },
        })
    }
}

fn volume(id: String) -> Result<String, Status> {
    const LONGEST: usize = 128;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if id.is_empty() {
        Err(invalid("volume_id is empty"))
    } else if id.len() > LONGEST || !id.chars().all(allowed) {
        // The id becomes part of the names of links.
        Err(invalid("volume_id is no id of Cinder"))
    } else {
        Ok(id)
    }
}

fn path(field: &str, given: &str) -> Result<PathBuf, Status> {
    checked(given).map_err(|why| invalid(format!("{field}: {why}")))
}

/// Path of a volume in a query. A relative path is `NOT_FOUND`: no volume is published there.
fn place(id: &str, given: &str) -> Result<PathBuf, Status> {
    volume(id.to_owned())?;
    checked(given).map_err(|why| {
        let code = match why {
            BadPath::Relative => Code::NotFound,
            _ => Code::InvalidArgument,
        };
        Status::new(code, format!("volume {id}: volume_path: {why}"))
    })
}

/// Staging path; if empty, `FAILED_PRECONDITION`, the code of the specification for this case.
fn staged(given: &str) -> Result<PathBuf, Status> {
    match given {
        "" => Err(Status::new(
            Code::FailedPrecondition,
            "staging_target_path is empty: the volume is staged first",
        )),
        given => path("staging_target_path", given),
    }
}

/// [`Access`] and access mode in a capability.
fn access(capability: Option<VolumeCapability>) -> Result<(Access, AccessMode), Status> {
    let capability = capability.ok_or_else(|| invalid("volume_capability is empty"))?;
    let mode = capability
        .access_mode
        .map(|mode| mode.mode)
        .unwrap_or_default();
    let mode = match AccessMode::try_from(mode) {
        Ok(AccessMode::Unknown) | Err(_) => {
            return Err(invalid(
                "volume_capability.access_mode is none of the specification",
            ));
        }
        Ok(mode) => mode,
    };
    if access::shares_what_it_writes(&capability) {
        return Err(invalid(access::ONE_WRITER));
    }
    let access = match capability.access_type {
        Some(AccessType::Block(_)) => Access::Block,
        Some(AccessType::Mount(mount)) => mounted(&mount, is_reader(mode))?,
        None => return Err(invalid("volume_capability has neither block nor mount")),
    };
    Ok((access, mode))
}

fn is_reader(mode: AccessMode) -> bool {
    matches!(
        mode,
        AccessMode::SingleNodeReaderOnly | AccessMode::MultiNodeReaderOnly
    )
}

fn mounted(mount: &MountVolume, reads: bool) -> Result<Access, Status> {
    let kind = Kind::parse(&mount.fs_type).ok_or_else(|| {
        let kinds = Kind::ALL.map(Kind::as_str).join(", ");
        let asked = mount.fs_type.escape_debug();
        invalid(format!("fs_type `{asked}` is none of {kinds}"))
    })?;
    let mut options = Options::parse(mount.mount_flags.iter().map(String::as_str));
    if options.data.contains('\0') {
        return Err(invalid("mount_flags has a NUL"));
    }
    if reads {
        options.flags |= rustix::mount::MountFlags::RDONLY;
    }
    if kind == Kind::Xfs {
        // A restored volume has the UUID of its source, which may be mounted on the same node.
        options = options.with("nouuid");
    }
    Ok(Access::Mount { kind, options })
}

fn text<'a>(context: &'a BTreeMap<String, String>, key: &str) -> &'a str {
    context.get(key).map_or("", String::as_str)
}

fn expected(context: &BTreeMap<String, String>) -> Result<Expected, Status> {
    let size = match text(context, context::SIZE) {
        "" => None,
        given => {
            let number = given.parse().ok().filter(|size| *size > 0);
            let wrong = || {
                let given = given.escape_debug();
                let key = context::SIZE;
                invalid(format!(
                    "publish_context {key} is `{given}`, no number of bytes"
                ))
            };
            Some(number.ok_or_else(wrong)?)
        }
    };
    Ok(Expected { size })
}

/// Number of bytes; 0 means not set.
fn bytes(field: &str, given: i64) -> Result<Option<u64>, Status> {
    match u64::try_from(given) {
        Ok(0) => Ok(None),
        Ok(bytes) => Ok(Some(bytes)),
        Err(_) => Err(invalid(format!("{field} is negative"))),
    }
}

#[cfg(test)]
mod tests;
