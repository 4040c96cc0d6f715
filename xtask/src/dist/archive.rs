//! Files of a release in a compressed archive.

use std::io::Write;

use flate2::{Compression, GzBuilder};

use super::tar::{Node, Tree};

/// File of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Path below the directory of the archive.
    pub(super) name: String,
    pub(super) node: Node,
}

impl Entry {
    pub(super) fn file(name: &str, content: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            node: Node::file(content),
        }
    }

    pub(super) fn program(name: &str, content: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            node: Node::program(content),
        }
    }

    /// Content of a file; empty for a directory.
    pub(super) fn content(&self) -> &[u8] {
        match &self.node {
            Node::File { content, .. } => content,
            Node::Directory { .. } => &[],
        }
    }
}

/// Compressed archive of files in one directory; `time` is in seconds since 1970.
pub(super) fn compressed(directory: &str, entries: &[Entry], time: u64) -> anyhow::Result<Vec<u8>> {
    let mut tree = Tree::default();
    for entry in entries {
        tree.add(&entry.name, entry.node.clone());
    }
    gzip(&tree.archive(&format!("{directory}/"), time)?)
}

/// Compresses with a header without name and time, for reproducible bytes.
pub(super) fn gzip(content: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(content)?;
    Ok(gzip.finish()?)
}
