//! Whether a device is formatted: the one decision that cannot be undone.
//!
//! [`decide`] is pure. Anything that is not known for certain refuses, and is asked again.

pub mod mark;

use std::fmt;

use crate::filesystem::Kind;
use crate::probe::{Content, Error, FileSystem};

/// When a device counts as empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// It reads as zeros.
    #[default]
    Blank,
    /// It reads as zeros, or it is attached for the first time and nothing is recognised on it: for storage whose new
    /// volumes are not zero.
    FirstAttach,
    /// Nothing is recognised on it, as the Go driver does it.
    Blkid,
}

impl Mode {
    /// The parameter `format` of a StorageClass.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "" | "blank" => Some(Self::Blank),
            "first-attach" => Some(Self::FirstAttach),
            "blkid" => Some(Self::Blkid),
            _ => None,
        }
    }
}

/// What is asked for, and what is known of the device besides its content.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The file system that the volume is to have.
    pub kind: Kind,
    /// When the device counts as empty.
    pub mode: Mode,
    /// The cloud says that the volume has not been attached before.
    pub first_attach: bool,
    /// It will be mounted for reading alone.
    pub read_only: bool,
}

/// What is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// It has the file system.
    Mount(FileSystem),
    /// It is formatted. What is there then comes from an mkfs that was interrupted, or is no
    /// data of anybody.
    Make {
        /// What is there does not stop mkfs.
        over: bool,
    },
    /// Neither.
    Refuse(Refusal),
}

/// Why a device is neither mounted nor formatted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// It has data of a kind that nobody knows.
    NotKnown(String),
    /// It cannot be read, or something uses it: what is on it is another question.
    NotUsable(String),
    /// Somebody is making a file system, and it is not the driver.
    Unfinished(&'static str),
    /// It has something else.
    Occupied(String),
    /// It has a file system of another kind.
    OtherKind {
        /// What it has.
        found: &'static str,
        /// What is asked for.
        wanted: Kind,
    },
    /// It has nothing, and is to be read.
    NothingToRead,
}

/// The table.
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
        // Whatever the mode: a converted or damaged one has data.
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

/// Whatever the mode: a device that has a file system has data, also on a first attachment that is repeated.
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

/// With what to do.
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
