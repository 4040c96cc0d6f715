//! The accepted differences as a table of docs/cinder-csi.md.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};

use super::compare::Accepted;

const PAGE: &str = "docs/cinder-csi.md";
/// Before and after the table.
const MARKS: (&str, &str) = (
    "<!-- differences: begin -->\n",
    "<!-- differences: end -->\n",
);

/// Writes the table, or fails if the page has another one.
pub(super) fn write(root: &Path, accepted: &Accepted, check: bool) -> anyhow::Result<()> {
    let file = root.join(PAGE);
    let page = std::fs::read_to_string(&file).context(PAGE)?;
    let new = with_table(&page, accepted).context(PAGE)?;
    if new == page {
        return Ok(());
    }
    if check {
        bail!(
            "{PAGE}: the table of differences is not that of the file: cargo xtask csi-side-by-side --page"
        );
    }
    Ok(std::fs::write(file, new)?)
}

fn with_table(page: &str, accepted: &Accepted) -> anyhow::Result<String> {
    let (before, rest) = page
        .split_once(MARKS.0)
        .context("no mark before the table")?;
    let (_, after) = rest
        .split_once(MARKS.1)
        .context("no mark after the table")?;
    Ok(format!(
        "{before}{}{}{}{after}",
        MARKS.0,
        table(accepted),
        MARKS.1
    ))
}

fn table(accepted: &Accepted) -> String {
    let mut text = "| | Go (1.36.0) | here | why |\n|---|---|---|---|\n".to_owned();
    for rule in &accepted.differences {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            rule.about, rule.go, rule.here, rule.why
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_accepted_differences() {
        let root = crate::root();
        let accepted = Accepted::read(&root.join(super::super::side_by_side::ACCEPTED)).unwrap();
        write(&root, &accepted, true).unwrap();
    }
}
