//! Targets of a release, and programs built for them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};

use super::elf::{self, Needs};
use crate::linked::{self, host};
use crate::report;

/// Target of a release.
struct Target {
    triple: &'static str,
    /// C compiler of Debian for the target, also used as linker.
    compiler: &'static str,
    /// Debian package with the compiler, for other machines.
    package: &'static str,
    /// Further environment variables for the build.
    environment: &'static [(&'static str, &'static str)],
}

const TARGETS: [Target; 2] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        compiler: "x86_64-linux-gnu-gcc",
        package: "gcc-x86-64-linux-gnu",
        environment: &[],
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        compiler: "aarch64-linux-gnu-gcc",
        package: "gcc-aarch64-linux-gnu",
        // Kernels of distributions have pages of 4 or 64 KiB; jemalloc supports pages up to the size set at its build.
        environment: &[("JEMALLOC_SYS_WITH_LG_PAGE", "16")],
    },
];

/// Program built for a target.
pub(super) struct Program {
    pub(super) target: &'static str,
    pub(super) file: PathBuf,
    pub(super) content: Vec<u8>,
    pub(super) needs: Needs,
    /// Path of the dynamic loader; `None` for a static program.
    pub(super) interpreter: Option<String>,
    /// Lines with the commit and the compiler; `None` for a program built elsewhere.
    pub(super) origin: Option<String>,
}

/// [`Program`] from a file built elsewhere.
pub(super) fn given(file: &Path) -> anyhow::Result<Program> {
    let content = fs::read(file).with_context(|| file.display().to_string())?;
    let program = elf::read(&content).with_context(|| file.display().to_string())?;
    let target = known(&format!("{}-unknown-linux-gnu", program.machine))?;
    ensure!(
        target.triple == host()?,
        "{} is a program for {}, which does not run here: its manual pages could not be written",
        file.display(),
        target.triple
    );
    Ok(Program {
        target: target.triple,
        file: file.to_owned(),
        content,
        needs: program.needs,
        interpreter: program.interpreter,
        origin: None,
    })
}

/// Builds the program for the given targets, or for every target possible on this machine.
pub(super) fn all(root: &Path, triples: &[String]) -> anyhow::Result<Vec<Program>> {
    let mut targets = Vec::new();
    for triple in triples {
        let target = known(triple)?;
        if let Some(obstacle) = obstacle(root, target)? {
            bail!("{triple}: {obstacle}");
        }
        targets.push(target);
    }
    if triples.is_empty() {
        for target in &TARGETS {
            match obstacle(root, target)? {
                None => targets.push(target),
                Some(obstacle) => report(&format!("left out: {}: {obstacle}", target.triple)),
            }
        }
    }
    targets
        .into_iter()
        .map(|target| build(root, target))
        .collect()
}

fn known(triple: &str) -> anyhow::Result<&'static Target> {
    let triples = TARGETS.each_ref().map(|target| target.triple).join(" and ");
    TARGETS
        .iter()
        .find(|target| target.triple == triple)
        .with_context(|| format!("{triple} is no target of a release: they are {triples}"))
}

/// Reason why this machine cannot build for a target, and the remedy.
fn obstacle(root: &Path, target: &Target) -> anyhow::Result<Option<String>> {
    let triple = target.triple;
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", triple]);
    let library = linked::output(rustc.current_dir(root))?;
    if !Path::new(library.trim()).is_dir() {
        return Ok(Some(format!(
            "its standard library is not installed: rustup target add {triple}"
        )));
    }
    let compiler = target.compiler;
    if host()? == triple || std::env::var_os(linker(triple)).is_some() || is_in_path(compiler) {
        return Ok(None);
    }
    Ok(Some(format!(
        "{compiler} is not in PATH (Debian's package {}), and {} is not set",
        target.package,
        linker(triple)
    )))
}

