//! The differences between two runs: accepted ones, and the table of the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::play::Outcome;
use crate::scenario::Step;
use crate::shape::differences;

/// The prefix of the reason of a difference that depends on the time of the request.
const BY_CHANCE: &str = "by chance: ";

/// A difference that docs/project/simulator.md accepts.
pub(crate) struct Accepted {
    /// `METHOD service path`, with `*` for any text.
    request: String,
    /// The place in the response, with `*` for any text.
    at: String,
    /// Whether it depends on the time of the request, so that it need not occur.
    by_chance: bool,
}

/// The outcome of a comparison.
pub(crate) struct Verdict {
    rows: BTreeMap<(String, String, String, String), Vec<String>>,
    /// The number of accepted differences.
    pub(crate) accepted: usize,
    /// Accepted differences that did not occur, except those by chance.
    pub(crate) stale: Vec<String>,
    /// Steps that allow an array to be empty although both clouds agree.
    pub(crate) unneeded: Vec<String>,
    /// Steps whose status is an accepted difference, so that it need not be that of the scenario.
    pub(crate) excused: BTreeSet<String>,
}

/// Reads the table under a heading such as `## Accepted differences`: request, place, reason. Without the heading there
/// are none.
pub(crate) fn accepted(file: &Path, heading: &str) -> Vec<Accepted> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let text = format!("\n{text}");
    let heading = format!("\n{heading}\n");
    let table = text.split(heading.as_str()).nth(1).unwrap_or_default();
    let table = table.split("\n## ").next().unwrap_or_default();
    let cell = |text: &str| text.trim().trim_matches('`').to_owned();
    table
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split(" | ");
            Some(Accepted {
                request: cell(cells.next()?),
                at: cell(cells.next()?),
                by_chance: cells.next()?.starts_with(BY_CHANCE),
            })
        })
        .collect()
}

/// Steps with unexpected responses.
pub(crate) fn unexpected(side: &str, outcomes: &[Outcome]) -> Vec<String> {
    outcomes
        .iter()
        .filter_map(|outcome| {
            outcome
                .problem
                .as_ref()
                .map(|problem| format!("{side}: {}: {problem}", outcome.name))
        })
        .collect()
}

/// Compares the steps one by one.
pub(crate) fn compare(
    steps: &[Step],
    real: &[Outcome],
    simulated: &[Outcome],
    accepted: &[Accepted],
) -> Verdict {
    let by_name: BTreeMap<&str, &Outcome> =
        real.iter().map(|one| (one.name.as_str(), one)).collect();
    let mut verdict = Verdict {
        rows: BTreeMap::new(),
        accepted: 0,
        stale: Vec::new(),
        unneeded: Vec::new(),
        excused: BTreeSet::new(),
    };
    let mut used = BTreeSet::new();
    for (step, simulated) in steps.iter().zip(simulated) {
        let found = match by_name.get(step.name.as_str()) {
            Some(real) => {
                let (found, unneeded) = of_step(step, real, simulated);
                let unneeded = unneeded.into_iter();
                verdict
                    .unneeded
                    .extend(unneeded.map(|at| format!("{}: {at}", step.name)));
                found
            }
            None => vec![row(
                "record",
                "-",
                "the record lacks this step: refresh it (docs/project/simulator.md)",
            )],
        };
        for (at, real, simulated) in found {
            let known = accepted.iter().position(|known| {
                matches(&known.request, &step.request) && matches(&known.at, &at)
            });
            match known {
                Some(index) => {
                    used.insert(index);
                    verdict.accepted += 1;
                    if at == "status" {
                        verdict.excused.insert(step.name.clone());
                    }
                }
                None => {
                    let (method, service, _) = step.parts();
                    let key = (format!("{method} {service}"), at, real, simulated);
                    verdict.rows.entry(key).or_default().push(step.name.clone());
                }
            }
        }
    }
    let unused = accepted
        .iter()
        .enumerate()
        .filter(|(index, one)| !one.by_chance && !used.contains(index));
    verdict.stale = unused
        .map(|(_, one)| format!("{} {}", one.request, one.at))
        .collect();
    verdict
}

impl Verdict {
    /// What fails the comparison: differences that are not accepted, and lines of the table of accepted ones, or of the
    /// scenario, that are not needed.
    pub(crate) fn problems(&self, table: &str) -> Vec<String> {
        let stale = self.stale.iter();
        let stale =
            stale.map(|line| format!("{table} accepts a difference that is not there: {line}"));
        let unneeded = self.unneeded.iter();
        let unneeded = unneeded.map(|line| format!("may_be_empty is not needed: {line}"));
        stale.chain(unneeded).chain(self.table()).collect()
    }

    /// The differences that are not accepted, one line each; equal ones of several steps are merged.
    fn table(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for ((request, at, real, simulated), steps) in &self.rows {
            let first = &steps[0];
            let more = if steps.len() > 1 {
                format!(" (and {} more)", steps.len() - 1)
            } else {
                String::new()
            };
            lines.push(format!(
                "| {request} | {at} | {real} | {simulated} | {first}{more} |"
            ));
        }
        if !lines.is_empty() {
            lines.insert(
                0,
                "| request | where | real | simulated | step |".to_owned(),
            );
        }
        lines
    }
}

/// The place, and the values of both clouds.
type Row = (String, String, String);

fn row(at: &str, real: &str, simulated: &str) -> Row {
    (at.to_owned(), real.to_owned(), simulated.to_owned())
}

/// The differences of the responses to a step, and its unnecessary places in `may_be_empty`.
fn of_step(step: &Step, real: &Outcome, simulated: &Outcome) -> (Vec<Row>, Vec<String>) {
    if real.status != simulated.status {
        let (a, b) = (real.status.to_string(), simulated.status.to_string());
        return (vec![row("status", &a, &b)], Vec::new());
    }
    let mut rows = Vec::new();
    let headers = real.headers.keys().chain(simulated.headers.keys());
    for name in headers.collect::<BTreeSet<_>>() {
        let value = |outcome: &Outcome| {
            let value = outcome.headers.get(name).cloned();
            value.unwrap_or_else(|| "-".to_owned())
        };
        let (a, b) = (value(real), value(simulated));
        if a != b {
            rows.push(row(&format!("header {name}"), &a, &b));
        }
    }
    let (a, b) = (&real.states, &simulated.states);
    if !agree(a, b) {
        rows.push(row("states", &a.join(","), &b.join(",")));
    }
    let bodies = differences(&real.body, &simulated.body, &step.may_be_empty);
    let found = bodies.found.into_iter();
    rows.extend(found.map(|one| (one.at, one.real, one.simulated)));
    (rows, bodies.unneeded)
}

/// Whether two polls ended in the same state by the same path: either may have missed intermediate states.
fn agree(a: &[String], b: &[String]) -> bool {
    let common = |of: &[String], other: &[String]| -> Vec<String> {
        of.iter()
            .filter(|state| other.contains(state))
            .cloned()
            .collect()
    };
    a.last() == b.last() && common(a, b) == common(b, a)
}

/// Whether a text matches a pattern in which `*` stands for any text.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(text) = text.strip_prefix(start) else {
        return false;
    };
    (0..=text.len()).any(|skip| text.is_char_boundary(skip) && matches(rest, &text[skip..]))
}

#[cfg(test)]
mod tests;
