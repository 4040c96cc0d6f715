//! Steps on real systems: the due ones, the ones that fit into the time, and the last result of each.
//!
//! - [`table`]: steps with dependencies and needs, from .ci/real-systems.yaml
//! - [`inputs`]: hash of the dependencies of a step
//! - [`record`]: passes with dates, in docs/project/real-systems.md
//! - [`plan`](mod@plan): due steps, and selection and order of the ones that begin
//! - [`round`]: start of the systems, run of the steps, update of the record
//! - [`process`]: commands with a time limit

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Args;
use jiff::Timestamp;

use crate::print;
use inputs::Digests;
use plan::{Due, Expected};
use process::Stop;
use record::Record;
use round::{Round, Waiting};
use table::{Step, Table};

mod inputs;
mod plan;
mod process;
mod record;
mod round;
mod table;

/// File with the [`Table`] of the steps.
const TABLE: &str = ".ci/real-systems.yaml";
/// Page with the [`Record`] of the steps.
const RECORD: &str = "docs/project/real-systems.md";

/// Without arguments: every due step, without a time limit.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Begin no step that would not end within this number of minutes.
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// Minutes after the limit until running steps are ended, which is no failure.
    #[arg(long, value_name = "N", default_value_t = 8.0)]
    grace: f64,
    /// Also run the steps that are not due.
    #[arg(long)]
    all: bool,
    /// Run this step alone, due or not. Can be given several times.
    #[arg(long = "step", value_name = "NAME")]
    steps: Vec<String>,
    /// Print due and selected steps, and run none.
    #[arg(long)]
    plan: bool,
    /// Duration of the tests of the workspace on this machine today: a measure of its speed.
    #[arg(long, value_name = "SECONDS")]
    tests_took: Option<f64>,
    /// Root of another workspace.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    root: Option<PathBuf>,
}

/// Plans and runs the steps.
///
/// # Errors
///
/// A failed step, reported after the others had their turn; an unreadable table or record.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let began = Instant::now();
    let root = arguments.root.as_deref().unwrap_or(root);
    let root = root.canonicalize().context("the workspace")?;
    let table = Table::read(&root.join(TABLE)).context(TABLE)?;
    let record = Record::read(&root.join(RECORD), &table).context(RECORD)?;
    for name in &arguments.steps {
        ensure!(
            table.steps.iter().any(|step| step.name == *name),
            "there is no step {name} in {TABLE}"
        );
    }
    let stop = Stop::on_signals()?;
    let missing = missing_conditions(&root, &table, &stop)?;
    let tests = arguments.tests_took.map(|seconds| seconds / 60.0);
    let mut digests = Digests::from_root(&root)?;
    let mut waiting = Vec::new();
    let mut absent = Vec::new();
    let mut unchanged = Vec::new();
    for step in &table.steps {
        let inputs = digests.inputs(&table.files_of(step), &step.command)?;
        let due = wanted(arguments, step, &record, &inputs);
        let lacks = table.conditions_of(step);
        let lacks = lacks.into_iter().find(|name| missing.contains(*name));
        match (due, lacks) {
            (Some(due), Some(condition)) => absent.push((step, due, table.reason_of(condition))),
            (Some(due), None) => waiting.push(Waiting { step, due, inputs }),
            (None, _) => unchanged.push(step),
        }
    }
    let there = systems_there(&root, &table, &stop)?;
    let expected = Expected::new(&table, &record, &there, tests);
    let time = (arguments.minutes.map(minutes), minutes(arguments.grace));
    let mut round = Round::new(&root, &table, record, expected, time, began, &stop);
    round.not_here(&absent);
    if arguments.steps.is_empty() {
        round.unchanged(&unchanged);
    }
    if arguments.plan {
        return print(&round.planned(&waiting));
    }
    let result = round.run(waiting, tests);
    print(&round.summary())?;
    result
}

/// Reason to run a step; `None` if there is none.
fn wanted(arguments: &Arguments, step: &Step, record: &Record, inputs: &str) -> Option<Due> {
    if !arguments.steps.is_empty() {
        return arguments.steps.contains(&step.name).then_some(Due::Asked);
    }
    let due = plan::due(record.passed(&step.name), inputs, Timestamp::now());
    due.or(arguments.all.then_some(Due::Asked))
}

/// Conditions that do not hold on this machine.
fn missing_conditions(root: &Path, table: &Table, stop: &Stop) -> anyhow::Result<BTreeSet<String>> {
    let mut missing = BTreeSet::new();
    for condition in &table.conditions {
        let end = process::quiet(root, &condition.holds, stop)?;
        if !end.is_success() {
            missing.insert(condition.name.clone());
        }
    }
    Ok(missing)
}

/// Systems already on this machine.
fn systems_there(root: &Path, table: &Table, stop: &Stop) -> anyhow::Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    for system in &table.systems {
        let Some(command) = &system.there else {
            continue;
        };
        if process::quiet(root, command, stop)?.is_success() {
            found.insert(system.name.clone());
        }
    }
    Ok(found)
}

/// Duration in minutes; zero for a negative number.
fn minutes(number: f64) -> Duration {
    Duration::try_from_secs_f64(number * 60.0).unwrap_or_default()
}
