//! The invariants of ARCHITECTURE.md that follow from manifests and sources.
//!
//! ```text
//!   dependencies    which crates a crate may depend on
//!   sources         which files may contain certain words
//! ```

use std::path::Path;

use anyhow::Context;

mod dependencies;
mod sources;

/// The violations, one line each.
pub(crate) fn broken(root: &Path, files: &[&str]) -> anyhow::Result<Vec<String>> {
    let mut problems = dependencies::broken(&dependencies::packages(root)?);
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"));
    problems.extend(dependencies::undescribed(
        &architecture.context("ARCHITECTURE.md")?,
    ));
    let read = |name: &&str| {
        let text = std::fs::read_to_string(root.join(name)).ok()?;
        Some(((*name).to_owned(), text))
    };
    let sources = files.iter().filter(|name| name.ends_with(".rs"));
    let sources: Vec<(String, String)> = sources.filter_map(read).collect();
    problems.extend(sources::broken(&sources));
    Ok(problems)
}
