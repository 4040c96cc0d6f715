//! Hash of the dependencies of a step: files of the repository, command, and settings of tests in the environment.
//! Independent of the machine: of the path of the clone and of installed programs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use sha2::{Digest, Sha256};

#[cfg(test)]
mod tests;

/// Prefix of variables that change tests.
const SETTINGS: &str = "FERROSTACK_";
/// Bytes of the hash in the record.
const LENGTH: usize = 8;

/// Files of a repository with their hashes, each computed once.
pub(super) struct Digests {
    root: PathBuf,
    /// Files that git does not ignore, committed or not.
    files: BTreeSet<String>,
    digests: BTreeMap<String, String>,
    settings: Vec<(String, String)>,
}

impl Digests {
    /// Files of the repository at `root`, with the settings of this process.
    pub(super) fn from_root(root: &Path) -> anyhow::Result<Self> {
        let listed = Command::new("git")
            .args([
                "ls-files",
                "-z",
                "--cached",
                "--others",
                "--exclude-standard",
            ])
            .current_dir(root)
            .output()
            .context("git ls-files")?;
        let errors = String::from_utf8_lossy(&listed.stderr);
        ensure!(listed.status.success(), "git ls-files: {errors}");
        let text = String::from_utf8(listed.stdout).context("the name of a file")?;
        let files = text.split_terminator('\0').map(str::to_owned).collect();
        Ok(Self {
            root: root.to_owned(),
            files,
            digests: BTreeMap::new(),
            settings: settings(root),
        })
    }

    /// Hash of all files below `paths` by name, content and executable bit, of `command` and of the settings.
    ///
    /// # Errors
    ///
    /// A path without a file: an incomplete hash would hide changes.
    pub(super) fn inputs(
        &mut self,
        paths: &BTreeSet<&str>,
        command: &str,
    ) -> anyhow::Result<String> {
        let mut names = BTreeSet::new();
        for path in paths {
            let folder = format!("{path}/");
            let is_below = |name: &&String| *name == path || name.starts_with(&folder);
            let before = names.len();
            names.extend(self.files.iter().filter(is_below).cloned());
            ensure!(
                names.len() > before || names.iter().any(|name| is_below(&name)),
                "{path}, on which a step depends, has no file"
            );
        }
        let mut sum = Sha256::new();
        for name in names {
            // A committed file may be deleted in the working tree.
            if let Some(digest) = self.digest(&name)? {
                sum.update(format!("{name}\0{digest}\n"));
            }
        }
        sum.update(format!("\0{command}\0"));
        for (name, value) in &self.settings {
            sum.update(format!("{name}={value}\0"));
        }
        Ok(hex(sum.finalize().get(..LENGTH).unwrap_or_default()))
    }

    fn digest(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        if let Some(digest) = self.digests.get(name) {
            return Ok(Some(digest.clone()));
        }
        let path = self.root.join(name);
        let Ok(found) = fs::symlink_metadata(&path) else {
            return Ok(None);
        };
        let digest = if found.is_symlink() {
            let target = fs::read_link(&path).context(path.display().to_string())?;
            format!("link {}", target.display())
        } else if found.is_file() {
            let content = fs::read(&path).context(path.display().to_string())?;
            let executable = found.permissions().mode() & 0o100 != 0;
            format!("{} {}", u8::from(executable), hex(&Sha256::digest(content)))
        } else {
            return Ok(None);
        };
        self.digests.insert(name.to_owned(), digest.clone());
        Ok(Some(digest))
    }
}

/// Settings of this process, sorted. The path of the clone is not part of a value.
fn settings(root: &Path) -> Vec<(String, String)> {
    let root = root.display().to_string();
    let mut found: Vec<(String, String)> = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .filter(|(name, _)| name.starts_with(SETTINGS))
        .map(|(name, value)| (name, value.replace(&root, ".")))
        .collect();
    found.sort();
    found
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
