//! Manual pages, written by the program itself.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

/// Builds the program, and runs its `man` command for `directory`.
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
