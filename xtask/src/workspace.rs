//! Packages of the workspace, as known to cargo.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};

/// Output of `cargo metadata` below `root`, without external packages.
pub(crate) fn metadata(root: &Path) -> anyhow::Result<Vec<u8>> {
    let output = Command::new("cargo")
        .args([
            "metadata",
            "--no-deps",
            "--offline",
            "--format-version",
            "1",
        ])
        .current_dir(root)
        .output()
        .context("cargo metadata")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata: {errors}");
    Ok(output.stdout)
}
