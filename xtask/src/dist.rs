//! Parts of a release: for each target an archive, a Debian package and an image, with bills of materials; the files
//! for clusterctl; the Helm chart; and the checksums of all.
//!
//! - [`builds`]: targets, and programs built for each
//! - [`documents`]: documents written by the program: manual pages, completions, files for clusterctl, chart
//! - [`elf`]: requirements of a program on its machine
//! - [`tar`]: reproducible tar archives
//! - [`archive`]: compressed archive of files
//! - [`libraries`]: files and packages of the libraries that a program names
//! - [`image`](mod@image): OCI image with program and libraries, in one archive
//! - [`deb`]: Debian package with program, documents and units
//! - [`materials`]: bill of materials of crates (CycloneDX)

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use sha2::{Digest, Sha256};

use crate::linked::{self, Crate};
use crate::tidy::changelog;
use crate::{notices, report};

mod archive;
mod builds;
mod deb;
mod documents;
mod elf;
mod image;
mod libraries;
mod materials;
mod tar;

use archive::Entry;
use builds::Program;
use image::Layer;

/// Version of the workspace, shared by xtask and the program.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Files of the repository in every archive.
const FILES: [&str; 3] = ["CHANGELOG.md", "LICENSE", "README.md"];
/// Documents also in an image.
const LICENCES: [&str; 3] = [
    "LICENSE",
    "THIRD_PARTY_NOTICES",
    "COPYRIGHT-rust-library.html",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Build for this target; may be repeated. Without the flag, for each target of a release with a standard library
    /// and a C compiler on this machine.
    #[arg(long, value_name = "TRIPLE", conflicts_with = "binary")]
    target: Vec<String>,
    /// Pack this program, which has to run on this machine, instead of building one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Directory for the output.
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    output: PathBuf,
}

/// Writes archives, bills of materials and SHA256SUMS.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let written = fs::read_to_string(root.join("CHANGELOG.md")).context("CHANGELOG.md")?;
    if let Some(problem) = changelog::without_version(&written, VERSION) {
        bail!("{problem}");
    }
    let time = time(root)?;
    let programs = programs(root, arguments)?;
    let author = documents::author(root, &programs)?;
    let documents = documents::of(&author)?;
    // Files for all targets. Their names must not begin like names of targets in the sums.
    let mut others = documents::for_clusterctl(&author)?;
    let chart = archive::compressed("ferrostack", &documents::chart(&author)?, time)?;
    // Name as of `helm package`.
    others.insert(format!("ferrostack-{VERSION}.tgz"), chart);
    let output = root.join(&arguments.output);
    fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    for program in &programs {
        pack(root, program, &documents, time, &output)?;
    }
    for (name, content) in &others {
        write(&output.join(name), content)?;
    }
    let sums = sums(&output, others.into_keys())?;
    write(&output.join("SHA256SUMS"), sums.as_bytes())
}

/// Writes images alone, with bills of materials and lists of files.
pub(crate) fn images(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let time = time(root)?;
    let output = root.join(&arguments.output);
    fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    for program in &programs(root, arguments)? {
        let crates = linked::crates(root, program.target)?;
        image(
            root,
            program,
            &crates,
            &entries(root, program, &crates)?,
            time,
            &output,
        )?;
    }
    Ok(())
}

fn programs(root: &Path, arguments: &Arguments) -> anyhow::Result<Vec<Program>> {
    match &arguments.binary {
        Some(file) => Ok(vec![builds::given(file)?]),
        None => builds::all(root, &arguments.target),
    }
}

/// Time of every file of the release, in seconds since 1970: `SOURCE_DATE_EPOCH`, or the time of the commit.
fn time(root: &Path) -> anyhow::Result<u64> {
    if let Ok(time) = std::env::var("SOURCE_DATE_EPOCH") {
        return time.parse().with_context(|| {
            format!("SOURCE_DATE_EPOCH is {time}: seconds since 1970 are needed")
        });
    }
    let mut git = Command::new("git");
    git.args(["log", "-1", "--format=%ct"]).current_dir(root);
    let time = linked::output(&mut git)
        .context("the time of the commit; without git, set SOURCE_DATE_EPOCH")?;
    time.trim()
        .parse()
        .context("git log: the time of the commit")
}

