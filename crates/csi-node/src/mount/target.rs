//! Paths that a caller gives.

use std::path::{Component, Path, PathBuf};

/// Why a path is not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// More than the kernel takes.
    #[error("it is longer than 4095 bytes")]
    Long,
    /// It ends early for the kernel.
    #[error("it has a NUL")]
    Nul,
    /// It depends on a working directory.
    #[error("it is not absolute")]
    Relative,
    /// Nothing is mounted there.
    #[error("it is the root of the file system")]
    Root,
    /// It leads elsewhere.
    #[error("it has a component `..`")]
    Up,
}

/// The path as mountinfo has it: what leads to it may be links, as `/var/lib/kubelet` is on some nodes. The last component
/// is left as it is, since what is mounted there may be lost.
pub fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        // Nothing is there, and nothing is mounted there.
        _ => path.to_owned(),
    }
}

/// A path that can be mounted on: absolute, not `/`, without `..`; slashes at its end and doubled ones are dropped.
///
/// # Errors
/// What is wrong with it.
pub fn checked(path: &str) -> Result<PathBuf, BadPath> {
    const LONGEST: usize = 4095;
    if path.is_empty() {
        return Err(BadPath::Empty);
    }
    if path.len() > LONGEST {
        return Err(BadPath::Long);
    }
    if path.contains('\0') {
        return Err(BadPath::Nul);
    }
    let path = Path::new(path);
    if !path.is_absolute() {
        return Err(BadPath::Relative);
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(BadPath::Up);
    }
    let path: PathBuf = path.components().collect();
    if path.parent().is_none() {
        return Err(BadPath::Root);
    }
    Ok(path)
}
