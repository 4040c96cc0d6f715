//! The steps on real systems: which are due, which of them fit into the time, and what each of them showed last.
//!
//! ```text
//!   table     the steps, what they depend on and what they need: .ci/real-systems.yaml
//!   inputs    a hash of what a step depends on
//!   record    what passed when: docs/project/real-systems.md
//!   plan      which steps are due, and which of them begin, in which order
//!   round     starts the systems, runs the steps, writes the record
//!   process   commands that are ended in time
//! ```

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

/// The table of the steps.
const TABLE: &str = ".ci/real-systems.yaml";
/// The record of the steps.
const RECORD: &str = "docs/project/real-systems.md";

/// Without arguments: every step that is due, without a limit of time.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Begin no step that would not end within so many minutes.
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
    /// After so many more minutes what still runs is ended; it is no failure.
    #[arg(long, value_name = "N", default_value_t = 8.0)]
    grace: f64,
    /// Run the steps that are not due, too.
    #[arg(long)]
    all: bool,
    /// Run this step alone, whether or not it is due. Can be given several times.
    #[arg(long = "step", value_name = "NAME")]
    steps: Vec<String>,
    /// Print which steps are due and which would run, and run none.
    #[arg(long)]
    plan: bool,
    /// How long the tests of the workspace took on this machine today: a measure of its speed.
    #[arg(long, value_name = "SECONDS")]
    tests_took: Option<f64>,
    /// The root of another workspace.
    #[arg(long, value_name = "DIRECTORY", hide = true)]
    root: Option<PathBuf>,
}

/// Plans and runs.
///
/// # Errors
///
/// A step that failed, after the others had their turn; a table or a record that cannot be read.
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
    let mut digests = Digests::of(&root)?;
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

/// Why a step should run, if it should.
fn wanted(arguments: &Arguments, step: &Step, record: &Record, inputs: &str) -> Option<Due> {
    if !arguments.steps.is_empty() {
        return arguments.steps.contains(&step.name).then_some(Due::Asked);
    }
    let due = plan::due(record.passed(&step.name), inputs, Timestamp::now());
    due.or(arguments.all.then_some(Due::Asked))
}

/// The conditions that do not hold on this machine.
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

/// The systems that are on this machine already.
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

/// So many minutes; none if they are negative.
fn minutes(number: f64) -> Duration {
    Duration::try_from_secs_f64(number * 60.0).unwrap_or_default()
}
