//! Targets for input of the CSI node: disks and mountinfo. Seeds of disks are short; bytes behind their end are zero.

use csi_node::{metadata, mountinfo, probe};

/// Probes a disk with [`probe::probe`], and reads the same bytes as an image of a config drive: no other byte than zero
/// passes for blank.
pub fn disk(data: &[u8]) {
    if let Ok(content) = probe::probe(&data) {
        let blank = content == probe::Content::Blank;
        assert!(!blank || data.iter().all(|byte| *byte == 0) || data.len() > 5 << 20);
    }
    if let Ok(Some(document)) = metadata::read_image(&data) {
        assert!(document.len() <= 1 << 20);
        drop(metadata::Facts::parse(&document));
    }
}

/// Parses with [`mountinfo::parse`]: a mount for each line, or an error with the number of a line.
pub fn mounts(data: &[u8]) {
    let lines = data
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    match mountinfo::parse(data) {
        Ok(mounts) => assert_eq!(mounts.len(), lines.count()),
        Err(malformed) => assert!(malformed.line > 0),
    }
}
