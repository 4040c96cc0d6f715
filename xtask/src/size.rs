//! `size`: limits the size of the release binary to the last entry of docs/project/benchmarks.md.
//!
//! A dependency, or a generic type compiled for each resource, adds megabytes unnoticed in a review.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// Page, and heading above the table with an entry for each size.
const PAGE: &str = "docs/project/benchmarks.md";
const HEADING: &str = "### The size of the binary";
/// Growth without a new entry, in percent.
const TOLERANCE: u64 = 2;

/// Checks `binary`, by default the built release one.
pub(crate) fn run(root: &Path, binary: Option<PathBuf>) -> anyhow::Result<()> {
    let binary = binary.unwrap_or_else(|| root.join("target/release/ferrostack"));
    let built = std::fs::metadata(&binary);
    let built = built.with_context(|| {
        format!(
            "{}: build it with `cargo build --release`",
            binary.display()
        )
    })?;
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    let (size, entry) = (built.len(), last_entry(&page)?);
    // Entries are sizes without symbols.
    if has_symbols(&binary)? {
        bail!(
            "{}: it has symbols; build it with `cargo build --release`",
            binary.display()
        );
    }
    crate::print(&judged(size, entry)?)
}

/// Bytes in the last row of the table.
fn last_entry(page: &str) -> anyhow::Result<u64> {
    let (_, below) = page
        .split_once(HEADING)
        .with_context(|| format!("{PAGE} has no `{HEADING}`"))?;
    let rows = below
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    let last = rows.last().unwrap_or_default();
    let bytes = last.split('|').nth(2).unwrap_or_default().trim();
    bytes
        .replace(' ', "")
        .parse()
        .with_context(|| format!("{PAGE}: the last row has no bytes in its second column: {last}"))
}

fn judged(size: u64, entry: u64) -> anyhow::Result<String> {
    if size > entry + entry * TOLERANCE / 100 {
        bail!(
            "the binary has {size} bytes, {} more than the last entry of {PAGE}: see which crate grew (`cargo xtask \
             bench weight`) and undo it, or add an entry with the reason under `{HEADING}`",
            size - entry
        );
    }
    let smaller = match size < entry - entry * TOLERANCE / 100 {
        true => "; an entry for it would hold the gain",
        false => "",
    };
    Ok(format!(
        "the binary has {size} bytes, the last entry of {PAGE} {entry}{smaller}\n"
    ))
}

fn has_symbols(binary: &Path) -> anyhow::Result<bool> {
    let output = Command::new("nm")
        .arg("--defined-only")
        .arg(binary)
        .output()
        .context("nm (binutils)")?;
    Ok(output.status.success() && !output.stdout.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_needs_an_entry_and_a_gain_asks_for_one() {
        assert!(judged(1021, 1000).is_err());
        assert!(
            judged(1020, 1000)
                .unwrap()
                .ends_with("entry of docs/project/benchmarks.md 1000\n")
        );
        assert!(judged(900, 1000).unwrap().contains("would hold the gain"));
    }

    #[test]
    fn the_last_row_counts() {
        let page = format!(
            "# Figures\n\n| a | 1 |\n|---|---|\n\n{HEADING}\n\n| when | bytes | why |\n|---|---|---|\n\
             | before | 94 338 400 | first |\n| now | 50 000 000 | less |\n\n| other | 7 | x |\n"
        );
        assert_eq!(last_entry(&page).unwrap(), 50_000_000);
        assert!(last_entry("# Figures\n").is_err());
    }

    #[test]
    fn the_page_has_an_entry() {
        let page = std::fs::read_to_string(crate::root().join(PAGE)).unwrap();
        assert!(last_entry(&page).unwrap() > 10_000_000);
    }
}
