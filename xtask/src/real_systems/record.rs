//! Record of passes: the page docs/project/real-systems.md, read and written by this task alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use anyhow::{Context, bail};
use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::TimeZone;

use super::table::Table;

#[cfg(test)]
mod tests;

/// Content of the cells before a first pass.
const NONE: &str = "–";
/// Format of dates, in UTC.
const DATE: &str = "%Y-%m-%d %H:%M";

const HEAD: &str = "\
# Real systems

What the steps on real systems last showed. `cargo xtask real-systems` writes this page when a step has passed, and reads it to
decide what is due: a step whose inputs, files of this repository and its command, have changed since, or that passed more than 30
days ago ([why](../adr/0065-three-tiers-of-checks.md)). The steps are in `.ci/real-systems.yaml`. Times are UTC; `tests` is how many minutes all
tests of the workspace took on that machine in the same run, if they ran, which tells how fast it was.
";
const STEPS: &str = "
| step | what it shows | minutes | passed | commit | inputs | tests |
|---|---|---|---|---|---|---|
";
const SYSTEMS: &str = "
What was started for them:

| system | what it is | minutes | started | commit | inputs | tests |
|---|---|---|---|---|---|---|
";

/// Pass of a step, or start of a system.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Pass {
    /// Duration in minutes.
    pub(super) minutes: f64,
    pub(super) at: Timestamp,
    /// Commit of the working tree, and a mark for uncommitted changes.
    pub(super) commit: String,
    /// Hash of the inputs; `None` for systems.
    pub(super) inputs: Option<String>,
    /// Duration of the tests of the workspace in the same run, in minutes.
    pub(super) tests: Option<f64>,
}

/// All [`Pass`]es, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    passes: BTreeMap<String, Pass>,
}

impl Record {
    /// Reads the page; empty if absent.
    pub(super) fn read(path: &Path, table: &Table) -> anyhow::Result<Self> {
        match fs::read_to_string(path) {
            Ok(text) => Self::parse(&text, table),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error.into()),
        }
    }

    /// Parses the rows of names in the table; other rows are of removed steps.
    fn parse(text: &str, table: &Table) -> anyhow::Result<Self> {
        let mut passes = BTreeMap::new();
        for line in text.lines().filter(|line| line.starts_with('|')) {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let name = cells.first().copied().unwrap_or_default();
            if names(table).any(|(known, _)| known == name)
                && let Some(pass) = pass(&cells).with_context(|| format!("the row of {name}"))?
            {
                passes.insert(name.to_owned(), pass);
            }
        }
        Ok(Self { passes })
    }

    /// Text of the page.
    fn text(&self, table: &Table) -> String {
        let mut text = HEAD.to_owned();
        text.push_str(STEPS);
        for step in &table.steps {
            self.row(&mut text, &step.name, &step.shows);
        }
        if !table.systems.is_empty() {
            text.push_str(SYSTEMS);
        }
        for system in &table.systems {
            self.row(&mut text, &system.name, &system.shows);
        }
        text
    }

    fn row(&self, text: &mut String, name: &str, shows: &str) {
        let cells = match self.passes.get(name) {
            None => [NONE; 5].join(" | "),
            Some(pass) => format!(
                "{:.1} | {} | {} | {} | {}",
                pass.minutes,
                pass.date(),
                pass.commit,
                pass.inputs.as_deref().unwrap_or(NONE),
                pass.tests
                    .map_or_else(|| NONE.to_owned(), |minutes| format!("{minutes:.0}"))
            ),
        };
        // Writing to a string never fails.
        let _ = writeln!(text, "| {name} | {shows} | {cells} |");
    }

    /// Writes the page.
    pub(super) fn write(&self, path: &Path, table: &Table) -> anyhow::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        fs::write(path, self.text(table)).context(path.display().to_string())
    }

    /// Last pass of a step or system.
    pub(super) fn passed(&self, name: &str) -> Option<&Pass> {
        self.passes.get(name)
    }

    /// Replaces the pass of a step or system.
    pub(super) fn insert(&mut self, name: &str, pass: Pass) {
        self.passes.insert(name.to_owned(), pass);
    }
}

impl Pass {
    /// Date for the page, in UTC.
    pub(super) fn date(&self) -> String {
        self.at.to_zoned(TimeZone::UTC).strftime(DATE).to_string()
    }
}

/// Names of steps and systems, each with its description.
fn names(table: &Table) -> impl Iterator<Item = (&str, &str)> {
    let steps = table.steps.iter().map(|it| (&*it.name, &*it.shows));
    steps.chain(table.systems.iter().map(|it| (&*it.name, &*it.shows)))
}

/// Parses the last five of seven cells.
fn pass(cells: &[&str]) -> anyhow::Result<Option<Pass>> {
    let [_, _, minutes, date, commit, inputs, tests] = cells else {
        bail!("it has {} cells, not seven", cells.len());
    };
    if *date == NONE {
        return Ok(None);
    }
    let at = DateTime::strptime(DATE, date).with_context(|| format!("the date {date}"))?;
    let given = |cell: &str| (cell != NONE).then(|| cell.to_owned());
    let number = |cell: &str| {
        cell.parse::<f64>()
            .with_context(|| format!("the number {cell}"))
    };
    Ok(Some(Pass {
        minutes: number(minutes)?,
        at: at.to_zoned(TimeZone::UTC)?.timestamp(),
        commit: (*commit).to_owned(),
        inputs: given(inputs),
        tests: given(tests).as_deref().map(number).transpose()?,
    }))
}
