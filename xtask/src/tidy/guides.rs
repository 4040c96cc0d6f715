//! Guides: each says what its reader needs, how it fails and the way back, in a table at its head or in sections.

use super::links::Pages;

/// Rows of the table at the head of a guide.
const ROWS: [&str; 3] = ["| you need | ", "| if it fails | ", "| way back | "];
/// Sections in place of the table.
const SECTIONS: [&str; 3] = ["## What you need", "## How it fails", "## How to go back"];
/// Page without steps, which is generated.
const GENERATED: &str = "docs/guides/versions.md";

/// Guides that lack one of these.
pub(super) fn incomplete(pages: &Pages) -> Vec<String> {
    let guides = pages
        .iter()
        .filter(|(name, _)| name.starts_with("docs/guides/") && *name != GENERATED);
    let mut problems = Vec::new();
    for (name, text) in guides {
        for (row, section) in ROWS.iter().zip(SECTIONS) {
            let is_there = text
                .lines()
                .any(|line| line.starts_with(row) || line == section);
            if !is_there {
                problems.push(format!(
                    "{name}: neither a row `{}` nor a section `{section}`",
                    row.trim()
                ));
            }
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_without_a_way_back_is_found() {
        let rows = "# A\n\n| | |\n|---|---|\n| you need | a |\n| if it fails | b |\n";
        let pages = |text: &str| Pages::from([("docs/guides/a.md".to_owned(), text.to_owned())]);
        let problems = incomplete(&pages(rows));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains("`| way back |`"), "{problems:?}");
        let sections = format!("{rows}\n## How to go back\n");
        assert!(incomplete(&pages(&sections)).is_empty());
    }
}
