//! What the program writes itself: manual pages and completions.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::VERSION;
use super::archive::Entry;
use super::builds::{self, Program};
use crate::linked;

/// Shells, and the file in which each looks for the completions of `ferrostack`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "completions/ferrostack.bash"),
    ("fish", "completions/ferrostack.fish"),
    ("zsh", "completions/_ferrostack"),
];

/// The program that writes the documents of all: one that runs here. They do not depend on the target.
pub(super) fn author(root: &Path, programs: &[Program]) -> anyhow::Result<PathBuf> {
    let host = linked::host()?;
    if let Some(program) = programs.iter().find(|program| program.target == host) {
        return Ok(program.file.clone());
    }
    let mut native = builds::all(root, std::slice::from_ref(&host))?;
    let program = native.pop().context("the program for this machine")?;
    Ok(program.file)
}

/// The documents that a program writes. An error if it is of another version.
pub(super) fn of(program: &Path) -> anyhow::Result<Vec<Entry>> {
    let version = linked::output(Command::new(program).args(["version", "--client"]))?;
    ensure!(
        version.trim() == format!("ferrostack {VERSION}"),
        "{} is {}, and the release is {VERSION}",
        program.display(),
        version.trim()
    );
    let mut entries = Vec::new();
    for (shell, file) in SHELLS {
        let script = linked::output(Command::new(program).args(["completion", shell]))?;
        entries.push(Entry::file(file, script.into_bytes()));
    }
    let directory = tempfile::tempdir()?;
    linked::output(Command::new(program).arg("man").arg(directory.path()))?;
    for page in fs::read_dir(directory.path())? {
        let page = page?;
        let name = format!("man/man1/{}", page.file_name().to_string_lossy());
        entries.push(Entry::file(&name, fs::read(page.path())?));
    }
    let pages = entries.len() - SHELLS.len();
    ensure!(pages > 0, "{} man: it wrote no page", program.display());
    Ok(entries)
}
