//! Reproducible tar archives (ustar): sorted, with a fixed time, owned by user 0.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};

/// Unit of an archive, in bytes.
const BLOCK: usize = 512;
/// Maximum length in bytes of a path without its last part, and of the last part.
const LONGEST: (usize, usize) = (155, 100);

/// A file or a directory.
#[derive(Clone, Debug)]
pub(super) enum Node {
    Directory { mode: u32 },
    File { mode: u32, content: Vec<u8> },
}

impl Node {
    pub(super) fn file(content: impl Into<Vec<u8>>) -> Self {
        Self::File {
            mode: 0o644,
            content: content.into(),
        }
    }

    pub(super) fn program(content: impl Into<Vec<u8>>) -> Self {
        Self::File {
            mode: 0o755,
            content: content.into(),
        }
    }
}

/// Files by path; paths are relative, without `.` and `..`.
#[derive(Debug, Default)]
pub(super) struct Tree(BTreeMap<String, Node>);

impl Tree {
    /// Adds a file, and missing parent directories.
    pub(super) fn add(&mut self, path: &str, node: Node) {
        let above = path.match_indices('/').map(|(at, _)| &path[..at]);
        for directory in above.filter(|it| !it.is_empty()) {
            let directory = self.0.entry(directory.to_owned());
            directory.or_insert(Node::Directory { mode: 0o755 });
        }
        self.0.insert(path.to_owned(), node);
    }

    /// Paths with their [`Node`]s, sorted.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.0.iter().map(|(path, node)| (path.as_str(), node))
    }

    /// Bytes of the archive; `start` is a prefix for each path, such as `./`. `time` is in seconds since 1970.
    pub(super) fn archive(&self, start: &str, time: u64) -> anyhow::Result<Vec<u8>> {
        let mut archive = Vec::new();
        for (path, node) in self.iter() {
            let path = format!("{start}{path}");
            let empty = Vec::new();
            let (path, mode, kind, content) = match node {
                Node::Directory { mode } => (format!("{path}/"), *mode, b'5', &empty),
                Node::File { mode, content } => (path, *mode, b'0', content),
            };
            let size = content.len() as u64;
            let header = header(&path, mode, kind, size, time).with_context(|| path.clone())?;
            archive.extend_from_slice(&header);
            archive.extend_from_slice(content);
            archive.resize(archive.len().next_multiple_of(BLOCK), 0);
        }
        archive.resize(archive.len() + 2 * BLOCK, 0);
        Ok(archive)
    }
}

fn header(path: &str, mode: u32, kind: u8, size: u64, time: u64) -> anyhow::Result<[u8; BLOCK]> {
    let (prefix, name) = split(path)?;
    let mut header = [0; BLOCK];
    put(&mut header, 0, name.as_bytes());
    octal(&mut header, 100, 8, mode.into())?;
    // Owner and group.
    octal(&mut header, 108, 8, 0)?;
    octal(&mut header, 116, 8, 0)?;
    octal(&mut header, 124, 12, size)?;
    octal(&mut header, 136, 12, time)?;
    put(&mut header, 148, &[b' '; 8]);
    put(&mut header, 156, &[kind]);
    put(&mut header, 257, b"ustar\x0000");
    // Names of owner and group, which take precedence over the numbers.
    put(&mut header, 265, b"root");
    put(&mut header, 297, b"root");
    // Device numbers.
    octal(&mut header, 329, 8, 0)?;
    octal(&mut header, 337, 8, 0)?;
    put(&mut header, 345, prefix.as_bytes());
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    put(&mut header, 148, format!("{sum:06o}\0 ").as_bytes());
    Ok(header)
}

/// Splits a path into the two fields of a header.
fn split(path: &str) -> anyhow::Result<(&str, &str)> {
    if path.len() <= LONGEST.1 {
        return Ok(("", path));
    }
    let mut parts = path.match_indices('/').map(|(at, _)| at);
    let fits = |at: &usize| *at <= LONGEST.0 && path.len() - at - 1 <= LONGEST.1;
    let at = parts.find(fits).context("the path is too long for ustar")?;
    Ok((&path[..at], &path[at + 1..]))
}

fn put(header: &mut [u8; BLOCK], at: usize, value: &[u8]) {
    for (byte, value) in header.iter_mut().skip(at).zip(value) {
        *byte = *value;
    }
}

/// Writes a number in octal digits with a terminating zero byte.
fn octal(header: &mut [u8; BLOCK], at: usize, width: usize, number: u64) -> anyhow::Result<()> {
    let digits = format!("{number:0width$o}\0", width = width - 1);
    ensure!(digits.len() == width, "{number} is too large for ustar");
    put(header, at, digits.as_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::linked;

    #[test]
    fn gnu_tar_reads_what_is_written() {
        let mut tree = Tree::default();
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        tree.add("usr/bin/program", Node::program("12345"));
        tree.add("etc/empty", Node::file(""));
        tree.add(&long, Node::file("x".repeat(1000)));
        tree.add("tmp", Node::Directory { mode: 0o1777 });
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("a.tar");
        std::fs::write(&file, tree.archive("./", 1_700_000_000).unwrap()).unwrap();
        let mut tar = Command::new("tar");
        tar.args(["--list", "--verbose", "--full-time", "--numeric-owner"]);
        let listed = linked::output(tar.arg("--file").arg(&file).env("TZ", "UTC")).unwrap();
        let lines: Vec<String> = listed
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let at = "2023-11-14 22:13:20";
        assert_eq!(
            lines,
            [
                format!("drwxr-xr-x 0/0 0 {at} ./{}/", "d".repeat(120)),
                format!("-rw-r--r-- 0/0 1000 {at} ./{long}"),
                format!("drwxr-xr-x 0/0 0 {at} ./etc/"),
                format!("-rw-r--r-- 0/0 0 {at} ./etc/empty"),
                format!("drwxrwxrwt 0/0 0 {at} ./tmp/"),
                format!("drwxr-xr-x 0/0 0 {at} ./usr/"),
                format!("drwxr-xr-x 0/0 0 {at} ./usr/bin/"),
                format!("-rwxr-xr-x 0/0 5 {at} ./usr/bin/program"),
            ]
        );
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for path in ["f".repeat(101), format!("{}/f", "d".repeat(156))] {
            let mut tree = Tree::default();
            tree.add(&path, Node::file(""));
            assert!(tree.archive("", 0).is_err(), "{path}");
        }
        assert!(header("f", 0o644, b'0', 1 << 33, 0).is_err());
    }
}
