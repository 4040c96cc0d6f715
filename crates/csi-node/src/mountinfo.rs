//! Mounts in `/proc/self/mountinfo`, read without a program.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Mount of this mount namespace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Id of the mount.
    pub id: u64,
    /// Id of the mount below.
    pub parent: u64,
    /// Major number of the file system's device. For btrfs a number of no block device.
    pub major: u32,
    /// Minor number.
    pub minor: u32,
    /// Part of the file system that is mounted: `/`, except for a bind mount of a part.
    pub root: PathBuf,
    /// Mount point.
    pub target: PathBuf,
    /// Flags of this mount: `ro`, `noatime`.
    pub options: Vec<String>,
    /// Type of the file system, as for `mount -t`.
    pub fs_type: OsString,
    /// Device node, or the text that was given in its place.
    pub source: OsString,
    /// Options of the file system, shared by its mounts.
    pub super_options: String,
}

impl Mount {
    /// True if this mount is read-only; its file system may not be.
    pub fn is_read_only(&self) -> bool {
        self.options.iter().any(|option| option == "ro")
    }
}

/// Line of mountinfo with a missing field. The list of mounts is then unknown, not empty.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of mountinfo has no {field}")]
pub struct Malformed {
    /// Line number, from 1.
    pub line: usize,
    /// Name of the missing or invalid field.
    pub field: &'static str,
}

/// Mounts of this process, the latest last.
///
/// # Errors
/// `/proc/self/mountinfo` cannot be read, or has a [`Malformed`] line.
pub fn read() -> std::io::Result<Vec<Mount>> {
    let content = std::fs::read("/proc/self/mountinfo")?;
    parse(&content).map_err(std::io::Error::other)
}

/// Parses the content of a mountinfo file.
///
/// # Errors
/// The first [`Malformed`] line: ignoring it could hide a mount, and the next mount would be stacked on top.
pub fn parse(content: &[u8]) -> Result<Vec<Mount>, Malformed> {
    let lines = content.split(|byte| *byte == b'\n').enumerate();
    let lines = lines.filter(|(_, line)| !line.is_empty());
    lines
        .map(|(index, line)| {
            let line_number = index + 1;
            mount(line).map_err(|field| Malformed {
                line: line_number,
                field,
            })
        })
        .collect()
}

/// Mounts at exactly this path, in mount order: the last one is visible.
pub fn at<'a>(mounts: &'a [Mount], target: &Path) -> Vec<&'a Mount> {
    mounts.iter().filter(|one| one.target == target).collect()
}

/// Parses a line: `36 35 98:0 /root /target rw,noatime master:1 shared:2 - ext3 /dev/vda rw,errors=continue`
fn mount(line: &[u8]) -> Result<Mount, &'static str> {
    let mut fields = line.split(|byte| *byte == b' ');
    let mut next = |name: &'static str| fields.next().filter(|field| !field.is_empty()).ok_or(name);
    let id = number(next("id")?).ok_or("id")?;
    let parent = number(next("parent")?).ok_or("parent")?;
    let device = text(next("device")?);
    let (major, minor) = device.split_once(':').ok_or("device")?;
    let root = path(next("root")?);
    let target = path(next("target")?);
    let options = text(next("options")?);
    // Any number of optional fields, up to a dash.
    while next("separator")? != b"-" {}
    let fs_type = OsString::from_vec(unescaped(next("type")?));
    // The source may be empty.
    let source = OsString::from_vec(unescaped(fields.next().ok_or("source")?));
    let super_options = text(fields.next().ok_or("options of the file system")?);
    Ok(Mount {
        id,
        parent,
        major: major.parse().map_err(|_| "device")?,
        minor: minor.parse().map_err(|_| "device")?,
        root,
        target,
        options: options.split(',').map(str::to_owned).collect(),
        fs_type,
        source,
        super_options,
    })
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn text(field: &[u8]) -> String {
    String::from_utf8_lossy(field).into_owned()
}

fn path(field: &[u8]) -> PathBuf {
    OsString::from_vec(unescaped(field)).into()
}

/// Decodes the kernel's escapes: blank, tab, newline, backslash and `#` are a backslash and three octal digits.
fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        match (first, after) {
            (
                b'\\',
                [
                    high @ b'0'..=b'3',
                    middle @ b'0'..=b'7',
                    low @ b'0'..=b'7',
                    others @ ..,
                ],
            ) => {
                bytes.push((high - b'0') << 6 | (middle - b'0') << 3 | (low - b'0'));
                rest = others;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
