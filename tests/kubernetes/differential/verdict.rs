//! How two plays differ, and which differences are accepted.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use crate::play::Outcome;

/// A row of the table of accepted differences. `*` in the first four columns stands for any text.
pub(crate) struct Accepted {
    step: String,
    place: String,
    real: String,
    ours: String,
}

/// The comparison of two plays.
pub(crate) struct Verdict {
    /// How many differences are accepted.
    pub(crate) accepted: usize,
    /// One line for each difference that is not, and for each row that no difference needs.
    pub(crate) problems: Vec<String>,
}

/// The table under the heading `Accepted differences`: step, place, real, ours, reason.
pub(crate) fn accepted(document: &Path) -> Vec<Accepted> {
    let text = std::fs::read_to_string(document).unwrap_or_default();
    let rows = text
        .lines()
        .skip_while(|line| !line.ends_with("# Accepted differences"));
    rows.filter(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| {
            let cells: Vec<String> = line
                .trim_matches('|')
                .split(" | ")
                .map(|cell| cell.trim().trim_matches('`').replace("\\|", "|"))
                .collect();
            let [step, place, real, ours, reason] = cells.as_slice() else {
                panic!("five columns: {line}");
            };
            assert!(!reason.is_empty(), "a reason: {line}");
            Accepted {
                step: step.clone(),
                place: place.clone(),
                real: real.clone(),
                ours: ours.clone(),
            }
        })
        .collect()
}

/// Compares what the real server answered with what ours did.
pub(crate) fn compare(real: &[Outcome], ours: &[Outcome], accepted: &[Accepted]) -> Verdict {
    let answers: BTreeMap<&str, &Value> = ours
        .iter()
        .map(|outcome| (outcome.name.as_str(), &outcome.answer))
        .collect();
    let mut used = vec![false; accepted.len()];
    let mut verdict = Verdict {
        accepted: 0,
        problems: Vec::new(),
    };
    for outcome in real {
        let name = outcome.name.as_str();
        let Some(ours) = answers.get(name) else {
            verdict
                .problems
                .push(format!("{name}: recorded, and not in the scenario"));
            continue;
        };
        let mut found = Vec::new();
        differences(String::new(), Some(&outcome.answer), Some(ours), &mut found);
        for (place, real, ours) in found {
            let row = accepted.iter().position(|row| {
                fits(&row.step, name)
                    && fits(&row.place, &place)
                    && fits(&row.real, &real)
                    && fits(&row.ours, &ours)
            });
            match row {
                Some(row) => {
                    used[row] = true;
                    verdict.accepted += 1;
                    if std::env::var_os("FERROSTACK_DIFFERENCES").is_some() {
                        eprintln!("accepted: {name} | {place} | {real} | {ours}");
                    }
                }
                None => verdict
                    .problems
                    .push(format!("{name} | {place} | {real} | {ours}")),
            }
        }
    }
    let recorded: Vec<&str> = real.iter().map(|outcome| outcome.name.as_str()).collect();
    for outcome in ours
        .iter()
        .filter(|outcome| !recorded.contains(&outcome.name.as_str()))
    {
        verdict.problems.push(format!(
            "{}: not in the record; write it anew",
            outcome.name
        ));
    }
    for (row, _) in accepted.iter().zip(used).filter(|(_, used)| !used) {
        verdict.problems.push(format!(
            "docs/reference/apiserver.md accepts a difference that is not there: {} | {} | {} | {}",
            row.step, row.place, row.real, row.ours
        ));
    }
    verdict
}

/// Place, real and own value of each difference; what is not there is `-`.
fn differences(
    place: String,
    real: Option<&Value>,
    ours: Option<&Value>,
    found: &mut Vec<(String, String, String)>,
) {
    match (real, ours) {
        (Some(Value::Object(left)), Some(Value::Object(right))) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort();
            names.dedup();
            for name in names {
                let place = if place.is_empty() {
                    name.clone()
                } else {
                    format!("{place}/{name}")
                };
                differences(place, left.get(name), right.get(name), found);
            }
        }
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            for index in 0..left.len().max(right.len()) {
                let place = format!("{place}/{index}");
                differences(place, left.get(index), right.get(index), found);
            }
        }
        (left, right) if left == right => {}
        (left, right) => {
            let text = |value: Option<&Value>| value.map_or("-".to_owned(), ToString::to_string);
            found.push((place, text(left), text(right)));
        }
    }
}

/// Whether a text fits a pattern in which `*` stands for any text.
fn fits(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else {
        return false;
    };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else {
        return rest.is_empty();
    };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[test]
fn a_star_stands_for_any_text() {
    for (pattern, text) in [
        ("*", ""),
        ("a*c", "abc"),
        ("*b*", "abc"),
        ("abc", "abc"),
        ("a*b*c", "aXbYc"),
    ] {
        assert!(fits(pattern, text), "{pattern} {text}");
    }
    for (pattern, text) in [
        ("a*c", "abd"),
        ("abc", "abcd"),
        ("", "a"),
        ("*x*", "abc"),
        ("ab*bc", "abc"),
    ] {
        assert!(!fits(pattern, text), "{pattern} {text}");
    }
}
