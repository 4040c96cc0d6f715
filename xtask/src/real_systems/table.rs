//! Steps, with dependencies and needs.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

#[cfg(test)]
mod tests;

/// The whole table. Each name is unique in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Table {
    /// Command that builds the programs for the steps.
    #[serde(default)]
    pub(super) build: Option<String>,
    /// Minutes of the tests of the workspace on the machine of the estimates.
    pub(super) tests: f64,
    /// Lists of files for the inputs of several steps.
    #[serde(default)]
    files: BTreeMap<String, Vec<String>>,
    #[serde(default)]
    pub(super) conditions: Vec<Condition>,
    #[serde(default)]
    pub(super) systems: Vec<System>,
    pub(super) steps: Vec<Step>,
    /// Checks outside any run.
    #[serde(default)]
    pub(super) elsewhere: Vec<String>,
}

/// Property of a machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Condition {
    pub(super) name: String,
    /// Command that succeeds if the condition holds.
    pub(super) holds: String,
    /// Message if the condition does not hold.
    pub(super) otherwise: String,
}

/// System that is started once for all steps with a need for it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct System {
    pub(super) name: String,
    /// Description, for the record.
    pub(super) shows: String,
    /// Conditions, and systems to start before this one.
    #[serde(default)]
    needs: Vec<String>,
    pub(super) up: String,
    /// Command that stops the system; absent if nothing runs after the start.
    #[serde(default)]
    pub(super) down: Option<String>,
    /// For a system without `down`, which stays on the machine: command that succeeds if the system is present.
    #[serde(default)]
    pub(super) there: Option<String>,
    /// Duration of the start in minutes; without `down`, on a machine without any part of the system.
    pub(super) minutes: f64,
}

/// Step on real systems.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Step {
    pub(super) name: String,
    /// Evidence given by a pass, in Markdown.
    pub(super) shows: String,
    /// Names of conditions and systems.
    #[serde(default)]
    needs: Vec<String>,
    /// Paths, and names of lists.
    inputs: Vec<String>,
    /// Parts of reasons that permit the step's tests to be skipped.
    #[serde(default)]
    pub(super) may_skip: Vec<String>,
    pub(super) command: String,
    /// Duration in minutes, without systems.
    pub(super) minutes: f64,
}

impl Table {
    /// Reads the file.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let text = fs::read_to_string(path).context("it cannot be read")?;
        Self::parse(&text)
    }

    /// Parses a table and checks names.
    ///
    /// # Errors
    ///
    /// An unknown field or name, or a name used twice.
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

    /// Paths on which a step depends.
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

    /// [`System`]s of a step, each after its own needs.
    pub(super) fn systems_of(&self, step: &Step) -> Vec<&System> {
        let all = self.all_needs(step);
        let systems = self.systems.iter();
        systems
            .filter(|system| all.contains(system.name.as_str()))
            .collect()
    }

    /// Conditions of a step and of its systems.
    pub(super) fn conditions_of(&self, step: &Step) -> Vec<&str> {
        let all = self.all_needs(step);
        let conditions = self.conditions.iter().map(|it| it.name.as_str());
        conditions.filter(|name| all.contains(name)).collect()
    }

    /// Message for a condition that does not hold.
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
