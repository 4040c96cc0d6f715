//! Shared libraries that a program needs from packages of this machine's distribution, with their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};

use super::elf::{self, Needs};
use crate::linked;

/// A package that files were taken from.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Package {
    pub(super) name: String,
    pub(super) version: String,
    /// The package of the sources, and its version.
    pub(super) source: String,
    /// The distribution, such as `debian`.
    pub(super) distribution: String,
}

impl Package {
    /// Its copyright file.
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

/// The libraries that a program names, and those that these name in turn. `triple` is a target of Rust.
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

/// The directory name of libraries for a target: that of its C compiler.
pub(super) fn multiarch(triple: &str) -> String {
    triple.replace("-unknown-", "-")
}

/// Where libraries are: those of this machine, and those of a cross compiler.
fn places(triple: &str) -> [PathBuf; 3] {
    let multiarch = multiarch(triple);
    [
        format!("/lib/{multiarch}"),
        format!("/usr/lib/{multiarch}"),
        format!("/usr/{multiarch}/lib"),
    ]
    .map(PathBuf::from)
}

/// The package that a file belongs to. Where /lib is a link, a package may know it by either path.
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

/// An installed package.
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
