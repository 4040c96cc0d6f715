//! Tests of the changed files and of everything that uses them: a function of names and manifests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

use anyhow::Context as _;
use serde::Deserialize;

use crate::executables::{Executable, Target};
use crate::workspace;

#[cfg(test)]
mod tests;

/// Files on which every crate depends.
const EVERYTHING: [&str; 5] = [
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "clippy.toml",
    ".cargo/",
];

/// Crates whose tests run the seeds of the fuzz targets.
const CORPORA: [&str; 7] = [
    "crates/apimachinery",
    "crates/apiserver",
    "crates/cloud-conf",
    "crates/csi-node",
    "crates/keystone-auth",
    "crates/openstack",
    "crates/simulator",
];

/// Tests of files that belong to no single crate. Of all rows whose path is a prefix of the file's name, the ones with
/// the longest path count. Crates are in folders.
const FILES: [(&str, Tested); 15] = [
    ("config/", Tested::Crate("crates/api")),
    (".ci/", Tested::Crate("xtask")),
    ("fuzz/seeds/", Tested::Corpora),
    ("fuzz/src/", Tested::Corpora),
    ("README.md", Tested::Scenario("pages")),
    ("docs/", Tested::Scenario("pages")),
    ("docs/adr/", Tested::Nothing),
    ("tests/", Tested::Scenario("pages")),
    ("images/", Tested::Scenario("pages")),
    ("tests/suite/", Tested::Suite),
    ("tests/kubernetes/differential/", Tested::ApiServer),
    ("tests/kubernetes/scenario/", Tested::ApiServer),
    ("tests/kubernetes/answers/", Tested::ApiServer),
    ("tests/openstack/differential/", Tested::Cloud),
    ("tests/openstack/scenario/", Tested::Cloud),
];

/// Additional comparisons with real systems: path of the files, and test of the comparison.
const COMPARED: [(&str, &str); 7] = [
    ("crates/apimachinery/", API_SERVER),
    ("crates/apiserver/", API_SERVER),
    ("docs/reference/apiserver.md", API_SERVER),
    ("crates/simulator/", CLOUD),
    ("docs/project/simulator.md", CLOUD),
    ("tests/openstack/real-answers.json", CLOUD),
    ("config/crd/", API_SERVER),
];

/// Crate of the programs, which has the suite.
const PROGRAM: &str = "crates/ferrostack";
const SUITE: &str = "suite";
const API_SERVER: &str = "apiserver_differential";
const CLOUD: &str = "openstack_differential";
/// Scenario for changes of the crate of the programs, and of modules shared by scenarios.
const MAIN_JOB: &str = "main_job";
/// Files of the suite without a test.
const SHARED: [&str; 6] = [
    "cloud.rs",
    "cloud_managers.rs",
    "coverage.rs",
    "main.rs",
    "managers.rs",
    "process.rs",
];

#[derive(Clone, Copy, Debug)]
enum Tested {
    Nothing,
    /// The files count as files of the crate in this folder.
    Crate(&'static str),
    /// Seeds of the fuzz targets, as ordinary tests.
    Corpora,
    /// Scenario of the suite.
    Scenario(&'static str),
    /// Scenario in the file itself.
    Suite,
    /// Comparison of the embedded API server with the real one.
    ApiServer,
    /// Comparison of the simulated cloud with the real one.
    Cloud,
}

/// Package of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Package {
    /// Folder below the root.
    folder: String,
    /// Folders of workspace packages among the dependencies.
    uses: BTreeSet<String>,
    /// Folders of workspace packages among the dev-dependencies alone.
    tests_use: BTreeSet<String>,
}

/// Part of a package's tests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    /// Tests within the library and the programs.
    Units,
    All,
}

/// Selected tests, with reasons.
#[derive(Debug, Default)]
pub(super) struct Selection {
    /// [`Part`] and reason, by folder.
    packages: BTreeMap<String, (Part, String)>,
    /// Filters and reason, by folder and name. Without filters, the whole program runs.
    tests: BTreeMap<(String, String), (BTreeSet<String>, String)>,
    /// Changed files without a test here.
    untested: Vec<String>,
}

