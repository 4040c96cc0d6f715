//! The invariants of ARCHITECTURE.md that can be read off the manifests and the sources.
//!
//! ```text
//!   dependencies    which crate may use which
//!   sources         which files may do what
//! ```

use std::path::Path;

use anyhow::Context;

mod dependencies;
mod sources;

/// What breaks an invariant, one line each.
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
