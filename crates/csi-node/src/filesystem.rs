//! File systems: made, checked and grown by their own programs; measured by `statvfs`.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::probe::FileSystem;
use crate::program;

/// Time limit of mkfs. Even a large file system is made in seconds: the kernel writes its tables later.
const MAKING: Duration = Duration::from_secs(10 * 60);
/// Time limit of a check, and of growth: both can read all of a large file system.
const CHECKING: Duration = Duration::from_secs(60 * 60);
/// Bytes that a file system may leave unused at the end of a device: less than the smallest block group.
const REST: u64 = 16 << 20;

/// Types of file systems that the driver makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// btrfs.
    Btrfs,
    /// ext2.
    Ext2,
    /// ext3.
    Ext3,
    /// ext4.
    Ext4,
    /// XFS.
    Xfs,
}

impl Kind {
    /// All types, sorted by name.
    pub const ALL: [Self; 5] = [Self::Btrfs, Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs];

    /// Parses the type as in a StorageClass; an empty text is ext4. `None` for an unknown type.
    pub fn parse(text: &str) -> Option<Self> {
        let wanted = if text.is_empty() { "ext4" } else { text };
        Self::ALL.into_iter().find(|kind| kind.as_str() == wanted)
    }

    /// Name of the type, as in a StorageClass and for `mount -t`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Btrfs => "btrfs",
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// True for ext2, ext3 and ext4: the kernel's driver of ext4 mounts all three.
    pub fn is_ext(self) -> bool {
        matches!(self, Self::Ext2 | Self::Ext3 | Self::Ext4)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes a file system on a blank device; with `over`, also over the rest of an interrupted mkfs.
///
/// mkfs discards nothing first: the device is blank. Without `over`, mkfs.xfs and mkfs.btrfs look for another file
/// system themselves and refuse to overwrite one.
///
/// # Errors
/// The program is absent, fails, or takes more than ten minutes.
pub fn make(kind: Kind, device: &Path, over: bool) -> Result<(), program::Error> {
    let force = |option: &'static str| if over { vec![option] } else { Vec::new() };
    let (program, options) = match kind {
        Kind::Btrfs => ("mkfs.btrfs", [vec!["-K"], force("-f")].concat()),
        // Without -F, mke2fs asks whether to use a whole disk.
        Kind::Ext2 => ("mkfs.ext2", vec!["-F", "-m0", "-E", "nodiscard"]),
        Kind::Ext3 => ("mkfs.ext3", vec!["-F", "-m0", "-E", "nodiscard"]),
        Kind::Ext4 => ("mkfs.ext4", vec!["-F", "-m0", "-E", "nodiscard"]),
        Kind::Xfs => ("mkfs.xfs", [vec!["-K"], force("-f")].concat()),
    };
    let mut args: Vec<_> = options.into_iter().map(AsRef::as_ref).collect();
    args.push(device.as_os_str());
    program::run(program, &args, MAKING).map(drop)
}

/// Replays the journal and makes safe repairs before the first mount. No-op for XFS and btrfs, whose drivers do both on
/// a mount.
///
/// # Errors
/// Errors are left for the administrator to decide, or e2fsck does not run.
pub fn repair(kind: Kind, device: &Path) -> Result<(), program::Error> {
    // Exit codes of e2fsck. 1: errors were corrected; 2: also, and a mounted file system would need a reboot.
    const CORRECTED: [i32; 3] = [0, 1, 2];
    if !kind.is_ext() {
        return Ok(());
    }
    let program = "e2fsck";
    let args = ["-p".as_ref(), device.as_os_str()];
    let output = program::finish(program, &args, CHECKING)?;
    match output.code {
        Some(code) if CORRECTED.contains(&code) => Ok(()),
        code => Err(program::Error::Failed {
            program: program.to_owned(),
            status: code.map_or("by a signal".to_owned(), |code| format!("exit code {code}")),
            output: output.text,
        }),
    }
}

/// Grows a mounted file system to the size of its device.
///
/// # Errors
/// The program of the [`Kind`] is absent, fails, or takes more than an hour.
pub fn grow_mounted(kind: Kind, device: &Path, at: &Path) -> Result<(), program::Error> {
    match kind {
        Kind::Btrfs => {
            let args = [
                "filesystem".as_ref(),
                "resize".as_ref(),
                "max".as_ref(),
                at.as_os_str(),
            ];
            program::run("btrfs", &args, CHECKING)
        }
        Kind::Ext2 | Kind::Ext3 | Kind::Ext4 => program::run("resize2fs", &[device], CHECKING),
        Kind::Xfs => program::run("xfs_growfs", &[at], CHECKING),
    }
    .map(drop)
}

/// Grows an unmounted ext file system, after the check demanded by resize2fs. No-op for XFS and btrfs, which grow only
/// while mounted.
///
/// # Errors
/// e2fsck or resize2fs is absent, fails, or takes more than an hour.
pub fn grow_unmounted(kind: Kind, device: &Path) -> Result<(), program::Error> {
    if !kind.is_ext() {
        return Ok(());
    }
    let args = ["-f".as_ref(), "-p".as_ref(), device.as_os_str()];
    let output = program::finish("e2fsck", &args, CHECKING)?;
    if !matches!(output.code, Some(0 | 1)) {
        return Err(program::Error::Failed {
            program: "e2fsck".to_owned(),
            status: output
                .code
                .map_or("by a signal".to_owned(), |code| format!("exit code {code}")),
            output: output.text,
        });
    }
    program::run("resize2fs", &[device], CHECKING).map(drop)
}

/// True if the kernel lets this process grow a mounted ext file system: the process has CAP_SYS_RESOURCE.
#[must_use]
pub fn may_grow_mounted() -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective(&status).is_some_and(|capabilities| capabilities & SYS_RESOURCE != 0)
}

/// Effective capabilities in `/proc/PID/status`, as a bit mask.
fn effective(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(value.trim(), 16).ok()
}

/// True if a file system covers its device of `device` bytes. `counted`: bytes by `statvfs` if mounted, since the
/// superblock on the device may then be old.
pub fn covers(found: &FileSystem, counted: Option<u64>, device: u64) -> bool {
    let covered = match counted {
        // statvfs of ext leaves out the tables; the superblock, read from the page cache of the device, has the whole
        // size.
        Some(counted) if !found.kind.starts_with("ext") => counted.saturating_add(found.log),
        _ => found.bytes,
    };
    device.saturating_sub(covered) < REST
}

/// Bytes and inodes of a mounted file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes, without the file system's own tables.
    pub total: u64,
    /// Free bytes for users other than root.
    pub available: u64,
    /// Bytes in use.
    pub used: u64,
    /// Number of inodes; 0 if the file system has no limit.
    pub inodes: u64,
    /// Number of free inodes.
    pub inodes_free: u64,
}