/// [`Selection`] for changed files; with `full` all tests of everything affected.
pub(super) fn select(packages: &[Package], changed: &[String], full: bool) -> Selection {
    let mut selection = Selection::default();
    for name in changed {
        selection.add(packages, name);
    }
    let changed: Vec<String> = selection.packages.keys().cloned().collect();
    if changed.iter().any(|folder| folder == PROGRAM) {
        let why = format!("{PROGRAM} changed");
        selection.test(PROGRAM, SUITE, Some(MAIN_JOB), &why);
    }
    for (folder, used) in users(packages, &changed) {
        let part = if full { Part::All } else { Part::Units };
        selection.package(&folder, part, format!("uses {used}"));
    }
    if full && selection.packages.contains_key(PROGRAM) {
        for name in [SUITE, API_SERVER, CLOUD] {
            selection.test(PROGRAM, name, None, "--full");
        }
    }
    selection
}

impl Selection {
    fn add(&mut self, packages: &[Package], name: &str) {
        let why = format!("{name} changed");
        if EVERYTHING.iter().any(|path| is_at(name, path)) {
            for package in packages {
                self.package(&package.folder, Part::All, why.clone());
            }
            return;
        }
        for (_, test) in COMPARED.iter().filter(|(path, _)| is_at(name, path)) {
            self.test(PROGRAM, test, None, &why);
        }
        let is_in = |package: &&Package| name.starts_with(&format!("{}/", package.folder));
        if let Some(package) = packages.iter().find(is_in) {
            return self.package(&package.folder, Part::All, why);
        }
        let rows = FILES.iter().filter(|(path, _)| is_at(name, path));
        match rows.max_by_key(|(path, _)| path.len()) {
            None | Some((_, Tested::Nothing)) => self.untested.push(name.to_owned()),
            Some((_, Tested::Crate(folder))) => self.package(folder, Part::All, why),
            Some((_, Tested::Corpora)) => {
                for package in CORPORA {
                    self.test(package, "corpora", None, &why);
                }
            }
            Some((_, Tested::Scenario(scenario))) => {
                self.test(PROGRAM, SUITE, Some(scenario), &why);
            }
            Some((_, Tested::Suite)) => self.test(PROGRAM, SUITE, Some(scenario(name)), &why),
            Some((_, Tested::ApiServer)) => self.test(PROGRAM, API_SERVER, None, &why),
            Some((_, Tested::Cloud)) => self.test(PROGRAM, CLOUD, None, &why),
        }
    }

    /// Adds a package. The first reason and the larger [`Part`] win.
    fn package(&mut self, folder: &str, part: Part, why: String) {
        let entry = self.packages.entry(folder.to_owned());
        let (known, _) = entry.or_insert((part, why));
        *known = part.max(*known);
    }

    fn test(&mut self, folder: &str, name: &str, scenario: Option<&str>, why: &str) {
        let key = (folder.to_owned(), name.to_owned());
        let is_new = !self.tests.contains_key(&key);
        let (filters, _) = self
            .tests
            .entry(key)
            .or_insert_with(|| (BTreeSet::new(), why.to_owned()));
        match scenario {
            None => filters.clear(),
            Some(scenario) if is_new || !filters.is_empty() => {
                filters.insert(format!("{scenario}::"));
            }
            Some(_) => {}
        }
    }

