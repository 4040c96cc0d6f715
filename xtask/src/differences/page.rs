//! Accepted differences as a table of a page in docs/.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, bail};

use super::Accepted;

/// Lines before and after a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Marks {
    pub(crate) before: &'static str,
    pub(crate) after: &'static str,
}

const MARKS: Marks = Marks {
    before: "<!-- differences: begin -->\n",
    after: "<!-- differences: end -->\n",
};

/// Page with such a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) file: &'static str,
    /// Command that writes the table.
    pub(crate) command: &'static str,
}

/// Writes the table, or fails if the [`Page`] has another one.
pub(crate) fn write(
    root: &Path,
    page: Page,
    accepted: &Accepted,
    check: bool,
) -> anyhow::Result<()> {
    let file = root.join(page.file);
    let text = std::fs::read_to_string(&file).context(page.file)?;
    let new = replaced(&text, MARKS, &table(accepted)).context(page.file)?;
    if new == text {
        return Ok(());
    }
    if check {
        bail!(
            "{}: the table of differences is not that of the file: {}",
            page.file,
            page.command
        );
    }
    Ok(std::fs::write(file, new)?)
}

/// Page with another text between the [`Marks`].
///
/// # Errors
/// A mark is absent.
pub(crate) fn replaced(page: &str, marks: Marks, text: &str) -> anyhow::Result<String> {
    let (before, rest) = page
        .split_once(marks.before)
        .context("no mark before the table")?;
    let (_, after) = rest
        .split_once(marks.after)
        .context("no mark after the table")?;
    let Marks {
        before: begin,
        after: end,
    } = marks;
    Ok(format!("{before}{begin}{text}{end}{after}"))
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
