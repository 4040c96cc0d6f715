//! The steps, what they depend on and what they need.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// The whole table. Every name in it is of one thing alone.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// A command that builds what the steps run.
    #[serde(default)]
    pub(super) build: Option<String>,
    /// Minutes that the tests of the workspace take where the estimates hold.
    pub(super) tests: f64,
    /// Lists of files that several steps depend on.
    #[serde(default)]
    files: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) conditions: Vec<Condition>,
    #[serde(default)]
    pub(super) systems: Vec<System>,
    pub(super) steps: Vec<Step>,
    /// What no run does.
    #[serde(default)]
    pub(super) elsewhere: Vec<String>,
}

/// What a machine has or has not.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Condition {
    pub(super) name: String,
    /// A command that succeeds where the condition holds.
    pub(super) holds: String,
    /// What is wrong where it does not.
    pub(super) otherwise: String,
}

/// What is started once for all steps that need it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    pub(super) name: String,
    /// What it is, for the record.
    pub(super) shows: String,
    /// Conditions, and systems before this one.
    #[serde(default)]
    needs: Vec<String>,
    pub(super) up: String,
    /// Absent where nothing runs afterwards.
    #[serde(default)]
    pub(super) down: Option<String>,
    /// Of a system without `down`, which stays on the machine: a command that succeeds where it is there already.
    #[serde(default)]
    pub(super) there: Option<String>,
    /// How long the start takes; without `down`, on a machine that has nothing of it.
    pub(super) minutes: f64,
}

/// A step.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Step {
    pub(super) name: String,
    /// What is shown when it passes, as Markdown.
    pub(super) shows: String,
    /// Conditions and systems.
    #[serde(default)]
    needs: Vec<String>,
    /// Paths and names of lists.
    inputs: Vec<String>,
    /// Parts of the reasons for which tests of the step may be skipped.
    #[serde(default)]
    pub(super) may_skip: Vec<String>,
    pub(super) command: String,
    /// How long it takes, its systems apart.
    pub(super) minutes: f64,
}

impl Table {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).context("it cannot be read")?;
        Self::parse(&text)
    }

    /// Parses a table and checks it.
    ///
    /// # Errors
    ///
    /// A field or a name that is not known, and a name that two things have.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let table: Self = serde_saphyr::from_str(text)?;
        table.check()?;
        Ok(table)
    }

    fn check(&self) -> anyhow::Result<()> {
        let mut known = BTreeSet::new();
        for condition in &self.conditions {
            check_name(&mut known, &condition.name)?;
        }
        for system in &self.systems {
            check_needs(&known, &system.name, &system.needs)?;
            check_name(&mut known, &system.name)?;
            check_row(&system.name, &system.shows, system.minutes)?;
            ensure!(
                system.there.is_none() || system.down.is_none(),
                "{} has `there`, which is for what has no `down`",
                system.name
            );
        }
        let needed = known.clone();
        for step in &self.steps {
            check_needs(&needed, &step.name, &step.needs)?;
            check_name(&mut known, &step.name)?;
            check_row(&step.name, &step.shows, step.minutes)?;
            ensure!(!step.inputs.is_empty(), "{} has no inputs", step.name);
        }
        Ok(())
    }

    /// The paths that a step depends on.
    pub(super) fn files_of<'a>(&'a self, step: &'a Step) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = step.inputs.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            match self.files.get(name) {
                Some(list) => open.extend(list.iter().map(String::as_str)),
                None => drop(found.insert(name)),
            }
        }
        found
    }

    /// The systems of a step, each after those that it needs itself.
    pub(super) fn systems_of(&self, step: &Step) -> Vec<&System> {
        let all = self.all_needs(step);
        let systems = self.systems.iter();
        systems
            .filter(|system| all.contains(system.name.as_str()))
            .collect()
    }

    /// The conditions of a step and of its systems.
    pub(super) fn conditions_of(&self, step: &Step) -> Vec<&str> {
        let all = self.all_needs(step);
        let conditions = self.conditions.iter().map(|it| it.name.as_str());
        conditions.filter(|name| all.contains(name)).collect()
    }

    /// What is wrong where a condition does not hold.
    pub(super) fn reason_of(&self, condition: &str) -> &str {
        let found = self.conditions.iter().find(|it| it.name == condition);
        found.map_or("", |it| &it.otherwise)
    }

    fn all_needs<'a>(&'a self, step: &'a Step) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::new();
        let mut open: Vec<&str> = step.needs.iter().map(String::as_str).collect();
        while let Some(name) = open.pop() {
            if found.insert(name)
                && let Some(system) = self.systems.iter().find(|it| it.name == name)
            {
                open.extend(system.needs.iter().map(String::as_str));
            }
        }
        found
    }
}

fn check_name<'a>(known: &mut BTreeSet<&'a str>, name: &'a str) -> anyhow::Result<()> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    ensure!(
        !name.is_empty() && name.chars().all(is_part),
        "the name {name:?} has other characters than a-z, 0-9 and -"
    );
    ensure!(known.insert(name), "two things are called {name}");
    Ok(())
}

fn check_needs(known: &BTreeSet<&str>, name: &str, needs: &[String]) -> anyhow::Result<()> {
    for need in needs {
        if !known.contains(need.as_str()) {
            bail!("{name} needs {need}, which is no condition, and no system before it");
        }
    }
    Ok(())
}

fn check_row(name: &str, shows: &str, minutes: f64) -> anyhow::Result<()> {
    ensure!(
        !shows.contains(['|', '\n']),
        "what {name} shows has no place in a row"
    );
    ensure!(minutes > 0.0, "{name} takes no time");
    Ok(())
}
