//! `bench weight`: cost of a release build, and share of each crate in the binary.
//!
//! Everything is built from scratch in a separate target directory, where a script runs the compiler and records the
//! processor time. The size of a crate is the size of all functions whose symbols begin with its name.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::machine;

mod symbols;

/// Number of crates in the table; all others are one line.
const ROWS: usize = 30;

/// Results of a build.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    /// Processor time of the compiler and its child processes, for all crates.
    compiler_cpu_seconds: f64,
    /// Processor time of the whole build, with C and build scripts.
    cpu_seconds: f64,
    wall_seconds: f64,
    binary_bytes: u64,
    text_bytes: u64,
    crates: Vec<Row>,
}

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    name: String,
    cpu_seconds: f64,
    text_bytes: u64,
}

/// Builds in `target/weight` and measures.
pub(crate) fn run(root: &Path, json: bool) -> anyhow::Result<()> {
    let target = root.join("target/weight");
    if target.exists() {
        fs::remove_dir_all(&target).context("target/weight")?;
    }
    fs::create_dir_all(&target).context("target/weight")?;
    let log = target.join("times");
    let begun = Instant::now();
    let cpu_seconds = build(root, &target, &log)?;
    let wall_seconds = begun.elapsed().as_secs_f64();
    let binary = target.join("release/ferrostack");
    let times = times(&fs::read_to_string(&log).context("the times")?);
    let sizes = symbols::by_crate(&binary, &crates(root)?)?;
    let report = Report {
        machine: machine(),
        compiler_cpu_seconds: times.values().sum(),
        cpu_seconds,
        wall_seconds,
        binary_bytes: stripped(&binary, &target)?,
        text_bytes: sizes.values().sum(),
        crates: rows(times, sizes),
    };
    let text = if json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        render(&report)
    };
    crate::print(&text)
}

/// Builds as a user does, but keeps the symbols; returns the processor time.
fn build(root: &Path, target: &Path, log: &Path) -> anyhow::Result<f64> {
    let script = target.join("timed");
    fs::write(&script, include_str!("weight/timed")).context("the script")?;
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755))?;
    let mut command = Command::new("bash");
    command
        .args([
            "-c",
            "TIMEFORMAT='%U %S'; time cargo rustc --release --locked --quiet \\
            --package ferrostack --bin ferrostack -- -C strip=none 2>&2",
        ])
        .current_dir(root)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_INCREMENTAL", "0")
        .env("RUSTC_WRAPPER", &script)
        .env("FERROSTACK_WEIGHT", log)
        .env_remove("RUSTC_WORKSPACE_WRAPPER");
    let built = command.output().context("bash")?;
    let text = String::from_utf8_lossy(&built.stderr).into_owned();
    if !built.status.success() {
        bail!("the release build failed:\n{text}");
    }
    let last = text.lines().last().unwrap_or_default();
    seconds(last).with_context(|| format!("the time of the build: {text}"))
}

/// Sum of `USER SYSTEM`, in seconds.
fn seconds(line: &str) -> Option<f64> {
    let (user, system) = line.split_once(' ')?;
    Some(user.parse::<f64>().ok()? + system.parse::<f64>().ok()?)
}

/// Processor time of each crate, from lines like `crate USER SYSTEM`.
fn times(log: &str) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for line in log.lines() {
        if let Some((name, rest)) = line.split_once(' ')
            && let Some(time) = seconds(rest)
        {
            *all.entry(name.to_owned()).or_default() += time;
        }
    }
    all
}

/// Names of all crates of the binary, in the compiler's spelling.
fn crates(root: &Path) -> anyhow::Result<Vec<String>> {
    let output = Command::new("cargo")
        .args(["metadata", "--locked", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("cargo metadata")?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let names = targets.filter_map(|target| target["name"].as_str());
    Ok(names.map(|name| name.replace('-', "_")).collect())
}

/// Size of the binary without symbols.
fn stripped(binary: &Path, target: &Path) -> anyhow::Result<u64> {
    let stripped: PathBuf = target.join("ferrostack.stripped");
    let status = Command::new("strip")
        .arg("-o")
        .args([&stripped, binary])
        .status()
        .context("strip (binutils)")?;
    if !status.success() {
        bail!("strip failed");
    }
    Ok(fs::metadata(&stripped)?.len())
}

/// One [`Row`] for each crate, the most expensive first.
fn rows(times: BTreeMap<String, f64>, sizes: BTreeMap<String, u64>) -> Vec<Row> {
    let mut all: BTreeMap<String, Row> = BTreeMap::new();
    for (name, time) in times {
        all.entry(name).or_default().cpu_seconds = time;
    }
    for (name, size) in sizes {
        all.entry(name).or_default().text_bytes = size;
    }
    let mut rows: Vec<Row> = all
        .into_iter()
        .map(|(name, row)| Row { name, ..row })
        .collect();
    rows.sort_by(|a, b| b.cpu_seconds.total_cmp(&a.cpu_seconds));
    rows
}

fn render(report: &Report) -> String {
    let mut text = format!(
        "{}\n\n{:<24}{:>12}{:>12}\n",
        report.machine, "crate", "CPU s", "text MB"
    );
    let (top, others) = report.crates.split_at(report.crates.len().min(ROWS));
    let rest = Row {
        name: format!("{} others", others.len()),
        cpu_seconds: others.iter().map(|row| row.cpu_seconds).sum(),
        text_bytes: others.iter().map(|row| row.text_bytes).sum(),
    };
    for row in top.iter().chain([&rest]) {
        let _ = writeln!(
            text,
            "{:<24}{:>12.1}{:>12.2}",
            row.name,
            row.cpu_seconds,
            megabytes(row.text_bytes)
        );
    }
    let _ = writeln!(
        text,
        "\ncompiler {:.0} CPU s, whole build {:.0} CPU s ({:.1} min), {:.0} s by the clock\n\
         binary {} bytes ({:.1} MB), functions {:.1} MB",
        report.compiler_cpu_seconds,
        report.cpu_seconds,
        report.cpu_seconds / 60.0,
        report.wall_seconds,
        report.binary_bytes,
        megabytes(report.binary_bytes),
        megabytes(report.text_bytes)
    );
    text
}

#[expect(clippy::cast_precision_loss, reason = "printed with two digits")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

#[cfg(test)]
mod tests;