/// Measures a mounted file system by `statvfs`.
///
/// # Errors
/// Error of the system call.
pub fn usage(path: &Path) -> io::Result<Usage> {
    let stat = rustix::fs::statvfs(path)?;
    let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
    Ok(Usage {
        total: bytes(stat.f_blocks),
        available: bytes(stat.f_bavail),
        used: bytes(stat.f_blocks.saturating_sub(stat.f_bfree)),
        inodes: stat.f_files,
        inodes_free: stat.f_ffree,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_those_of_storage_classes() {
        assert_eq!(Kind::parse(""), Some(Kind::Ext4));
        assert_eq!(Kind::ALL.map(Kind::as_str), csi_spec::context::FILE_SYSTEMS);
        for kind in Kind::ALL {
            assert_eq!(Kind::parse(kind.as_str()), Some(kind));
        }
        for other in ["EXT4", "ext5", "ntfs", "xfs ", "../xfs"] {
            assert_eq!(Kind::parse(other), None, "{other}");
        }
    }

    #[test]
    fn a_file_system_covers_its_device_but_for_a_small_rest() {
        const GIB: u64 = 1 << 30;
        let found = |kind, bytes, log| FileSystem {
            kind,
            uuid: String::new(),
            dirty: None,
            bytes,
            log,
        };
        for (found, counted, device, covers_it) in [
            (found("ext4", GIB, 0), None, GIB, true),
            (found("ext4", GIB, 0), Some(GIB / 2), GIB + (1 << 20), true),
            (found("ext4", GIB, 0), None, 2 * GIB, false),
            // The superblock on the device is older than the growth.
            (
                found("xfs", GIB, 64 << 20),
                Some(2 * GIB - (64 << 20)),
                2 * GIB,
                true,
            ),
            (
                found("xfs", GIB, 64 << 20),
                Some(GIB - (64 << 20)),
                2 * GIB,
                false,
            ),
            (found("btrfs", GIB, 0), Some(2 * GIB), 2 * GIB, true),
            (found("btrfs", 3 * GIB, 0), None, 2 * GIB, true),
        ] {
            assert_eq!(
                covers(&found, counted, device),
                covers_it,
                "{found:?} {device}"
            );
        }
    }

    #[test]
    fn capabilities_are_read_of_a_status() {
        let status = "Name:\tferrostack\nCapPrm:\t0000000000000000\nCapEff:\t000001fffeffffff\n";
        assert_eq!(effective(status), Some(0x1ff_feff_ffff));
        assert_eq!(effective("Name:\tx\nCapEff:\tzz\n"), None);
        assert_eq!(effective(""), None);
        assert!(effective(&std::fs::read_to_string("/proc/self/status").unwrap()).is_some());
    }

    #[test]
    fn a_mounted_file_system_has_usage() {
        let usage = usage(Path::new("/")).unwrap();
        assert!(usage.total > 0 && usage.used <= usage.total && usage.available <= usage.total);
        assert!(super::usage(Path::new("/no/such/path")).is_err());
    }
}
