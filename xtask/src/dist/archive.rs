//! Archives whose bytes follow from their files alone.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use flate2::{Compression, GzBuilder};

/// A file of an archive.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// Its path below the directory of the archive.
    name: String,
    content: Vec<u8>,
    mode: u32,
}

impl Entry {
    pub(super) fn file(name: &str, content: Vec<u8>) -> Self {
        Self {
            name: name.to_owned(),
            content,
            mode: 0o644,
        }
    }

    pub(super) fn program(name: &str, content: Vec<u8>) -> Self {
        Self {
            mode: 0o755,
            ..Self::file(name, content)
        }
    }
}

/// A compressed archive of files in one directory, sorted by name, with one time (seconds since 1970), of the owner 0.
pub(super) fn compressed(directory: &str, entries: &[Entry], time: u64) -> anyhow::Result<Vec<u8>> {
    let place = tempfile::tempdir()?;
    let mut names = Vec::new();
    for entry in entries {
        let name = format!("{directory}/{}", entry.name);
        write(&place.path().join(&name), entry).with_context(|| name.clone())?;
        names.push(name);
    }
    names.sort();
    let output = Command::new("tar")
        .args(["--create", "--format=ustar", "--numeric-owner"])
        .args(["--owner=0", "--group=0", &format!("--mtime=@{time}")])
        .arg("--directory")
        .arg(place.path())
        .arg("--")
        .args(names)
        .output()
        .context("tar")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "tar: {}: {errors}", output.status);
    // The header of gzip gets neither a name nor a time.
    let mut gzip = GzBuilder::new().write(Vec::new(), Compression::best());
    gzip.write_all(&output.stdout)?;
    Ok(gzip.finish()?)
}

fn write(path: &Path, entry: &Entry) -> anyhow::Result<()> {
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory)?;
    }
    fs::write(path, &entry.content)?;
    // Whatever the umask.
    Ok(fs::set_permissions(
        path,
        Permissions::from_mode(entry.mode),
    )?)
}
