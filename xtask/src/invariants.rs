//! The invariants of ARCHITECTURE.md that follow from manifests and sources.
//!
//! ```text
//!   dependencies    which crates a crate may depend on
//!   modules         which modules a module may name
//!   circles         modules that all need each other, of which there may be fewer only
//!   reconcilers     how long a reconciler may be
//!   sources         which files may contain certain paths and words
//! ```

use std::path::Path;

use anyhow::Context;

use crate::syntax::{Names, Source};

mod circles;
mod dependencies;
mod modules;
mod reconcilers;
mod sources;

/// The violations, one line each.
pub(crate) fn broken(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let mut problems = dependencies::broken(&dependencies::packages(root)?);
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"));
    problems.extend(dependencies::undescribed(
        &architecture.context("ARCHITECTURE.md")?,
    ));
    let names = Names::of(sources);
    problems.extend(modules::broken(sources, &names));
    problems.extend(circles::broken(sources, &names));
    problems.extend(reconcilers::broken(sources, &names));
    problems.extend(sources::broken(sources, &names));
    Ok(problems)
}
