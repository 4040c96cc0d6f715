//! Paths in requests.

use std::path::{Component, Path, PathBuf};

/// Reason why a path is not accepted.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// The path is empty.
    #[error("it is empty")]
    Empty,
    /// The path exceeds the kernel's PATH_MAX.
    #[error("it is longer than 4095 bytes")]
    Long,
    /// A NUL would cut the path in the kernel.
    #[error("it has a NUL")]
    Nul,
    /// The path depends on a working directory.
    #[error("it is not absolute")]
    Relative,
    /// The path is `/`: no volume is mounted there.
    #[error("it is the root of the file system")]
    Root,
    /// The path can leave its directory.
    #[error("it has a component `..`")]
    Up,
}

/// Resolves links in the parents of a path, as mountinfo has them: `/var/lib/kubelet` is a link on some nodes. The last
/// component stays unresolved: a mount with a lost device cannot be read.
pub fn resolved(path: &Path) -> PathBuf {
    let parent = path.parent().and_then(|parent| parent.canonicalize().ok());
    match (parent, path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        // No parent, so no mount either.
        _ => path.to_owned(),
    }
}

/// Checks a path for a mount: absolute, not `/`, without `..`. Trailing and doubled slashes are dropped.
///
/// # Errors
/// [`BadPath`], with the reason.
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
