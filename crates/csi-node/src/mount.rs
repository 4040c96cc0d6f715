//! What is mounted at a path, what is done about it, and the system calls that do it.
//!
//! [`state`] is a table without I/O: the layers at a path against the device that should be there. Each step of a plan
//! can be repeated, since the next call starts from what is mounted then.

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
/// What the kernel answers.
pub fn mount(device: &Path, target: &Path, kind: &str, options: &Options) -> io::Result<()> {
    let data = CString::new(options.data.as_str()).map_err(|_| io::ErrorKind::InvalidInput)?;
    rustix::mount::mount(device, target, kind, options.flags, Some(data.as_c_str()))?;
    Ok(())
}

/// Shows a directory or a file in a second place; the flags of the mount are set by a second call, since the first
/// ignores them.
///
/// # Errors
/// What the kernel answers.
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
/// What the kernel answers.
pub fn remount(target: &Path, flags: MountFlags) -> io::Result<()> {
    rustix::mount::mount_remount(target, MountFlags::BIND | flags, c"")?;
    Ok(())
}

/// Takes the topmost mount away. `detach`: even if it is in use, for a device that is gone.
///
/// # Errors
/// What the kernel answers.
pub fn unmount(target: &Path, detach: bool) -> io::Result<()> {
    let mut flags = UnmountFlags::NOFOLLOW;
    flags.set(UnmountFlags::DETACH, detach);
    rustix::mount::unmount(target, flags)?;
    Ok(())
}

#[cfg(test)]
mod tests;
