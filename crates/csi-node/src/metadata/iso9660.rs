//! ISO 9660, as far as a config drive needs: one file by its path, with names of Rock Ridge or Joliet, or plain names
//! without their version.

use std::io;

use super::LARGEST;
use super::image::{bytes, damaged};
use crate::probe::Blocks;

const SECTOR: u64 = 2048;
/// Sectors in which volume descriptors are searched.
const DESCRIPTORS: u64 = 64;

/// Image with an ISO 9660 file system.
pub(super) struct Volume<'a> {
    blocks: &'a dyn Blocks,
    label: String,
    /// Root directories, true for the one of Joliet.
    roots: Vec<(Extent, bool)>,
}

/// Location of a file or directory, in bytes.
#[derive(Clone, Copy)]
struct Extent {
    offset: u64,
    length: usize,
}

impl<'a> Volume<'a> {
    /// Opens an image; `None` if it is not ISO 9660.
    ///
    /// # Errors
    /// The image cannot be read, or is shorter than its descriptors say.
    pub(super) fn open(blocks: &'a dyn Blocks) -> io::Result<Option<Self>> {
        const FIRST: u64 = 16;
        if blocks.size() < (FIRST + 1) * SECTOR {
            return Ok(None);
        }
        let mut volume = Self {
            blocks,
            label: String::new(),
            roots: Vec::new(),
        };
        for sector in FIRST..FIRST + DESCRIPTORS {
            let descriptor = bytes(blocks, sector * SECTOR, 2048)?;
            if descriptor.get(1..6) != Some(b"CD001") {
                break;
            }
            let root = || extent(descriptor.get(156..).unwrap_or_default());
            match descriptor.first() {
                Some(1) => {
                    let label = descriptor.get(40..72).unwrap_or_default();
                    let label = String::from_utf8_lossy(label);
                    label
                        .trim_matches([' ', '\0'])
                        .clone_into(&mut volume.label);
                    volume.roots.extend(root().map(|root| (root, false)));
                }
                Some(2) if is_joliet(&descriptor) => {
                    volume.roots.extend(root().map(|root| (root, true)));
                }
                Some(255) => break,
                _ => {}
            }
        }
        Ok((!volume.roots.is_empty()).then_some(volume))
    }

    pub(super) fn label(&self) -> &str {
        &self.label
    }

    /// Reads a file by its path, separated by `/`.
    ///
    /// # Errors
    /// The file is absent or larger than 1 MiB, or the image is damaged.
    pub(super) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        for (root, joliet) in &self.roots {
            let mut at = Some(*root);
            for name in path.split('/') {
                at = match at {
                    Some(directory) => self.entry(directory, name, *joliet)?,
                    None => None,
                };
            }
            if let Some(file) = at {
                return self.content(file);
            }
        }
        Err(io::Error::new(
            io::ErrorKind::NotFound,
            format!("it has no {path}"),
        ))
    }

    fn content(&self, extent: Extent) -> io::Result<Vec<u8>> {
        if extent.length > LARGEST {
            return Err(damaged("a file or directory of it has more than 1 MiB"));
        }
        bytes(self.blocks, extent.offset, extent.length)
    }

    /// Looks up a name in a directory, ignoring case.
    fn entry(&self, directory: Extent, name: &str, joliet: bool) -> io::Result<Option<Extent>> {
        let content = self.content(directory)?;
        let mut rest = content.as_slice();
        while let Some(length) = rest.first() {
            let length = usize::from(*length);
            if length == 0 {
                // Records do not cross sectors: the next one starts a new sector.
                let at = content.len() - rest.len();
                let next = (at / 2048 + 1) * 2048;
                rest = content.get(next..).unwrap_or_default();
                continue;
            }
            let Some(record) = rest.get(..length) else {
                return Err(damaged("a directory of it breaks off"));
            };
            if names(record, joliet)
                .iter()
                .any(|one| one.eq_ignore_ascii_case(name))
            {
                return Ok(extent(record));
            }
            rest = rest.get(length..).unwrap_or_default();
        }
        Ok(None)
    }
}

fn is_joliet(descriptor: &[u8]) -> bool {
    matches!(descriptor.get(88..91), Some(b"%/@" | b"%/C" | b"%/E"))
}

/// [`Extent`] in a directory record.
fn extent(record: &[u8]) -> Option<Extent> {
    let number = |at: usize| {
        let bytes = record.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(bytes))
    };
    Some(Extent {
        offset: u64::from(number(2)?) * SECTOR,
        length: usize::try_from(number(10)?).ok()?,
    })
}

/// Names in a directory record: of ISO 9660 or Joliet, and of Rock Ridge.
fn names(record: &[u8], joliet: bool) -> Vec<String> {
    let length = usize::from(record.get(32).copied().unwrap_or_default());
    let Some(identifier) = record.get(33..33 + length) else {
        return Vec::new();
    };
    if joliet {
        let units = identifier
            .chunks_exact(2)
            .filter_map(|two| two.try_into().ok());
        let units: Vec<u16> = units.map(u16::from_be_bytes).collect();
        return vec![without_version(&String::from_utf16_lossy(&units))];
    }
    let mut names = vec![without_version(&String::from_utf8_lossy(identifier))];
    // The system use area starts at an even offset.
    let fields = record.get((33 + length).next_multiple_of(2)..);
    names.extend(rock_ridge(fields.unwrap_or_default()));
    names
}

fn without_version(name: &str) -> String {
    let name = name.split_once(';').map_or(name, |(name, _)| name);
    name.trim_end_matches('.').to_owned()
}

/// Name in the `NM` fields of Rock Ridge: length, version, flags, and a part of the name.
fn rock_ridge(mut fields: &[u8]) -> Option<String> {
    let mut name = None;
    while let [first, second, length, _, ..] = fields {
        let length = usize::from(*length);
        let field = fields.get(..length).filter(|field| field.len() >= 4)?;
        if (first, second) == (&b'N', &b'M') {
            let part = String::from_utf8_lossy(field.get(5..)?);
            name.get_or_insert_with(String::new).push_str(&part);
        }
        fields = fields.get(length..)?;
    }
    name
}
