//! Dates of runs: in docs/project/ and in the decisions alone. A page for users is true of its version, whenever it is read.

use super::links::{Pages, prose, without_code};

/// Pages with dated results, and pages about versions and dates.
const DATED: [&str; 4] = ["docs/project/", "docs/adr/", "CHANGELOG.md", "RELEASING.md"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Dates in the sentences of other `pages`. Code may have some as examples.
pub(super) fn outside_of_records(pages: &Pages) -> Vec<String> {
    let is_dated = |name: &str| DATED.iter().any(|start| name.starts_with(start));
    let others = pages.iter().filter(|(name, _)| !is_dated(name));
    let mut problems = Vec::new();
    for (name, text) in others {
        for (line, sentence) in prose(text) {
            if let Some(date) = date_in(&without_code(sentence)) {
                problems.push(format!(
                    "{name}:{line}: {date}: results with a date belong in docs/project/"
                ));
            }
        }
    }
    problems
}

/// First date of a line: `2026-11-30`, or a month before a year or beside a day.
fn date_in(line: &str) -> Option<String> {
    let is_number = |word: &str, digits: &[usize]| {
        digits.contains(&word.len()) && word.chars().all(|letter| letter.is_ascii_digit())
    };
    let plain = |word: &str| {
        let end = |letter: char| !letter.is_ascii_alphanumeric();
        word.trim_matches(end).to_owned()
    };
    let words: Vec<String> = line.split_whitespace().map(plain).collect();
    let is_date = |word: &&String| {
        let parts: Vec<&str> = word.split('-').collect();
        matches!(parts[..], [year, month, day]
            if is_number(year, &[4]) && is_number(month, &[2]) && is_number(day, &[2]))
    };
    let in_words = words.windows(2).find_map(|pair| match pair {
        [first, second] => {
            let is_month = |word: &String| MONTHS.contains(&word.as_str());
            let dated = (is_month(first) && is_number(second, &[1, 2, 4]))
                || (is_number(first, &[1, 2]) && is_month(second));
            dated.then(|| format!("{first} {second}"))
        }
        _ => None,
    });
    in_words.or_else(|| words.iter().find(is_date).cloned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_found_in_a_sentence_and_not_in_code() {
        for (line, date) in [
            (
                "It passed on 30 November 2026, in 973 s.",
                Some("30 November"),
            ),
            ("passed (2026-11-30, UTC)", Some("2026-11-30")),
            ("Since November 2026.", Some("November 2026")),
            ("May 5 Pods start? They may.", Some("May 5")),
            ("OpenStack 2026.1, and 2025.1", None),
            ("versions 1-2-3", None),
        ] {
            assert_eq!(date_in(line).as_deref(), date, "{line}");
        }
        let text = "# T\n\n`2026-01-01`\n\n```\n2026-01-01\n```\non 2026-01-01\n".to_owned();
        let pages = Pages::from([
            ("docs/guides/a.md".to_owned(), text.clone()),
            ("docs/project/runs/a.md".to_owned(), text),
        ]);
        let problems = outside_of_records(&pages);
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].starts_with("docs/guides/a.md:8: 2026-01-01: "));
    }
}
