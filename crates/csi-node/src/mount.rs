//! State of a mount point, plan for the wanted state, and system calls that carry the plan out.
//!
//! [`state::plan`] is a table without I/O: the [`state::Layer`]s at a path against the device that should be there.
//! Each step of a [`state::Plan`] can be repeated: the next call starts from the mounts of that moment.

pub mod options;
pub mod state;
mod target;

use std::ffi::CString;
use std::io;
use std::path::Path;

use rustix::mount::{MountFlags, UnmountFlags};

pub use options::Options;
pub use target::{BadPath, checked, resolved};

/// Mounts a file system.
///
/// # Errors
/// Error of the system call, or NUL in the options.
pub fn mount(device: &Path, target: &Path, kind: &str, options: &Options) -> io::Result<()> {
    let data = CString::new(options.data.as_str()).map_err(|_| io::ErrorKind::InvalidInput)?;
    rustix::mount::mount(device, target, kind, options.flags, Some(data.as_c_str()))?;
    Ok(())
}

/// Bind-mounts a directory or a file at a second path. A second call sets the flags: the kernel ignores flags on the
/// first.
///
/// # Errors
/// Error of the system calls.
pub fn bind(source: &Path, target: &Path, flags: MountFlags) -> io::Result<()> {
    rustix::mount::mount_bind(source, target)?;
    if flags.is_empty() {
        return Ok(());
    }
    remount(target, flags)
}

/// Sets the flags of one mount, not of its file system.
///
/// # Errors
/// Error of the system call.
pub fn remount(target: &Path, flags: MountFlags) -> io::Result<()> {
    rustix::mount::mount_remount(target, MountFlags::BIND | flags, c"")?;
    Ok(())
}

/// Unmounts the topmost layer. `detach`: lazily, also while in use, for a device that is gone.
///
/// # Errors
/// Error of the system call, such as `EBUSY`.
pub fn unmount(target: &Path, detach: bool) -> io::Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, detach);
    rustix::mount::unmount(target, flags)?;
    Ok(())
}

#[cfg(test)]
mod tests;