/// Variable for cargo with the linker of a target.
fn linker(triple: &str) -> String {
    let triple = triple.replace('-', "_").to_uppercase();
    format!("CARGO_TARGET_{triple}_LINKER")
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn build(root: &Path, target: &'static Target) -> anyhow::Result<Program> {
    let triple = target.triple;
    let mut cargo = linked::cargo(root);
    cargo.args(["build", "--release", "--locked", "--package", "ferrostack"]);
    cargo.args(["--target", triple]);
    cargo.env("CARGO_ENCODED_RUSTFLAGS", flags(root));
    if host()? != triple && std::env::var_os(linker(triple)).is_none() {
        cargo.env(linker(triple), target.compiler);
    }
    cargo.envs(target.environment.iter().copied());
    let status = cargo.status().context("cargo build")?;
    ensure!(status.success(), "cargo build for {triple}: {status}");
    let file = target_directory(root)?
        .join(triple)
        .join("release/ferrostack");
    let content = fs::read(&file).with_context(|| file.display().to_string())?;
    let needs = elf::read(&content).with_context(|| file.display().to_string())?;
    ensure!(
        triple.starts_with(needs.machine),
        "{} is a program for {}, not for {triple}",
        file.display(),
        needs.machine
    );
    Ok(Program {
        target: triple,
        file,
        content,
        needs: needs.needs,
        interpreter: needs.interpreter,
        origin: Some(origin(root)?),
    })
}

/// Flags of the compiler, appended to RUSTFLAGS: no path of this machine gets into the program, so that its bytes do
/// not depend on the machine.
fn flags(root: &Path) -> String {
    let mut flags: Vec<String> = std::env::var("RUSTFLAGS")
        .unwrap_or_default()
        .split_whitespace()
        .map(str::to_owned)
        .collect();
    // The flags of .cargo/config.toml, which the variable replaces.
    flags.extend(["-Crelro-level=partial", "-Clink-arg=-Wl,-z,now"].map(str::to_owned));
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cargo")));
    let paths = [(home, "/cargo"), (Some(root.to_owned()), "/ferrostack")];
    for (path, name) in paths {
        if let Some(path) = path {
            flags.push(format!("--remap-path-prefix={}={name}", path.display()));
        }
    }
    flags.join("\u{1f}")
}

fn target_directory(root: &Path) -> anyhow::Result<PathBuf> {
    let mut metadata = linked::cargo(root);
    metadata.args(["metadata", "--no-deps", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_str(&linked::output(&mut metadata)?)?;
    let directory = metadata
        .get("target_directory")
        .and_then(|path| path.as_str());
    Ok(PathBuf::from(
        directory.context("cargo metadata names no target directory")?,
    ))
}

/// Commit and compiler of a build.
fn origin(root: &Path) -> anyhow::Result<String> {
    let mut git = Command::new("git");
    git.args([
        "describe",
        "--always",
        "--dirty",
        "--abbrev=40",
        "--exclude=*",
    ]);
    let commit = match linked::output(git.current_dir(root)) {
        Ok(commit) => format!("commit: {}\n", commit.trim()),
        // Sources without git.
        Err(_) => String::new(),
    };
    Ok(format!("{commit}compiler: {}\n", rust(root)?))
}

/// Version of the compiler and of the standard library: `rustc 1.95.0 (…)`.
pub(super) fn rust(root: &Path) -> anyhow::Result<String> {
    let mut rustc = Command::new("rustc");
    rustc.arg("--version").current_dir(root);
    Ok(linked::output(&mut rustc)?.trim().to_owned())
}

/// Notices of the standard library, part of the toolchain.
pub(super) fn copyright_of_the_standard_library(root: &Path) -> anyhow::Result<Vec<u8>> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "sysroot"]).current_dir(root);
    let sysroot = linked::output(&mut rustc)?;
    let file = Path::new(sysroot.trim()).join("share/doc/rust/COPYRIGHT-library.html");
    fs::read(&file).with_context(|| {
        format!(
            "{}: rustup installs it with the compiler; other packages of Rust may not",
            file.display()
        )
    })
}
