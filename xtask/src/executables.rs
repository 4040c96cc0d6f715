//! Test programs built by cargo, from its messages.

use std::fmt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Executable {
    /// Directory of the package, below the root.
    pub(crate) folder: String,
    pub(crate) target: Target,
    pub(crate) path: PathBuf,
}

/// Part of a package under test.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// Unit tests of the library or a program.
    Units(String),
    /// File of integration tests.
    Tests(String),
}

impl fmt::Display for Executable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.target {
            Target::Units(name) => write!(f, "{} (units of {name})", self.folder),
            Target::Tests(name) => write!(f, "{} ({name})", self.folder),
        }
    }
}

/// Message of cargo; for other reasons than `compiler-artifact` only the reason is read.
#[derive(Debug, Deserialize)]
struct Message {
    reason: String,
    manifest_path: Option<PathBuf>,
    target: Option<Named>,
    profile: Option<Profile>,
    executable: Option<PathBuf>,
}

#[derive(Debug, Deserialize)]
struct Named {
    name: String,
    kind: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Profile {
    test: bool,
}

/// [`Executable`]s of packages below `root`.
pub(crate) fn parse(root: &Path, messages: &str) -> anyhow::Result<Vec<Executable>> {
    let mut found = Vec::new();
    for message in artifacts(messages)? {
        let (Some(path), Some(target)) = (message.executable, message.target) else {
            continue;
        };
        let folder = message.manifest_path.as_deref().and_then(Path::parent);
        let folder = folder.and_then(|folder| folder.strip_prefix(root).ok());
        let (Some(folder), Some(Profile { test: true })) = (folder, message.profile) else {
            continue;
        };
        let is_tests = target.kind.iter().any(|kind| kind == "test");
        found.push(Executable {
            folder: folder.display().to_string(),
            target: if is_tests {
                Target::Tests(target.name)
            } else {
                Target::Units(target.name)
            },
            path,
        });
    }
    Ok(found)
}

/// Path of this program, as built by cargo.
pub(crate) fn xtask(messages: &str) -> anyhow::Result<String> {
    let is_xtask = |message: &Message| {
        let target = message.target.as_ref();
        let profile = message.profile.as_ref();
        target.is_some_and(|it| it.name == "xtask") && profile.is_some_and(|it| !it.test)
    };
    let found = artifacts(messages)?.into_iter().find(is_xtask);
    let path = found.and_then(|message| message.executable);
    Ok(path.context("cargo built no xtask")?.display().to_string())
}

fn artifacts(messages: &str) -> anyhow::Result<Vec<Message>> {
    let mut found = Vec::new();
    // Other lines are output of build scripts.
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Message = serde_json::from_str(line).context("a message of cargo")?;
        if message.reason == "compiler-artifact" {
            found.push(message);
        }
    }
    Ok(found)
}
