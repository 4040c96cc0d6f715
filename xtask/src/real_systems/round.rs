//! One round: starts systems, runs steps, and records each pass at once.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use jiff::Timestamp;

use super::plan::{Candidate, Due, Expected, plan};
use super::process::{self, End, Stop, Tail};
use super::record::{Pass, Record};
use super::table::{Step, System, Table};
use super::{RECORD, minutes};
use crate::print;
use crate::stopwatch::clock;

/// File with the tests that could not run, one on each line (crates/skipped).
const SKIPPED: &str = "target/skipped-tests";
/// Multiple of the expected duration after which a step hangs.
const HANGS: f64 = 3.0;
/// Minutes below which no step hangs.
const SHORT: f64 = 10.0;
/// Time for a system to stop, in minutes.
const DOWN: f64 = 3.0;

/// Due step with its inputs.
#[derive(Debug)]
pub(super) struct Waiting<'a> {
    pub(super) step: &'a Step,
    pub(super) due: Due,
    pub(super) inputs: String,
}

/// State of a round.
#[derive(Debug)]
pub(super) struct Round<'a> {
    root: &'a Path,
    table: &'a Table,
    record: Record,
    expected: Expected,
    began: Instant,
    /// Time since the beginning in which steps may end; `None` for no limit.
    limit: Option<Duration>,
    /// Additional time for a step already running at the limit.
    grace: Duration,
    stop: &'a Stop,
    /// Running systems, in the order of their start.
    running: Vec<&'a System>,
    /// Systems that did not start.
    broken: BTreeSet<&'a str>,
    lines: Vec<String>,
    later: Vec<String>,
    failed: Vec<String>,
    /// Last lines of the output of each failed command, under its title.
    ends: Vec<String>,
}

