//! Shared libraries for a program, from packages of this machine's distribution, with licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::elf::{self, Needs};
use crate::linked;

/// Package of an included file.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// Source package and its version.
    pub(super) source: String,
    /// The distribution, such as `debian`.
    pub(super) distribution: String,
}

impl Package {
    /// Copyright file of the package.
    pub(super) fn copyright(&self) -> anyhow::Result<Vec<u8>> {
        let file = format!("/usr/share/doc/{}/copyright", self.name);
        fs::read(&file).with_context(|| file.clone())
    }
}

/// A shared library.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) name: String,
    pub(super) content: Vec<u8>,
    pub(super) package: Package,
}

/// Libraries that a program names, and transitively their own. `triple` is a target of Rust.
pub(super) fn all(needs: &Needs, triple: &str) -> anyhow::Result<Vec<Library>> {
    let mut found: BTreeMap<String, Library> = BTreeMap::new();
    let mut open: BTreeSet<String> = names(needs);
    while let Some(name) = open.pop_first() {
        let file = places(triple)
            .into_iter()
            .map(|place| place.join(&name))
            .find(|file| file.is_file())
            .with_context(|| format!("{name} is not on this machine"))?;
        let content = fs::read(&file).with_context(|| file.display().to_string())?;
        let (machine, more) = elf::named(&content).with_context(|| file.display().to_string())?;
        ensure!(
            triple.starts_with(machine),
            "{} is for {machine}",
            file.display()
        );
        open.extend(more.into_iter().filter(|it| !found.contains_key(it)));
        let package = owner(&file)?;
        let library = Library {
            name: name.clone(),
            content,
            package,
        };
        found.insert(name, library);
    }
    Ok(found.into_values().collect())
}

fn names(needs: &Needs) -> BTreeSet<String> {
    match needs {
        Needs::Nothing => BTreeSet::new(),
        Needs::Libraries { names, .. } => names.clone(),
    }
}

/// Directory name of libraries for a target: the multiarch triple of Debian.
pub(super) fn multiarch(triple: &str) -> String {
    triple.replace("-unknown-", "-")
}

/// Directories of libraries: of this machine, and of a cross compiler.
fn places(triple: &str) -> [PathBuf; 3] {
    let multiarch = multiarch(triple);
    [
        format!("/lib/{multiarch}"),
        format!("/usr/lib/{multiarch}"),
        format!("/usr/{multiarch}/lib"),
    ]
    .map(PathBuf::from)
}

/// [`Package`] that owns a file. If /lib is a link, dpkg may know the file by either path.
fn owner(file: &Path) -> anyhow::Result<Package> {
    let path = file.display().to_string();
    let other = match path.strip_prefix("/usr") {
        Some(rest) => rest.to_owned(),
        None => format!("/usr{path}"),
    };
    let searched = [path.clone(), other].into_iter().find_map(|path| {
        let mut search = Command::new("dpkg-query");
        linked::output(search.arg("--search").arg(path)).ok()
    });
    let searched = searched.with_context(|| format!("{path} is of no package of dpkg"))?;
    let (names, _) = searched.split_once(": ").unwrap_or((&searched, ""));
    package(names.trim())
}

/// [`Package`] by name, if installed.
pub(super) fn package(name: &str) -> anyhow::Result<Package> {
    let mut show = Command::new("dpkg-query");
    show.args(["--show", "--showformat"])
        .arg("${Package}\t${Version}\t${source:Package} ${source:Version}")
        .arg(name);
    let line = linked::output(&mut show).with_context(|| {
        format!("{name} is needed, and is installed by: apt-get install {name}")
    })?;
    let mut parts = line.trim().split('\t').map(str::to_owned);
    let mut next = || parts.next().context("dpkg-query: an incomplete line");
    Ok(Package {
        name: next()?,
        version: next()?,
        source: next()?,
        distribution: distribution()?,
    })
}

fn distribution() -> anyhow::Result<String> {
    let release = fs::read_to_string("/etc/os-release").context("/etc/os-release")?;
    let id = release.lines().find_map(|line| line.strip_prefix("ID="));
    Ok(id.unwrap_or("debian").trim_matches('"').to_owned())
}
