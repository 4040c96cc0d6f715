//! FAT12, FAT16 and FAT32, as far as a config drive needs: one file by its path, with long names.

use std::io;

use super::LARGEST;
use super::image::{bytes, damaged};
use crate::probe::Blocks;

const ENTRY: usize = 32;
const VOLUME_LABEL: u8 = 0x08;
const DIRECTORY: u8 = 0x10;
const LONG_NAME: u8 = 0x0f;

/// Image with a FAT file system.
pub(super) struct Volume<'a> {
    blocks: &'a dyn Blocks,
    width: Width,
    /// Size of a cluster in bytes.
    cluster: usize,
    /// Offsets in bytes: the first table, the root directory of FAT12 and FAT16, and cluster 2.
    table: u64,
    root: u64,
    data: u64,
    root_length: usize,
    root_cluster: u32,
    clusters: u32,
    label: [u8; 11],
}

/// Bits of an entry of the allocation table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Width {
    Twelve,
    Sixteen,
    ThirtyTwo,
}

struct Entry {
    name: String,
    attributes: u8,
    cluster: u32,
    length: usize,
}

impl<'a> Volume<'a> {
    /// Opens an image; `None` if it is not FAT.
    ///
    /// # Errors
    /// The image cannot be read.
    pub(super) fn open(blocks: &'a dyn Blocks) -> io::Result<Option<Self>> {
        if blocks.size() < 512 {
            return Ok(None);
        }
        let boot = bytes(blocks, 0, 512)?;
        Ok(Self::parse(blocks, &boot))
    }

    fn parse(blocks: &'a dyn Blocks, boot: &[u8]) -> Option<Self> {
        let le16 = |at: usize| {
            let two = boot.get(at..at + 2)?.try_into().ok()?;
            Some(u64::from(u16::from_le_bytes(two)))
        };
        let le32 = |at: usize| {
            let four = boot.get(at..at + 4)?.try_into().ok()?;
            Some(u64::from(u32::from_le_bytes(four)))
        };
        let jump = matches!(boot.first(), Some(0xeb | 0xe9));
        if !jump || boot.get(510..512) != Some(&[0x55, 0xaa]) {
            return None;
        }
        let sector = le16(11)?;
        let in_cluster = u64::from(*boot.get(13)?);
        let tables = u64::from(*boot.get(16)?);
        let valid = [512, 1024, 2048, 4096].contains(&sector)
            && in_cluster.is_power_of_two()
            && (1..=2).contains(&tables);
        if !valid {
            return None;
        }
        let or = |short: u64, long: u64| if short == 0 { long } else { short };
        let reserved = le16(14)?;
        let of_table = or(le16(22)?, le32(36)?);
        let root_length = le16(17)? * ENTRY as u64;
        let root = reserved + tables * of_table;
        let data = root + root_length.div_ceil(sector);
        let clusters = or(le16(19)?, le32(32)?).checked_sub(data)? / in_cluster;
        let width = match clusters {
            ..4085 => Width::Twelve,
            4085..65525 => Width::Sixteen,
            _ => Width::ThirtyTwo,
        };
        let at = if width == Width::ThirtyTwo { 71 } else { 43 };
        Some(Self {
            blocks,
            width,
            cluster: usize::try_from(in_cluster * sector).ok()?,
            table: reserved * sector,
            root: root * sector,
            data: data * sector,
            root_length: usize::try_from(root_length).ok()?,
            root_cluster: u32::try_from(le32(44)?).ok()?,
            clusters: u32::try_from(clusters).ok()?,
            label: boot.get(at..at + 11)?.try_into().ok()?,
        })
    }

    /// Label in the root directory, else the one in the boot record.
    ///
    /// # Errors
    /// The root directory cannot be read.
    pub(super) fn label(&self) -> io::Result<String> {
        let entries = entries(&self.root()?);
        let label = |entry: &&Entry| entry.attributes & VOLUME_LABEL != 0;
        let of_root = entries.iter().find(label).map(|entry| entry.name.clone());
        let of_boot = String::from_utf8_lossy(&self.label).trim().to_owned();
        Ok(of_root.unwrap_or(of_boot))
    }

