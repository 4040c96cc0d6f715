//! The manual pages, which the program itself writes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Builds the program, and has it write its pages to `directory`.
pub(crate) fn write(root: &Path, directory: &Path) -> anyhow::Result<()> {
    let status = Command::new("cargo")
        .args(["run", "--quiet", "--package", "ferrostack", "--", "man"])
        .arg(directory)
        .current_dir(root)
        .status()
        .context("cargo run")?;
    if !status.success() {
        bail!("the manual pages could not be written: {status}");
    }
    Ok(())
}