    /// Programs to run, with filters for each, first the ones of changed packages.
    pub(super) fn programs<'a>(
        &self,
        executables: &'a [Executable],
    ) -> Vec<(&'a Executable, Vec<String>)> {
        let mut found: Vec<(Part, &Executable, Vec<String>)> = Vec::new();
        for executable in executables {
            let package = self.packages.get(&executable.folder);
            let part = package.map(|(part, _)| *part);
            match (&executable.target, part) {
                (Target::Units(_), Some(part)) => found.push((part, executable, Vec::new())),
                (Target::Tests(name), part) => {
                    let key = (executable.folder.clone(), name.clone());
                    if let Some((filters, _)) = self.tests.get(&key) {
                        let filters = filters.iter().cloned().collect();
                        found.push((Part::All, executable, filters));
                    } else if part == Some(Part::All) && executable.folder != PROGRAM {
                        found.push((Part::All, executable, Vec::new()));
                    }
                }
                (Target::Units(_), None) => {}
            }
        }
        found.sort_by_key(|(part, executable, _)| {
            let is_user = *part == Part::Units;
            (is_user, executable.target.clone())
        });
        let programs = found.into_iter();
        programs
            .map(|(_, program, filters)| (program, filters))
            .collect()
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (folder, (part, why)) in &self.packages {
            match part {
                Part::Units => writeln!(f, "unit tests of {folder}: {why}")?,
                Part::All if folder == PROGRAM => writeln!(f, "unit tests of {folder}: {why}")?,
                Part::All => writeln!(f, "all tests of {folder}: {why}")?,
            }
        }
        for ((folder, name), (filters, why)) in &self.tests {
            let filters: Vec<&str> = filters.iter().map(String::as_str).collect();
            let scenarios = filters.join(" ");
            let space = if scenarios.is_empty() { "" } else { " " };
            writeln!(f, "{name}{space}{scenarios} of {folder}: {why}")?;
        }
        for name in &self.untested {
            writeln!(f, "no tests: {name}")?;
        }
        Ok(())
    }
}

/// Scenario of a file of the suite: the file, or the directory with the scenario's name.
fn scenario(name: &str) -> &str {
    let below = name.strip_prefix("tests/suite/").unwrap_or(name);
    let file = below.split('/').next().unwrap_or_default();
    let scenario = file.strip_suffix(".rs").unwrap_or(file);
    if SHARED.contains(&file) {
        MAIN_JOB
    } else {
        scenario
    }
}

/// True if `name` is the path, or below it if the path is a folder.
fn is_at(name: &str, path: &str) -> bool {
    name == path || (path.ends_with('/') && name.starts_with(path))
}

/// Transitive users of the changed packages, each with the dependency in question. A package that uses a changed one
/// only in tests ends its line: its own users do not contain the change.
fn users(packages: &[Package], changed: &[String]) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Vec<String> = changed.to_vec();
    while let Some(used) = open.pop() {
        for user in packages.iter().filter(|it| it.uses.contains(&used)) {
            if !changed.contains(&user.folder) && !found.contains_key(&user.folder) {
                found.insert(user.folder.clone(), used.clone());
                open.push(user.folder.clone());
            }
        }
    }
    let affected: BTreeSet<String> = changed.iter().chain(found.keys()).cloned().collect();
    for package in packages.iter().filter(|it| !affected.contains(&it.folder)) {
        if let Some(used) = package.tests_use.intersection(&affected).next() {
            found.insert(package.folder.clone(), format!("{used} in tests"));
        }
    }
    found
}

/// [`Package`]s of the workspace, from `cargo metadata`.
pub(super) fn packages(root: &Path) -> anyhow::Result<Vec<Package>> {
    parse(root, &String::from_utf8_lossy(&workspace::metadata(root)?))
}

fn parse(root: &Path, metadata: &str) -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Described>,
    }
    #[derive(Deserialize)]
    struct Described {
        manifest_path: String,
        dependencies: Vec<Dependency>,
    }
    #[derive(Deserialize)]
    struct Dependency {
        /// `dev` or `build`; absent for an ordinary dependency.
        kind: Option<String>,
        /// Path of a package of the workspace.
        path: Option<String>,
    }
    let below = |path: &str| {
        let path = Path::new(path).strip_prefix(root).ok()?;
        Some(path.display().to_string())
    };
    let metadata: Metadata = serde_json::from_str(metadata).context("cargo metadata")?;
    let mut packages = Vec::new();
    for described in metadata.packages {
        let folder = described.manifest_path.trim_end_matches("/Cargo.toml");
        let folder = below(folder).with_context(|| format!("{folder} is not below the root"))?;
        let uses = |tests: bool| {
            let dependencies = described.dependencies.iter();
            dependencies
                .filter(|it| (it.kind.as_deref() == Some("dev")) == tests)
                .filter_map(|it| below(it.path.as_deref()?))
                .collect()
        };
        packages.push(Package {
            uses: uses(false),
            tests_use: uses(true),
            folder,
        });
    }
    Ok(packages)
}