/// Writes archive, package and image for one target, with bills of materials.
fn pack(
    root: &Path,
    program: &Program,
    documents: &[Entry],
    time: u64,
    output: &Path,
) -> anyhow::Result<()> {
    let target = program.target;
    let crates = linked::crates(root, target)?;
    let name = format!("ferrostack-{VERSION}-{target}");
    let mut entries = entries(root, program, &crates)?;
    image(root, program, &crates, &entries, time, output)?;
    entries.extend_from_slice(documents);
    let archive = archive::compressed(&name, &entries, time)?;
    write(&output.join(format!("{name}.tar.gz")), &archive)?;
    let package = deb::package(program, &entries, time)?;
    write(&output.join(deb::name(program)?), &package)?;
    let materials = materials::cyclonedx(program, &crates, [], &builds::rust(root)?, time)?;
    write(
        &output.join(format!("{name}.cdx.json")),
        materials.as_bytes(),
    )?;
    report(&format!("{target}: {}", program.needs));
    Ok(())
}

/// Files of the archive: program, files of the repository, documents, and evidence of the origin of everything.
fn entries(root: &Path, program: &Program, crates: &[Crate]) -> anyhow::Result<Vec<Entry>> {
    let mut entries = Vec::new();
    for file in FILES {
        let content = fs::read(root.join(file)).with_context(|| file.to_owned())?;
        entries.push(Entry::file(file, content));
    }
    entries.push(Entry::file("RELEASE", facts(program).into_bytes()));
    let notices = notices::text(crates, program.target)?;
    entries.push(Entry::file("THIRD_PARTY_NOTICES", notices.into_bytes()));
    let library = builds::copyright_of_the_standard_library(root)?;
    entries.push(Entry::file("COPYRIGHT-rust-library.html", library));
    entries.push(Entry::program("ferrostack", program.content.clone()));
    Ok(entries)
}

/// Writes the image of a target, its bill of materials, and the list of its files.
fn image(
    root: &Path,
    program: &Program,
    crates: &[Crate],
    entries: &[Entry],
    time: u64,
    output: &Path,
) -> anyhow::Result<()> {
    let licences = entries
        .iter()
        .filter(|it| LICENCES.contains(&it.name.as_str()));
    let licences = licences.map(|it| (it.name.clone(), it.content().to_vec()));
    let layer = Layer::new(program, licences)?;
    let rust = builds::rust(root)?;
    let bill = materials::cyclonedx(program, crates, &layer.packages, &rust, time)?;
    let layer = layer.with_bill(&bill);
    let name = format!("ferrostack-{VERSION}-{}.oci", program.target);
    let archive = layer.archive(program, time)?;
    write(&output.join(format!("{name}.tar")), &archive)?;
    write(&output.join(format!("{name}.cdx.json")), bill.as_bytes())?;
    write(
        &output.join(format!("{name}.files")),
        layer.list().as_bytes(),
    )
}

/// Content of the file RELEASE of an archive.
fn facts(program: &Program) -> String {
    let origin = program.origin.as_deref().unwrap_or_default();
    let target = program.target;
    format!(
        "ferrostack {VERSION}\ntarget: {target}\n{origin}{}\n",
        program.needs
    )
}

fn write(path: &Path, content: &[u8]) -> anyhow::Result<()> {
    fs::write(path, content).with_context(|| path.display().to_string())?;
    report(&format!("wrote {}", path.display()));
    Ok(())
}

/// Checksums of all files of this version in a directory, in the format of `sha256sum --check`: including targets built
/// earlier, and `others`, the files for all targets.
fn sums(directory: &Path, others: impl Iterator<Item = String>) -> anyhow::Result<String> {
    let starts = [
        format!("ferrostack-{VERSION}-"),
        format!("ferrostack_{VERSION}_"),
    ];
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if starts.iter().any(|start| name.starts_with(start)) {
            names.push(name);
        }
    }
    ensure!(!names.is_empty(), "{}: no archive", directory.display());
    names.extend(others);
    names.sort();
    let mut lines = String::new();
    for name in names {
        let content = fs::read(directory.join(&name)).with_context(|| name.clone())?;
        lines.push_str(&format!("{}  {name}\n", sha256(&content)));
    }
    Ok(lines)
}

/// SHA-256 in hexadecimal digits.
fn sha256(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests;
