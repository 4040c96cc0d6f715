//! Due steps, their expected durations, and the selection of steps to begin.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::record::{Pass, Record};
use super::table::{Step, System, Table};

#[cfg(test)]
mod tests;

/// Maximum age of a pass: real systems change without a change in the repository.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Maximum factor of slowness of a machine.
const SLOWEST: f64 = 4.0;

/// Reason why a step is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The step has no record.
    Never,
    /// A dependency of the step has changed.
    Changed,
    /// The pass is more than 30 days old.
    Old,
    /// The step was requested.
    Asked,
}

impl fmt::Display for Due {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Never => "it has no record",
            Self::Changed => "its inputs have changed",
            Self::Old => "its record is older than 30 days",
            Self::Asked => "it was asked for",
        })
    }
}

/// Reason why a step with this last [`Pass`] is due; `None` if it is not.
pub(super) fn due(last: Option<&Pass>, inputs: &str, now: Timestamp) -> Option<Due> {
    match last {
        None => Some(Due::Never),
        Some(pass) if pass.inputs.as_deref() != Some(inputs) => Some(Due::Changed),
        Some(pass) if now.duration_since(pass.at) > KEPT => Some(Due::Old),
        Some(_) => None,
    }
}

/// Expected durations on this machine, by recorded durations and by the duration of the tests then and now. For systems
/// that stay on a machine, only presence on this machine counts, not the record.
#[derive(Debug)]
pub(super) struct Expected {
    /// Minutes by the names of steps and systems.
    minutes: BTreeMap<String, f64>,
}

impl Expected {
    /// `there`: systems present on this machine; `tests`: minutes of the tests on this machine, if they ran.
    pub(super) fn new(
        table: &Table,
        record: &Record,
        there: &BTreeSet<String>,
        tests: Option<f64>,
    ) -> Self {
        let of = |name: &str, estimate: f64| {
            let (minutes, then) = match record.passed(name) {
                Some(pass) => (pass.minutes, pass.tests),
                None => (estimate, Some(table.tests)),
            };
            (name.to_owned(), minutes * slowness(tests, then))
        };
        let steps = table.steps.iter().map(|it| of(&it.name, it.minutes));
        let (run, stay): (Vec<_>, Vec<_>) = table.systems.iter().partition(|it| it.down.is_some());
        let run = run.into_iter().map(|it| of(&it.name, it.minutes));
        let stay = stay.into_iter().map(|it| {
            let minutes = if there.contains(&it.name) {
                0.0
            } else {
                it.minutes * slowness(tests, Some(table.tests))
            };
            (it.name.clone(), minutes)
        });
        Self {
            minutes: steps.chain(run).chain(stay).collect(),
        }
    }

    /// Minutes of a [`Step`], without its systems.
    pub(super) fn step(&self, step: &Step) -> f64 {
        self.of(&step.name)
    }

    /// Minutes of the start of a [`System`].
    pub(super) fn system(&self, system: &System) -> f64 {
        self.of(&system.name)
    }

    fn of(&self, name: &str) -> f64 {
        self.minutes.get(name).copied().unwrap_or_default()
    }
}

/// Factor of slowness, at least 1: on a faster machine, waiting does not become shorter.
fn slowness(now: Option<f64>, then: Option<f64>) -> f64 {
    match (now, then) {
        (Some(now), Some(then)) if then > 0.0 => (now / then).clamp(1.0, SLOWEST),
        _ => 1.0,
    }
}

/// Due step, with the criteria for its selection.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    pub(super) minutes: f64,
    /// Systems of the step, with the minutes of their start.
    pub(super) systems: Vec<(&'a str, f64)>,
    /// Systems that run until stopped.
    pub(super) runs: Vec<&'a str>,
    /// Time of the last pass.
    pub(super) passed: Option<Timestamp>,
}

impl<'a> Candidate<'a> {
    /// Candidate for a [`Step`] of the table, with its last pass.
    pub(super) fn new(
        table: &'a Table,
        expected: &Expected,
        step: &'a Step,
        last: Option<&Pass>,
    ) -> Self {
        let systems = table.systems_of(step);
        let runs = systems.iter().filter(|system| system.down.is_some());
        Self {
            name: &step.name,
            minutes: expected.step(step),
            runs: runs.map(|system| &*system.name).collect(),
            systems: systems
                .iter()
                .map(|system| (&*system.name, expected.system(system)))
                .collect(),
            passed: last.map(|pass| pass.at),
        }
    }
}

/// Steps to begin, in order, and steps left for another run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan<'a> {
    pub(super) begin: Vec<&'a str>,
    /// Steps left, the next one first.
    pub(super) later: Vec<&'a str>,
}

/// Selects the steps that begin within `minutes`; all without a limit.
///
/// The oldest last pass comes first, for any reason to be due: a skipped step is older than all others in the next run,
/// so that none starves. A system needed by several steps, or already running, costs its start once. Selected steps
/// with a common system follow each other. Beside a step, only the systems of its group run: a step that starts its own
/// nodes has the machine for itself.
pub(super) fn plan<'a>(
    candidates: &[Candidate<'a>],
    running: &BTreeSet<&str>,
    minutes: Option<f64>,
) -> Plan<'a> {
    let mut by_age: Vec<&Candidate<'a>> = candidates.iter().collect();
    by_age.sort_by_key(|step| step.passed);
    let mut started: BTreeSet<&str> = running.clone();
    let mut left = minutes;
    let mut chosen = Vec::new();
    let mut later = Vec::new();
    for step in by_age {
        let cost = step.minutes + starts(step, &started);
        if left.is_some_and(|left| cost > left) {
            later.push(step.name);
            continue;
        }
        left = left.map(|left| left - cost);
        started.extend(step.systems.iter().map(|(name, _)| *name));
        chosen.push(step);
    }
    Plan {
        begin: grouped(chosen, running),
        later,
    }
}

/// Minutes of the systems of a step that are not running.
fn starts(step: &Candidate<'_>, running: &BTreeSet<&str>) -> f64 {
    let missing = step.systems.iter();
    let missing = missing.filter(|(name, _)| !running.contains(name));
    missing.map(|(_, minutes)| minutes).sum()
}

/// Order of the chosen steps: first the oldest; then steps that need only running systems; then steps that share a
/// running system; then the oldest of the rest, before which all running systems are stopped.
fn grouped<'a>(mut chosen: Vec<&Candidate<'a>>, running: &BTreeSet<&str>) -> Vec<&'a str> {
    let mut running = running.clone();
    let mut order = Vec::new();
    while !chosen.is_empty() {
        let shared = |step: &Candidate<'a>| {
            let systems = step.runs.iter();
            systems.filter(|name| running.contains(*name)).count()
        };
        let all = |step: &&Candidate<'a>| !step.runs.is_empty() && shared(step) == step.runs.len();
        let some = |step: &&Candidate<'a>| shared(step) > 0;
        let next = chosen.iter().position(all);
        let next = next.or_else(|| chosen.iter().position(some));
        if next.is_none() {
            running.clear();
        }
        let step = chosen.remove(next.unwrap_or_default());
        running.extend(&step.runs);
        order.push(step.name);
    }
    order
}
