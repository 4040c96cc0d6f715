//! Links between pages of the repository: each must lead to a file and to one of its headings.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Text of each page, by path from the root of the repository.
pub(super) type Pages = BTreeMap<String, String>;

/// Links of `pages` without a file, by `is_there`, or without a heading on the target page.
pub(super) fn broken(pages: &Pages, is_there: impl Fn(&Path) -> bool) -> Vec<String> {
    let headings: BTreeMap<&str, BTreeSet<String>> = pages
        .iter()
        .map(|(name, text)| (name.as_str(), anchors(text)))
        .collect();
    let mut problems = Vec::new();
    for (name, text) in pages {
        for (line, target) in links(text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, anchor) = target.split_once('#').unwrap_or((target.as_str(), ""));
            let path = match file {
                "" => PathBuf::from(name),
                _ => resolved(name, file),
            };
            let path_name = path.to_string_lossy();
            match headings.get(path_name.as_ref()) {
                Some(known) if !anchor.is_empty() && !known.contains(anchor) => problems.push(
                    format!("{name}:{line}: {target}: {path_name} has no such heading"),
                ),
                None if !is_there(&path) => {
                    problems.push(format!("{name}:{line}: {target}: there is no {path_name}"));
                }
                _ => {}
            }
        }
    }
    problems
}

/// File at the end of a link of the page `from`, from the root of the repository.
pub(crate) fn resolved(from: &str, to: &str) -> PathBuf {
    let folder = Path::new(from).parent().unwrap_or(Path::new(""));
    let mut path = PathBuf::new();
    for part in folder.join(to).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Targets of links outside of code, each with its line.
fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        let mut rest = line.as_str();
        while let Some((_, after)) = rest.split_once("](") {
            let Some((target, after)) = after.split_once(')') else {
                break;
            };
            let target = target.split_whitespace().next().unwrap_or_default();
            if !target.is_empty() {
                found.push((number, target.to_owned()));
            }
            rest = after;
        }
    }
    found
}

/// Lines outside of fenced code, counted from 1.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().filter_map(move |(index, line)| {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
            return None;
        }
        (!in_code).then_some((index + 1, line))
    })
}

/// Line without the text between backticks.
pub(super) fn without_code(line: &str) -> String {
    line.split('`').step_by(2).collect()
}

/// Anchors of the headings, as GitHub derives them: repeated ones have a number.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        let title = line.trim_start_matches('#');
        if title.len() == line.len() || !title.starts_with(' ') {
            continue;
        }
        let title = title.trim().to_lowercase();
        let kept = title
            .chars()
            .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        let anchor: String = kept.map(|c| if c == ' ' { '-' } else { c }).collect();
        let before = seen.entry(anchor.clone()).or_default();
        anchors.insert(match *before {
            0 => anchor,
            count => format!("{anchor}-{count}"),
        });
        *before += 1;
    }
    anchors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_a_file_and_to_a_heading_of_it() {
        let guide = "# Guide\n\n[a](../README.md#the-start-of-it), [b](#guide), [c](other.md), ![d](../x.svg), [e](https://a.example/)\n\n```\n[code](nowhere.md)\n```\n`[code](nowhere.md)`\n";
        let readme = "# T\n## The `start` of it\n## Twice\n## Twice\n[a](docs/guide.md#twice) [b](#twice-1)\n";
        let pages = Pages::from([
            ("README.md".to_owned(), readme.to_owned()),
            ("docs/guide.md".to_owned(), guide.to_owned()),
        ]);
        let problems = broken(&pages, |path| path == Path::new("x.svg"));
        assert_eq!(
            problems,
            [
                "README.md:5: docs/guide.md#twice: docs/guide.md has no such heading",
                "docs/guide.md:3: other.md: there is no docs/other.md",
            ]
        );
    }
}
