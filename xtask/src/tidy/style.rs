//! Pairs of bad and good words in STYLE.md, from sources that have the good ones now.

use std::path::Path;

use anyhow::Context;

/// Path of the page, below the root.
const PAGE: &str = "STYLE.md";
/// Minimum number of pairs.
const PAIRS: usize = 20;

/// Row of the table of pairs.
struct Pair<'a> {
    bad: &'a str,
    good: &'a str,
    /// Path of the source, below the root.
    source: &'a str,
}

/// [`Pair`]s whose source has the bad words, or lacks the good ones.
pub(super) fn broken(root: &Path) -> anyhow::Result<Vec<String>> {
    let page = std::fs::read_to_string(root.join(PAGE)).context(PAGE)?;
    // A deleted source has no words.
    let read = |source: &str| std::fs::read_to_string(root.join(source)).unwrap_or_default();
    Ok(differences(&page, read))
}

fn differences(page: &str, read: impl Fn(&str) -> String) -> Vec<String> {
    let pairs: Vec<Pair<'_>> = pairs(page).collect();
    let mut problems = Vec::new();
    if pairs.len() < PAIRS {
        problems.push(format!(
            "{PAGE}: {} pairs, and {PAIRS} at least",
            pairs.len()
        ));
    }
    for Pair { bad, good, source } in pairs {
        let text = read(source);
        if !text.contains(good) {
            problems.push(format!("{PAGE}: {source} does not say: {good}"));
        }
        if text.contains(bad) {
            problems.push(format!("{PAGE}: {source} says again: {bad}"));
        }
    }
    problems
}

fn pairs(page: &str) -> impl Iterator<Item = Pair<'_>> {
    let rows = page.lines().filter_map(|line| {
        let columns = line.strip_prefix("| ")?.strip_suffix(" |")?;
        let (bad, rest) = columns.split_once(" | ")?;
        let (good, source) = rest.split_once(" | ")?;
        Some(Pair { bad, good, source })
    });
    // The first row is the head of the table.
    rows.skip(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sources_of_the_pairs_have_the_good_words() {
        let row = "| What it is. | Size in GiB. | a.rs |\n";
        let page = format!("| bad | good | where |\n|---|---|---|\n{}", row.repeat(20));
        let good = |_: &str| "/// Size in GiB.\n".to_owned();
        assert_eq!(differences(&page, good), Vec::<String>::new());
        let neither = differences(&page, |_| String::new());
        assert_eq!(neither.len(), 20, "{neither:?}");
        let both = differences(&page, |_| "/// What it is. Size in GiB.\n".to_owned());
        assert_eq!(both.len(), 20, "{both:?}");
        let few = differences("| bad | good | where |\n", good);
        assert_eq!(few, ["STYLE.md: 0 pairs, and 20 at least"]);
    }
}