impl<'a> Round<'a> {
    pub(super) fn new(
        root: &'a Path,
        table: &'a Table,
        record: Record,
        expected: Expected,
        (limit, grace): (Option<Duration>, Duration),
        began: Instant,
        stop: &'a Stop,
    ) -> Self {
        Self {
            root,
            table,
            record,
            expected,
            began,
            limit,
            grace,
            stop,
            running: Vec::new(),
            broken: BTreeSet::new(),
            lines: Vec::new(),
            later: Vec::new(),
            failed: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// Reports the steps that this machine cannot run, with the missing condition.
    pub(super) fn not_here(&mut self, absent: &[(&Step, Due, &str)]) {
        for (step, due, why) in absent {
            let last = self.last(&step.name);
            let name = &step.name;
            self.later
                .push(format!("not possible here: {name} ({due}; {last}): {why}"));
        }
    }

    /// Reports the steps that are not due.
    pub(super) fn unchanged(&mut self, steps: &[&Step]) {
        for step in steps {
            let last = self.last(&step.name);
            self.later
                .push(format!("unchanged: {} ({last})", step.name));
        }
    }

    /// Text of the plan: due steps, and the ones that would begin.
    pub(super) fn planned(&mut self, waiting: &[Waiting<'a>]) -> String {
        let candidates = self.candidates(waiting);
        let plan = plan(&candidates, &BTreeSet::new(), self.limit.map(in_minutes));
        let mut text = String::new();
        for name in plan.begin {
            let Some(waiting) = waiting.iter().find(|it| it.step.name == name) else {
                continue;
            };
            let takes = self.expected.step(waiting.step);
            let last = self.last(name);
            // Writing to a string never fails.
            let _ = writeln!(text, "{name}: {}; {last}; {takes:.1} minutes", waiting.due);
            for system in self.table.systems_of(waiting.step) {
                let takes = self.expected.system(system);
                let _ = writeln!(text, "    needs {}, {takes:.1} minutes", system.name);
            }
        }
        self.leave(waiting, &plan.later);
        for line in &self.later {
            let _ = writeln!(text, "{line}");
        }
        text
    }

    /// Runs the steps that fit, stops every system, and writes the record.
    ///
    /// # Errors
    ///
    /// Names of the failed steps.
    pub(super) fn run(
        &mut self,
        waiting: Vec<Waiting<'a>>,
        tests: Option<f64>,
    ) -> anyhow::Result<()> {
        let result = self.steps(waiting, tests);
        while let Some(system) = self.running.pop() {
            self.down(system);
        }
        let written = self.write();
        result.and(written)?;
        ensure!(!self.stop.is_set(), "interrupted");
        ensure!(self.failed.is_empty(), "failed: {}", self.failed.join(", "));
        Ok(())
    }

    fn steps(&mut self, mut waiting: Vec<Waiting<'a>>, tests: Option<f64>) -> anyhow::Result<()> {
        let mut is_built = self.table.build.is_none();
        while !self.stop.is_set() {
            self.drop_broken(&mut waiting);
            let candidates = self.candidates(&waiting);
            let names = self.running.iter().map(|it| it.name.as_str()).collect();
            let plan = plan(&candidates, &names, self.left());
            self.stop_all_but(&waiting, &plan.begin);
            let Some(next) = plan.begin.first() else {
                self.leave(&waiting, &plan.later);
                return Ok(());
            };
            if !is_built {
                self.build()?;
                is_built = true;
                continue;
            }
            let Some(at) = waiting.iter().position(|it| it.step.name == *next) else {
                bail!("the step {next} is not there");
            };
            let step = waiting[at].step;
            match self.missing_system(step) {
                // The start may take longer than expected, so plan again afterwards.
                Some(system) => self.up(system, tests)?,
                None => {
                    let waiting = waiting.remove(at);
                    self.step(&waiting, tests)?;
                }
            }
        }
        Ok(())
    }

    fn candidates(&self, waiting: &[Waiting<'a>]) -> Vec<Candidate<'a>> {
        let steps = waiting.iter().map(|it| it.step);
        steps
            .map(|step| {
                let last = self.record.passed(&step.name);
                Candidate::new(self.table, &self.expected, step, last)
            })
            .collect()
    }

    /// Minutes left for steps; `None` without a limit.
    fn left(&self) -> Option<f64> {
        let limit = self.limit?;
        Some(in_minutes(limit.saturating_sub(self.began.elapsed())))
    }

    /// Fails the steps whose systems did not start.
    fn drop_broken(&mut self, waiting: &mut Vec<Waiting<'a>>) {
        waiting.retain(|it| {
            let mut systems = self.table.systems_of(it.step).into_iter();
            let Some(system) = systems.find(|it| self.broken.contains(it.name.as_str())) else {
                return true;
            };
            let name = &it.step.name;
            self.failed.push(name.clone());
            let line = format!("        {name}: FAILED: {} did not start", system.name);
            self.lines.push(line);
            false
        });
    }

    /// Stops the systems without a step among these.
    fn stop_all_but(&mut self, waiting: &[Waiting<'a>], begin: &[&str]) {
        let needed: BTreeSet<&str> = waiting
            .iter()
            .filter(|it| begin.contains(&it.step.name.as_str()))
            .flat_map(|it| self.table.systems_of(it.step))
            .map(|system| system.name.as_str())
            .collect();
        let running = std::mem::take(&mut self.running);
        let (keep, stop): (Vec<_>, Vec<_>) = running
            .into_iter()
            .partition(|system| system.down.is_none() || needed.contains(system.name.as_str()));
        self.running = keep;
        for system in stop.into_iter().rev() {
            self.down(system);
        }
    }

    fn missing_system(&self, step: &Step) -> Option<&'a System> {
        let mut systems = self.table.systems_of(step).into_iter();
        systems.find(|system| !self.running.iter().any(|it| it.name == system.name))
    }

    fn build(&mut self) -> anyhow::Result<()> {
        let Some(command) = &self.table.build else {
            return Ok(());
        };
        let (end, took) = self.command("build", command, self.last_moment())?;
        self.note(took, &format!("build{}", how(end)));
        ensure!(end.is_success(), "what the steps run cannot be built");
        Ok(())
    }

    fn up(&mut self, system: &'a System, tests: Option<f64>) -> anyhow::Result<()> {
        // A partial start has to be stopped, too.
        self.running.push(system);
        let end = self.end(self.expected.system(system));
        let (end, took) = self.command(&format!("start of {}", system.name), &system.up, end)?;
        self.note(took, &format!("start of {}{}", system.name, how(end)));
        if end.is_success() {
            return self.passed(&system.name, took, None, tests);
        }
        if !(matches!(end, End::TooLong) && self.is_over()) {
            self.broken.insert(&system.name);
        }
        Ok(())
    }

    fn down(&mut self, system: &System) {
        let Some(command) = &system.down else {
            return;
        };
        let end = Instant::now() + minutes(DOWN);
        let began = Instant::now();
        // Also if this program is stopping.
        let tail = Tail::default();
        let end = process::run(self.root, command, Some(end), &Stop::never(), &tail);
        if !end.as_ref().is_ok_and(|end| end.is_success()) {
            let line = format!("{} could not be stopped: {command}", system.name);
            self.note(began.elapsed(), &line);
            self.keep_end(&format!("stop of {}", system.name), &tail);
            self.failed.push(line);
        }
    }

    fn step(&mut self, waiting: &Waiting<'a>, tests: Option<f64>) -> anyhow::Result<()> {
        let step = waiting.step;
        let _ = fs::remove_file(self.root.join(SKIPPED));
        let end = self.end(self.expected.step(step));
        let title = format!("{}: {}", step.name, step.shows);
        let (end, took) = self.command(&title, &step.command, end)?;
        let skipped = self.skipped(step);
        for line in &skipped {
            self.later.push(format!("skipped in {}: {line}", step.name));
        }
        if matches!(end, End::TooLong) && self.is_over() {
            // No failure: only the time of this run was short, and the step comes first in the next one.
            self.note(took, &format!("{}: ended, the time was over", step.name));
            let last = self.last(&step.name);
            self.later
                .push(format!("left for another run: {} ({last})", step.name));
        } else if !end.is_success() {
            self.note(took, &format!("{}{}", step.name, how(end)));
            self.failed.push(step.name.clone());
        } else if skipped.is_empty() {
            self.note(took, &step.name);
            self.passed(&step.name, took, Some(&waiting.inputs), tests)?;
        } else {
            self.note(
                took,
                &format!("{}: tests were skipped, so it has not passed", step.name),
            );
        }
        Ok(())
    }

    /// Tests that the step skipped without permission.
    fn skipped(&self, step: &Step) -> BTreeSet<String> {
        let path = self.root.join(SKIPPED);
        let text = fs::read_to_string(&path).unwrap_or_default();
        let _ = fs::remove_file(path);
        let may = |line: &&str| {
            step.may_skip
                .iter()
                .any(|part| line.contains(part.as_str()))
        };
        text.lines()
            .filter(|line| !may(line))
            .map(str::to_owned)
            .collect()
    }

    /// Time limit of a command with this expected duration, if there is a limit.
    fn end(&self, expected: f64) -> Option<Instant> {
        let hangs = Instant::now() + minutes((HANGS * expected).max(SHORT));
        self.last_moment().map(|end| end.min(hangs))
    }

    fn last_moment(&self) -> Option<Instant> {
        Some(self.began + self.limit? + self.grace)
    }

    /// True after the last moment, when all commands are ended.
    fn is_over(&self) -> bool {
        self.last_moment().is_some_and(|end| Instant::now() >= end)
    }

    fn command(
        &mut self,
        title: &str,
        command: &str,
        end: Option<Instant>,
    ) -> anyhow::Result<(End, Duration)> {
        let now = Timestamp::now().strftime("%H:%M:%S");
        print(&format!("\n==== {title} ({now})\n"))?;
        let began = Instant::now();
        let tail = Tail::default();
        let end = process::run(self.root, command, end, self.stop, &tail)?;
        if !end.is_success() {
            self.keep_end(title, &tail);
        }
        Ok((end, began.elapsed()))
    }

    fn keep_end(&mut self, title: &str, tail: &Tail) {
        let lines = tail.lines();
        self.ends.push(format!("---- the end of {title}\n{lines}"));
    }

    fn note(&mut self, took: Duration, what: &str) {
        self.lines.push(format!("{}  {what}", clock(took)));
    }

    /// Records a pass. The page is written at once, and survives the loss of the run.
    fn passed(
        &mut self,
        name: &str,
        took: Duration,
        inputs: Option<&str>,
        tests: Option<f64>,
    ) -> anyhow::Result<()> {
        let pass = Pass {
            minutes: in_minutes(took),
            at: Timestamp::now(),
            commit: commit(self.root)?,
            inputs: inputs.map(str::to_owned),
            tests,
        };
        self.record.insert(name, pass);
        self.write()
    }

    fn write(&self) -> anyhow::Result<()> {
        self.record.write(&self.root.join(RECORD), self.table)
    }

    /// Reports due steps that do not begin.
    fn leave(&mut self, waiting: &[Waiting<'a>], later: &[&str]) {
        let left = self.left().unwrap_or_default();
        for name in later {
            let Some(waiting) = waiting.iter().find(|it| it.step.name == *name) else {
                continue;
            };
            let (due, last) = (waiting.due, self.last(name));
            let takes = self.expected.step(waiting.step);
            self.later.push(format!(
                "left for another run: {name} ({due}; {last}): it takes {takes:.1} minutes besides the start of its systems, {left:.1} are left"
            ));
        }
    }

    /// Text with the last pass of a step.
    fn last(&self, name: &str) -> String {
        self.record.passed(name).map_or_else(
            || "it has not passed".to_owned(),
            |pass| format!("passed on {} with {}", pass.date(), pass.commit),
        )
    }

    /// Summary: time of each step, steps that did not run with reasons, checks outside any run, and last lines of
    /// failed commands.
    pub(super) fn summary(&self) -> String {
        let mut lines = vec!["\n==== real systems".to_owned()];
        lines.extend(self.lines.iter().cloned());
        lines.push(format!(
            "{}  real systems in all",
            clock(self.began.elapsed())
        ));
        lines.extend(self.later.iter().cloned());
        let elsewhere = self.table.elsewhere.iter();
        lines.extend(elsewhere.map(|what| format!("never run here: {what}")));
        // At the end, for readers who see only the end of a long output.
        lines.extend(self.ends.iter().cloned());
        lines.push(format!("the record is in {RECORD}\n"));
        lines.join("\n")
    }
}

/// Commit of the working tree, with a mark for changes. The record itself is no change.
fn commit(root: &Path) -> anyhow::Result<String> {
    let git = |arguments: &[&str]| -> anyhow::Result<String> {
        let mut git = Command::new("git");
        let output = git.args(arguments).current_dir(root).output();
        let output = output.context("git")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "git {}: {errors}",
            arguments.join(" ")
        );
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let head = git(&["rev-parse", "--short=8", "HEAD"])?;
    let record = format!(":(exclude,top){RECORD}");
    let changes = git(&["status", "--porcelain", "--", ":(top)", &record])?;
    Ok(if changes.is_empty() {
        head
    } else {
        format!("{head} with changes")
    })
}

/// Suffix for the name of an unsuccessful command.
fn how(end: End) -> String {
    match end {
        End::Status(status) if status.success() => String::new(),
        End::Status(status) => format!(": FAILED: {status}"),
        End::TooLong => ": FAILED: it took too long and was ended".to_owned(),
        End::Stopped => ": ended".to_owned(),
    }
}

fn in_minutes(time: Duration) -> f64 {
    time.as_secs_f64() / 60.0
}
