//! Crates linked into the program for a target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// Settings of cargo that would add crates of tests and tasks.
const UNIFICATION: [&str; 2] = [
    "CARGO_RESOLVER_FEATURE_UNIFICATION",
    "CARGO_UNSTABLE_FEATURE_UNIFICATION",
];

/// Name and version of a crate. Unique, since all crates are from crates.io or the workspace (deny.toml).
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct Id {
    pub(crate) name: String,
    pub(crate) version: String,
}

/// Crate linked into the program.
#[derive(Debug)]
pub(crate) struct Crate {
    pub(crate) id: Id,
    /// SPDX expression.
    pub(crate) licence: String,
    /// SHA-256 of the archive on crates.io, in hexadecimal digits; `None` for a crate of the workspace.
    pub(crate) checksum: Option<String>,
    pub(crate) repository: Option<String>,
    /// Directory of the sources.
    pub(crate) directory: PathBuf,
    pub(crate) needs: BTreeSet<Id>,
}

impl Crate {
    /// True for a crate of the workspace.
    pub(crate) fn is_of_the_workspace(&self) -> bool {
        self.checksum.is_none()
    }
}

/// [`Command`] for a cargo that resolves features for the program alone.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(root);
    for setting in UNIFICATION {
        cargo.env_remove(setting);
    }
    cargo
}

/// [`Crate`]s in the program built for `target`, sorted by name and version.
pub(crate) fn crates(root: &Path, target: &str) -> anyhow::Result<Vec<Crate>> {
    let format = ["--format", " {p}", "--prefix", "depth"];
    let mut tree = cargo(root);
    tree.args(["tree", "--locked", "--package", "ferrostack"])
        .args(["--edges", "normal,no-proc-macro", "--target", target])
        .args(format);
    let needs = edges(&output(&mut tree)?)?;
    let mut metadata = cargo(root);
    metadata.args(["metadata", "--locked", "--format-version", "1"]);
    metadata.args(["--filter-platform", target]);
    let metadata: Metadata = serde_json::from_str(&output(&mut metadata)?)?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock")).context("Cargo.lock")?;
    described(needs, metadata, &checksums(&lock))
}

/// Target of this machine.
pub(crate) fn host() -> anyhow::Result<String> {
    let version = output(Command::new("rustc").arg("-vV"))?;
    let mut lines = version.lines();
    let host = lines.find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc -vV names no host")?.to_owned())
}

/// Standard output of a command; an error has its standard error.
pub(crate) fn output(command: &mut Command) -> anyhow::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| name.clone())?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        bail!("{name}: {}: {}", output.status, errors.trim());
    }
    String::from_utf8(output.stdout).with_context(|| format!("what {name} prints"))
}

/// Parses lines such as `2 serde v1.0.0 (*)`: depth in the tree, and a crate. The dependencies of a crate follow its
/// first occurrence.
fn edges(tree: &str) -> anyhow::Result<BTreeMap<Id, BTreeSet<Id>>> {
    let mut needs: BTreeMap<Id, BTreeSet<Id>> = BTreeMap::new();
    let mut path: Vec<Id> = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let mut words = line.split_whitespace();
        let (Some(depth), Some(name), Some(version)) = (words.next(), words.next(), words.next())
        else {
            bail!("cargo tree: a line without a crate: {line}");
        };
        let id = Id {
            name: name.to_owned(),
            version: version.trim_start_matches('v').to_owned(),
        };
        path.truncate(depth.parse().with_context(|| line.to_owned())?);
        if let Some(parent) = path.last() {
            needs.entry(parent.clone()).or_default().insert(id.clone());
        }
        needs.entry(id.clone()).or_default();
        path.push(id);
    }
    ensure!(!needs.is_empty(), "cargo tree names no crate");
    Ok(needs)
}

