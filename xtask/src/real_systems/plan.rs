//! Which steps are due, how long they will take, and which of them begin.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::{SignedDuration, Timestamp};

use super::record::{Pass, Record};
use super::table::{Step, System, Table};

#[cfg(test)]
mod tests;

/// A real system changes in ways that no file of the repository tells.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// No machine counts as slower than this.
const SLOWEST: f64 = 4.0;

/// Why a step is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// There is no record of it.
    Never,
    /// What it depends on is not what it was.
    Changed,
    /// Its record is older than 30 days.
    Old,
    /// Somebody wants it to run.
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

/// Whether a step is due that last passed like this.
pub(super) fn due(last: Option<&Pass>, inputs: &str, now: Timestamp) -> Option<Due> {
    match last {
        None => Some(Due::Never),
        Some(pass) if pass.inputs.as_deref() != Some(inputs) => Some(Due::Changed),
        Some(pass) if now.duration_since(pass.at) > KEPT => Some(Due::Old),
        Some(_) => None,
    }
}

/// How long things take on this machine, by what they took and by how long the tests took then and now. What stays on a machine
/// is there or is not: how long it took where it was there says nothing of this machine.
#[derive(Debug)]
pub(super) struct Expected {
    /// Minutes by the names of steps and systems.
    minutes: BTreeMap<String, f64>,
}

impl Expected {
    /// `there`: the systems that this machine has; `tests`: the minutes of the tests on it, if they ran.
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

    /// Minutes of a step, its systems apart.
    pub(super) fn step(&self, step: &Step) -> f64 {
        self.of(&step.name)
    }

    /// Minutes of the start of a system.
    pub(super) fn system(&self, system: &System) -> f64 {
        self.of(&system.name)
    }

    fn of(&self, name: &str) -> f64 {
        self.minutes.get(name).copied().unwrap_or_default()
    }
}

/// How many times as long something takes here. A faster machine earns nothing: what is waited for does not get faster.
fn slowness(now: Option<f64>, then: Option<f64>) -> f64 {
    match (now, then) {
        (Some(now), Some(then)) if then > 0.0 => (now / then).clamp(1.0, SLOWEST),
        _ => 1.0,
    }
}

/// A step that is due, with what decides when it begins.
#[derive(Clone, Debug)]
pub(super) struct Candidate<'a> {
    pub(super) name: &'a str,
    pub(super) minutes: f64,
    /// The systems that it needs, with the minutes of their start.
    pub(super) systems: Vec<(&'a str, f64)>,
    /// Those of them that go on until they are stopped.
    pub(super) runs: Vec<&'a str>,
    /// When it last passed.
    pub(super) passed: Option<Timestamp>,
}

impl<'a> Candidate<'a> {
    /// The step of the table, with its last pass.
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

/// What begins, in order, and what is left for another run.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Plan<'a> {
    pub(super) begin: Vec<&'a str>,
    /// The first of them is the next that begins when there is time.
    pub(super) later: Vec<&'a str>,
}

/// Chooses what begins within `minutes`, or all of it without a limit.
///
/// Steps are chosen by the age of their last pass, the oldest first, whatever they are due for: one that was left out is older
/// than all that ran, so that none is left out for ever. A system that several of them need, or that runs already, costs
/// its start once. Of the chosen ones those follow each other that share a system, and nothing runs beside a step that does
/// not need it but the other systems of such a group: a step that starts nodes of its own has the machine for itself.
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

/// The minutes of the systems of a step that do not run.
fn starts(step: &Candidate<'_>, running: &BTreeSet<&str>) -> f64 {
    let missing = step.systems.iter();
    let missing = missing.filter(|(name, _)| !running.contains(name));
    missing.map(|(_, minutes)| minutes).sum()
}

/// The oldest first, then those that need nothing but what runs by then, then those that need some of it, then the oldest of
/// the others, before which all that runs is stopped.
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
