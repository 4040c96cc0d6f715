//! Measurements: one table per command, or JSON.

pub(crate) mod apiserver;
pub(crate) mod ccm;
pub(crate) mod clusters;
pub(crate) mod conversions;
pub(crate) mod csi;
pub(crate) mod deployer;
pub(crate) mod keystone_auth;
pub(crate) mod main_job;
pub(crate) mod nodes;
mod process;
pub(crate) mod scale;
pub(crate) mod simulator;
pub(crate) mod weight;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Builds the release binary.
fn build(root: &Path) -> anyhow::Result<PathBuf> {
    let built = Command::new("cargo")
        .args(["build", "--release", "--package", "ferrostack", "--quiet"])
        .current_dir(root)
        .status()
        .context("cargo build")?;
    if !built.success() {
        bail!("the release build failed");
    }
    Ok(root.join("target/release/ferrostack"))
}

/// Processor and cores, if the machine reports them.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}

/// Load average of the last minute; 0 if the system does not report one.
fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|load| load.parse().ok()).unwrap_or_default()
}
