//! What the node half of the CSI driver reads: disks and mountinfo. Seeds of disks are short: what follows is zero.

use csi_node::{metadata, mountinfo, probe};

/// A disk, or an image of a config drive: an answer, and no byte that is not zero is taken for blank.
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

/// A mountinfo: each line is a mount, or the first that is none is named.
pub fn mounts(data: &[u8]) {
    let lines = data
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty());
    match mountinfo::parse(data) {
        Ok(mounts) => assert_eq!(mounts.len(), lines.count()),
        Err(malformed) => assert!(malformed.line > 0),
    }
}
