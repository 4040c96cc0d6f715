//! Files that changed since a commit, including uncommitted ones.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail, ensure};

#[cfg(test)]
mod tests;

/// Main branches, in order of preference.
const MAIN: [&str; 2] = ["origin/main", "main"];

/// Commit at which HEAD parted from `reference`, or from the main branch.
///
/// # Errors
///
/// There is no such commit, or no main branch.
pub(super) fn base(root: &Path, reference: Option<&str>) -> anyhow::Result<String> {
    let since = |name: &str| git(root, &["merge-base", "HEAD", name]);
    if let Some(name) = reference {
        let found = since(name).with_context(|| format!("--since {name}"))?;
        return Ok(found.trim().to_owned());
    }
    for name in MAIN {
        if let Ok(found) = since(name) {
            return Ok(found.trim().to_owned());
        }
    }
    bail!("there is no {}: say --since REF", MAIN.join(" and no "))
}

/// Files that differ from `base`: changed, deleted, renamed (both names), and untracked.
pub(super) fn since(root: &Path, base: &str) -> anyhow::Result<Vec<String>> {
    let changed = git(
        root,
        &["diff", "--name-only", "--no-renames", "-z", base, "--"],
    )?;
    let unknown = git(root, &["ls-files", "-z", "--others", "--exclude-standard"])?;
    let mut names: Vec<String> = changed
        .split_terminator('\0')
        .chain(unknown.split_terminator('\0'))
        .map(str::to_owned)
        .collect();
    names.sort();
    names.dedup();
    Ok(names)
}

fn git(root: &Path, arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(root)
        .output()
        .context("git")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "git {}: {}",
        arguments.join(" "),
        errors.trim()
    );
    String::from_utf8(output.stdout).context("the name of a file")
}
