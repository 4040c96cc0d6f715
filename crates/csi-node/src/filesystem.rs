//! File systems: made, checked and grown by their own programs, measured by ourselves.

use std::fmt;
use std::io;
use std::path::Path;
use std::time::Duration;

use crate::probe::FileSystem;
use crate::program;

/// Even the largest is made in seconds: tables are written later, by the kernel.
const MAKING: Duration = Duration::from_secs(10 * 60);
/// A check, and growth, can read all of a large one.
const CHECKING: Duration = Duration::from_secs(60 * 60);
/// What a file system may leave at the end of a device: less than the smallest group.
const REST: u64 = 16 << 20;

/// The kinds that are made.
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
    /// All of them, by name.
    pub const ALL: [Self; 5] = [Self::Btrfs, Self::Ext2, Self::Ext3, Self::Ext4, Self::Xfs];

    /// As StorageClasses write it; ext4 if nothing is asked for.
    pub fn parse(text: &str) -> Option<Self> {
        let wanted = if text.is_empty() { "ext4" } else { text };
        Self::ALL.into_iter().find(|kind| kind.as_str() == wanted)
    }

    /// As StorageClasses and `mount -t` write it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Btrfs => "btrfs",
            Self::Ext2 => "ext2",
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }

    /// What the kernel mounts as each other: all are read by the driver of ext4.
    pub fn is_ext(self) -> bool {
        matches!(self, Self::Ext2 | Self::Ext3 | Self::Ext4)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes a file system on a device that is blank. `over`: also on what an interrupted mkfs has left.
///
/// Nothing is discarded first, since there is nothing. XFS and btrfs look for another file system themselves and refuse,
/// unless `over` is set.
///
/// # Errors
/// The program is absent, failed, or took ten minutes.
pub fn make(kind: Kind, device: &Path, over: bool) -> Result<(), program::Error> {
    let force = |option: &'static str| if over { vec![option] } else { Vec::new() };
    let (program, options) = match kind {
        Kind::Btrfs => ("mkfs.btrfs", [vec!["-K"], force("-f")].concat()),
        // Without -F it asks whether to use a whole disk.
        Kind::Ext2 => ("mkfs.ext2", vec!["-F", "-m0", "-E", "nodiscard"]),
        Kind::Ext3 => ("mkfs.ext3", vec!["-F", "-m0", "-E", "nodiscard"]),
        Kind::Ext4 => ("mkfs.ext4", vec!["-F", "-m0", "-E", "nodiscard"]),
        Kind::Xfs => ("mkfs.xfs", [vec!["-K"], force("-f")].concat()),
    };
    let mut args: Vec<_> = options.into_iter().map(AsRef::as_ref).collect();
    args.push(device.as_os_str());
    program::run(program, &args, MAKING).map(drop)
}

/// Replays the journal and repairs what can be repaired without questions, before the first mount. XFS and btrfs do that
/// when they are mounted.
///
/// # Errors
/// Errors are left, and a person has to decide.
pub fn repair(kind: Kind, device: &Path) -> Result<(), program::Error> {
    // 1: errors were corrected; 2: a restart is wanted, which is for mounted ones.
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
/// What the program answers.
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

/// Grows one that is not mounted, after the check that this needs. XFS and btrfs grow only while mounted.
///
/// # Errors
/// What the programs answer.
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

/// True if the kernel lets this process grow a mounted ext: what has CAP_SYS_RESOURCE may.
#[must_use]
pub fn may_grow_mounted() -> bool {
    const SYS_RESOURCE: u64 = 1 << 24;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    effective(&status).is_some_and(|capabilities| capabilities & SYS_RESOURCE != 0)
}

/// The effective capabilities that a process's status in /proc names.
fn effective(status: &str) -> Option<u64> {
    let mut lines = status.lines();
    let value = lines.find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(value.trim(), 16).ok()
}

/// True if a file system covers its device; `counted` is what `statvfs` says of a mounted one, whose superblock on the
/// device may be old.
pub fn covers(found: &FileSystem, counted: Option<u64>, device: u64) -> bool {
    let covered = match counted {
        // ext counts its own tables out; its superblock is in the page cache of the device, which is read instead.
        Some(counted) if !found.kind.starts_with("ext") => counted.saturating_add(found.log),
        _ => found.bytes,
    };
    device.saturating_sub(covered) < REST
}

/// Bytes and inodes of a mounted file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Bytes.
    pub total: u64,
    /// For users other than root.
    pub available: u64,
    /// Bytes.
    pub used: u64,
    /// Number; 0 where they are not limited.
    pub inodes: u64,
    /// Number.
    pub inodes_free: u64,
}

/// What `statvfs` says.
///
/// # Errors
/// What the kernel answers.
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
