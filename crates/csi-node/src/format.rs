//! Decision to format a device: the one step that cannot be undone.
//!
//! [`decide`] is pure. Every uncertainty is a [`Refusal`]; a later call decides again.

pub mod mark;

use std::fmt;

use crate::filesystem::Kind;
use crate::probe::{Content, Error, FileSystem};

/// Condition under which a device counts as empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The device reads as zeros.
    #[default]
    Blank,
    /// The device reads as zeros; or the volume is attached for the first time and no content is recognised. For
    /// storage whose new volumes are not zero.
    FirstAttach,
    /// No content is recognised: the rule of the Go driver, which asks `blkid`.
    Blkid,
}

impl Mode {
    /// Parses the parameter `format` of a StorageClass; empty is [`Mode::Blank`].
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "blank" => Some(Self::Blank),
            "first-attach" => Some(Self::FirstAttach),
            "blkid" => Some(Self::Blkid),
            _ => None,
        }
    }
}

/// Wish of the caller, and facts about the device besides its content.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// Type of file system for the volume.
    pub kind: Kind,
    /// Condition under which the device counts as empty.
    pub mode: Mode,
    /// True if the cloud reports that the volume was never attached before.
    pub first_attach: bool,
    /// True if the volume will be mounted read-only.
    pub read_only: bool,
}

/// Result of [`decide`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Mount the file system that the device has.
    Mount(FileSystem),
    /// Format the device. Any content is the rest of an interrupted mkfs, or nobody's data.
    Make {
        /// True if mkfs has to overwrite content.
        over: bool,
    },
    /// Neither mount nor format.
    Refuse(Refusal),
}

/// Reason why a device is neither mounted nor formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The device has data of an unknown kind.
    NotKnown(String),
    /// The device cannot be read, or is in use; its content does not matter then.
    NotUsable(String),
    /// The superblock says that mkfs or a conversion of another program is at work.
    Unfinished(&'static str),
    /// The device has other content: a partition table, LUKS, RAID, swap.
    Occupied(String),
    /// The device has a file system of another type.
    OtherKind {
        /// Type on the device.
        found: &'static str,
        /// Type that the caller wants.
        wanted: Kind,
    },
    /// The device is blank, and the volume is read-only.
    NothingToRead,
}

/// Decides by the content of the device. Pure.
pub fn decide(content: &Result<Content, Error>, wanted: &Wanted) -> Decision {
    let content = match content {
        Ok(content) => content,
        Err(error) => return Decision::Refuse(Refusal::NotUsable(error.to_string())),
    };
    let unknown_is_empty = match wanted.mode {
        Mode::Blank => false,
        Mode::FirstAttach => wanted.first_attach,
        Mode::Blkid => true,
    };
    let over = match content {
        Content::FileSystem(found) => return mount(found, wanted.kind),
        Content::Blank => false,
        Content::HalfFormatted(_) => true,
        // In every mode: a converted or damaged file system has data.
        Content::Unfinished(kind) => return Decision::Refuse(Refusal::Unfinished(kind)),
        Content::Unknown(_) if unknown_is_empty => true,
        Content::Unknown(_) => {
            return Decision::Refuse(Refusal::NotKnown(format!("it has {content}")));
        }
        Content::Luks | Content::Other(_) | Content::Partitioned(_) => {
            return Decision::Refuse(Refusal::Occupied(content.to_string()));
        }
    };
    if wanted.read_only {
        return Decision::Refuse(Refusal::NothingToRead);
    }
    Decision::Make { over }
}

/// Decision for a device with a file system. In every mode such a device has data, also if a first attachment is
/// repeated.
fn mount(found: &FileSystem, wanted: Kind) -> Decision {
    match Kind::parse(found.kind) {
        Some(kind) if kind == wanted || kind.is_ext() && wanted.is_ext() => {
            Decision::Mount(found.clone())
        }
        _ => Decision::Refuse(Refusal::OtherKind {
            found: found.kind,
            wanted,
        }),
    }
}

/// Message with the reason and the next step for the user.
impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotKnown(why) => write!(
                f,
                "it is not formatted, since it cannot be known to be empty: {why}. If it has no data, zero all of it \
                 (blkdiscard --zeroout), or use `format: first-attach` in the StorageClass of storage whose volumes are not zero"
            ),
            Self::NotUsable(why) => write!(
                f,
                "it is neither mounted nor formatted: {why}. The next call looks again"
            ),
            Self::Unfinished(kind) => write!(
                f,
                "its superblock is that of an unfinished file system of type {kind}, and the driver has no mark on it, so that it \
                 did not begin it: repair it if it has data, or zero all of it (blkdiscard --zeroout)"
            ),
            Self::Occupied(what) => write!(
                f,
                "it has {what}, which is not overwritten: use it as a block volume, or zero it if it has no data"
            ),
            Self::OtherKind { found, wanted } => write!(
                f,
                "it has a file system of type {found} and {wanted} is asked for: set fsType of the PersistentVolume, or \
                 csi.storage.k8s.io/fstype of the StorageClass, to {found}"
            ),
            Self::NothingToRead => {
                f.write_str("it is blank, and is to be mounted read-only: write to it first")
            }
        }
    }
}

#[cfg(test)]
mod tests;