fn described(
    needs: BTreeMap<Id, BTreeSet<Id>>,
    metadata: Metadata,
    checksums: &BTreeMap<Id, String>,
) -> anyhow::Result<Vec<Crate>> {
    let mut packages: BTreeMap<Id, Package> = BTreeMap::new();
    for package in metadata.packages {
        let id = Id {
            name: package.name.clone(),
            version: package.version.clone(),
        };
        packages.insert(id, package);
    }
    let describe = |(id, needs): (Id, BTreeSet<Id>)| {
        let of = format!("the crate {} {}", id.name, id.version);
        let package = packages
            .remove(&id)
            .with_context(|| format!("cargo metadata does not name {of}"))?;
        let licence = package
            .license
            .with_context(|| format!("{of} has no key `license`"))?;
        let checksum = checksums.get(&id).cloned();
        let is_foreign = package.source.is_some();
        ensure!(
            is_foreign == checksum.is_some(),
            "{of} is not in Cargo.lock as in cargo metadata: its source or its checksum is missing"
        );
        let manifest = package.manifest_path.parent();
        Ok(Crate {
            id,
            // Form from before SPDX: MIT/Apache-2.0.
            licence: licence.replace(" / ", "/").replace('/', " OR "),
            checksum,
            repository: package.repository,
            directory: manifest.context("a manifest has a directory")?.to_owned(),
            needs,
        })
    };
    needs.into_iter().map(describe).collect()
}

/// Checksums in Cargo.lock, in cargo's format of one key on each line.
pub(crate) fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let mut sums = BTreeMap::new();
    for package in lock.split("[[package]]").skip(1) {
        let value = |key: &str| {
            let start = format!("{key} = \"");
            let mut lines = package.lines();
            lines.find_map(|line| Some(line.strip_prefix(&start)?.trim_end_matches('"').to_owned()))
        };
        if let (Some(name), Some(version), Some(sum)) =
            (value("name"), value("version"), value("checksum"))
        {
            sums.insert(Id { name, version }, sum);
        }
    }
    sums
}

/// Output of `cargo metadata`.
#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Debug, Deserialize)]
struct Package {
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
    source: Option<String>,
    manifest_path: PathBuf,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> Id {
        Id {
            name: name.to_owned(),
            version: version.to_owned(),
        }
    }

    #[test]
    fn a_tree_is_read_with_what_each_crate_needs() {
        let tree = "0 app v0.1.0 (/src/app)\n1 serde v1.0.2\n2 core v1.0.2\n1 json v1.5.0\n2 serde v1.0.2 (*)\n2 itoa v0.4.0\n1 itoa v1.0.0\n";
        let needs = edges(tree).unwrap();
        let of = |name, version| needs.get(&id(name, version)).unwrap();
        assert_eq!(needs.len(), 6);
        assert!(of("app", "0.1.0").contains(&id("itoa", "1.0.0")));
        assert!(!of("app", "0.1.0").contains(&id("itoa", "0.4.0")));
        assert_eq!(of("serde", "1.0.2").len(), 1, "where it is named first");
        assert!(of("json", "1.5.0").contains(&id("itoa", "0.4.0")));
        assert!(edges("").is_err());
    }

    #[test]
    fn checksums_are_of_a_name_and_a_version() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\nchecksum = \"01\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"2.0.0\"\n";
        let sums = checksums(lock);
        assert_eq!(sums.len(), 1);
        assert_eq!(sums.get(&id("a", "1.0.0")).unwrap(), "01");
    }

    #[test]
    fn the_program_contains_what_it_calls_and_not_what_tests_or_macros_use() {
        let crates = crates(&crate::root(), &host().unwrap()).unwrap();
        let has = |name: &str| crates.iter().any(|krate| krate.id.name == name);
        for name in [
            "ferrostack",
            "ferrostack-heap",
            "kube",
            "ring",
            "libsqlite3-sys",
        ] {
            assert!(has(name), "{name}");
        }
        for name in [
            "xtask",
            "ferrostack-testbed",
            "proptest",
            "serde_derive",
            "cc",
        ] {
            assert!(!has(name), "{name}");
        }
        let program = crates.iter().find(|krate| krate.id.name == "ferrostack");
        assert!(program.unwrap().is_of_the_workspace());
        assert!(
            program
                .unwrap()
                .needs
                .contains(&id("ferrostack-heap", "0.1.0"))
        );
    }
}
