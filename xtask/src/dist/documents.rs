//! Documents written by the program: manual pages, completions, files for clusterctl, and the Helm chart.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::VERSION;
use super::archive::Entry;
use super::builds::{self, Program};
use crate::linked;

/// Shells, and their files for the completions of `ferrostack`.
const SHELLS: [(&str, &str); 3] = [
    ("bash", "completions/ferrostack.bash"),
    ("fish", "completions/ferrostack.fish"),
    ("zsh", "completions/_ferrostack"),
];

/// Program that can run here and writes the documents, the same for every target.
pub(super) fn author(root: &Path, programs: &[Program]) -> anyhow::Result<PathBuf> {
    let host = linked::host()?;
    if let Some(program) = programs.iter().find(|program| program.target == host) {
        return Ok(program.file.clone());
    }
    let mut native = builds::all(root, std::slice::from_ref(&host))?;
    let program = native.pop().context("the program for this machine")?;
    Ok(program.file)
}

/// Documents written by a program. An error if the program has another version.
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

/// Release files for clusterctl, by name: components of each provider, metadata, templates.
pub(super) fn for_clusterctl(program: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let place = tempfile::tempdir()?;
    let directory = place.path().join("repository");
    let mut command = Command::new(program);
    command.args(["generate", "repository"]).arg(&directory);
    linked::output(&mut command)?;
    let mut files = BTreeMap::new();
    // Paths are PROVIDER/VERSION/FILE; all providers have the same metadata.
    for provider in directories(&directory)? {
        for version in directories(&provider)? {
            for file in fs::read_dir(&version)? {
                let file = file?;
                let name = file.file_name().to_string_lossy().into_owned();
                let content = fs::read(file.path())?;
                if let Some(other) = files.insert(name.clone(), content) {
                    ensure!(files[&name] == other, "two providers have other {name}");
                }
            }
        }
    }
    ensure!(
        files.contains_key("infrastructure-components.yaml"),
        "{}: it wrote no components",
        program.display()
    );
    Ok(files)
}

/// Files of the Helm chart, below the directory of its name.
pub(super) fn chart(program: &Path) -> anyhow::Result<Vec<Entry>> {
    let place = tempfile::tempdir()?;
    let directory = place.path().join("chart");
    let mut command = Command::new(program);
    command.args(["generate", "chart"]).arg(&directory);
    linked::output(&mut command)?;
    let mut entries = Vec::new();
    let mut below = vec![directory.clone()];
    while let Some(place) = below.pop() {
        for found in fs::read_dir(&place).with_context(|| place.display().to_string())? {
            let path = found?.path();
            if path.is_dir() {
                below.push(path);
                continue;
            }
            let name = path.strip_prefix(&directory)?.to_string_lossy();
            entries.push(Entry::file(&name, fs::read(&path)?));
        }
    }
    let version = format!("version: {VERSION}");
    let described = entries.iter().find(|it| it.name == "Chart.yaml");
    let described = described.map(|it| String::from_utf8_lossy(it.content()).into_owned());
    ensure!(
        described.is_some_and(|text| text.lines().any(|line| line == version)),
        "{}: it wrote no chart of {VERSION}",
        program.display()
    );
    Ok(entries)
}

fn directories(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            found.push(path);
        }
    }
    Ok(found)
}