    /// Reads a file by its path, separated by `/`.
    ///
    /// # Errors
    /// The file is absent or larger than 1 MiB, or the image is damaged.
    pub(super) fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let absent = || io::Error::new(io::ErrorKind::NotFound, format!("it has no {path}"));
        let mut directory = self.root()?;
        let mut names = path.split('/').peekable();
        while let Some(name) = names.next() {
            let entry = entries(&directory).into_iter().find(|entry| {
                entry.attributes & VOLUME_LABEL == 0 && entry.name.eq_ignore_ascii_case(name)
            });
            let entry = entry.ok_or_else(absent)?;
            let is_directory = entry.attributes & DIRECTORY != 0;
            match (names.peek().is_some(), is_directory) {
                (true, true) => directory = self.chain(entry.cluster, None)?,
                (false, false) => return self.chain(entry.cluster, Some(entry.length)),
                _ => return Err(absent()),
            }
        }
        Err(absent())
    }

    fn root(&self) -> io::Result<Vec<u8>> {
        match self.width {
            Width::ThirtyTwo => self.chain(self.root_cluster, None),
            Width::Twelve | Width::Sixteen => bytes(self.blocks, self.root, self.root_length),
        }
    }

    /// Content of a chain of clusters: `length` bytes of a file, or all of a directory, whose length FAT does not
    /// store.
    fn chain(&self, first: u32, length: Option<usize>) -> io::Result<Vec<u8>> {
        if length.is_some_and(|length| length > LARGEST) {
            return Err(damaged("a file of it has more than 1 MiB"));
        }
        let mut content = Vec::new();
        let mut cluster = first;
        while length.is_none_or(|length| content.len() < length) {
            if content.len() > LARGEST {
                return Err(damaged("a directory of it does not end"));
            }
            let index = cluster
                .checked_sub(2)
                .filter(|index| *index < self.clusters);
            let index = match index {
                Some(index) => index,
                None if length.is_none() && !content.is_empty() => break,
                None => return Err(damaged("a chain of clusters of it breaks off")),
            };
            let offset = self.data + u64::from(index) * self.cluster as u64;
            content.extend(bytes(self.blocks, offset, self.cluster)?);
            cluster = self.next(cluster)?;
        }
        content.truncate(length.unwrap_or(content.len()));
        Ok(content)
    }

    /// Next cluster of a chain. The values that end a chain are larger than any cluster.
    fn next(&self, cluster: u32) -> io::Result<u32> {
        let number = u64::from(cluster);
        let (offset, length) = match self.width {
            Width::Twelve => (number + number / 2, 2),
            Width::Sixteen => (number * 2, 2),
            Width::ThirtyTwo => (number * 4, 4),
        };
        let entry = bytes(self.blocks, self.table + offset, length)?;
        let value = entry
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u32::from(*byte));
        Ok(match self.width {
            Width::Twelve if cluster % 2 == 1 => value >> 4,
            Width::Twelve => value & 0xfff,
            Width::Sixteen => value,
            Width::ThirtyTwo => value & 0x0fff_ffff,
        })
    }
}

/// Entries of a directory, with their long names if present.
fn entries(directory: &[u8]) -> Vec<Entry> {
    let mut entries = Vec::new();
    let mut long: Vec<u16> = Vec::new();
    for entry in directory.chunks_exact(ENTRY) {
        let (first, attributes) = (byte(entry, 0), byte(entry, 11));
        match (first, attributes) {
            (0, _) => break,
            (0xe5, _) => long.clear(),
            (_, LONG_NAME) => {
                // The last part of a long name is stored first.
                let mut part = units(entry);
                part.append(&mut long);
                long = part;
            }
            _ => {
                let name = match long.is_empty() {
                    true => short_name(entry),
                    false => String::from_utf16_lossy(&long),
                };
                long.clear();
                entries.push(Entry {
                    name,
                    attributes,
                    cluster: le16(entry, 20) << 16 | le16(entry, 26),
                    length: usize::try_from(le16(entry, 30) << 16 | le16(entry, 28))
                        .unwrap_or(usize::MAX),
                });
            }
        }
    }
    entries
}

fn byte(entry: &[u8], at: usize) -> u8 {
    entry.get(at).copied().unwrap_or_default()
}

fn le16(entry: &[u8], at: usize) -> u32 {
    u32::from(byte(entry, at)) | u32::from(byte(entry, at + 1)) << 8
}

/// Up to thirteen UTF-16 units of a long name: one directory entry's share, cut at the terminator.
fn units(entry: &[u8]) -> Vec<u16> {
    let offsets = [1, 3, 5, 7, 9, 14, 16, 18, 20, 22, 24, 28, 30];
    let units = offsets.map(|at| u16::from_le_bytes([byte(entry, at), byte(entry, at + 1)]));
    units.into_iter().take_while(|unit| *unit != 0).collect()
}

/// Name in 8.3 form: the eleven bytes `META_D~1JSO` are `META_D~1.JSO`; a label has no dot.
fn short_name(entry: &[u8]) -> String {
    let part = |range| String::from_utf8_lossy(entry.get(range).unwrap_or_default()).into_owned();
    let (name, end) = (part(0..8), part(8..11));
    if byte(entry, 11) & VOLUME_LABEL != 0 {
        return format!("{name}{end}").trim().to_owned();
    }
    let (name, end) = (name.trim_end(), end.trim_end());
    match end {
        "" => name.to_owned(),
        _ => format!("{name}.{end}"),
    }
}
