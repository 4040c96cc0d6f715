//! Invariants of ARCHITECTURE.md, checked on manifests and sources.
//!
//! - [`dependencies`]: permitted dependencies of each crate
//! - [`modules`]: permitted names in a module
//! - [`circles`]: modules that all need each other, of which there may only be fewer
//! - [`reconcilers`]: length of a reconciler
//! - [`sources`]: permitted files for certain paths and words

use std::path::Path;

use anyhow::Context;

use crate::syntax::{Names, Source};

mod circles;
mod dependencies;
mod modules;
mod reconcilers;
mod sources;

/// Violations, one line each.
pub(crate) fn broken(root: &Path, sources: &[Source]) -> anyhow::Result<Vec<String>> {
    let mut problems = dependencies::broken(&dependencies::packages(root)?);
    let architecture = std::fs::read_to_string(root.join("ARCHITECTURE.md"));
    problems.extend(dependencies::undescribed(
        &architecture.context("ARCHITECTURE.md")?,
    ));
    let names = Names::from_sources(sources);
    problems.extend(modules::broken(sources, &names));
    problems.extend(circles::broken(sources, &names));
    problems.extend(reconcilers::broken(sources, &names));
    problems.extend(sources::broken(sources, &names));
    Ok(problems)
}
