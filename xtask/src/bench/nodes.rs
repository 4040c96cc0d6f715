//! `bench nodes`: a real Kubernetes, and clusters of real machines, by the scripts of tests/kubernetes and tests/nodes.
//!
//! The scripts print the time of each step; the figures are sums of steps. Programs and images are built before the
//! measurement.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, bail};
use serde::Serialize;

use super::load;

/// Last step of the creation of a cluster.
const LAST_STEP: &str = "Cluster Available, Machines Running";

/// Results of all scripts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) machine: String,
    /// Load average of the last minute, before and after.
    pub(super) load: [f64; 2],
    pub(super) figures: Vec<Figure>,
}

/// Figure with its target.
#[derive(Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Figure {
    pub(super) what: String,
    pub(super) value: f64,
    pub(super) unit: &'static str,
    pub(super) target: f64,
}

/// Measures, and prints a table or JSON.
pub(crate) fn run(root: &Path, binary: Option<PathBuf>, json: bool) -> anyhow::Result<()> {
    let binary = match binary {
        Some(binary) => binary,
        None => super::build(root)?,
    };
    let before = load();
    let mut figures = nodes(root)?;
    for (control_plane, workers, target) in [(1, 1, 90.0), (3, 2, 300.0)] {
        let counts = [control_plane, workers].map(|count: u32| count.to_string());
        let text = Script::new(root, "tests/nodes/end-to-end")
            .with("FERROSTACK_BINARY", &binary)
            .run(&["--control-plane", &counts[0], "--workers", &counts[1]])?;
        figures.extend(machines(&text, &counts, target)?);
    }
    let report = Report {
        machine: super::machine(),
        load: [before, load()],
        figures,
    };
    if json {
        return crate::print(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    crate::print(&table(&report))
}

/// Figures of `tests/kubernetes/node`: up, check, down.
fn nodes(root: &Path) -> anyhow::Result<Vec<Figure>> {
    let script = || Script::new(root, "tests/kubernetes/node");
    // The first `up` builds programs and images.
    script().run(&["up"])?;
    script().run(&["down", "--keep-images"])?;
    let mut figures = Vec::new();
    for (arguments, what, target) in [
        (["up", "--nodes", "1"].as_slice(), "node up, one node", 15.0),
        (&["check"], "node check", 120.0),
        (&["down", "--keep-images"], "node down", 5.0),
    ] {
        let start = Instant::now();
        script().run(arguments)?;
        figures.push(Figure {
            what: what.to_owned(),
            value: start.elapsed().as_secs_f64(),
            unit: "s",
            target,
        });
    }
    Ok(figures)
}

/// [`Figure`]s in the output of `tests/nodes/end-to-end`.
fn machines(text: &str, counts: &[String; 2], target: f64) -> anyhow::Result<Vec<Figure>> {
    let name = format!("{} + {}", counts[0], counts[1]);
    let mut ready = 0.0;
    let mut memory = Vec::new();
    let mut first_line = None;
    let mut done = false;
    for line in text.lines() {
        if let Some((what, seconds)) = step(line)
            && !done
        {
            ready += seconds;
            done = what == LAST_STEP;
        }
        let last = line.split_whitespace().rev().nth(1);
        let number = last.and_then(|number| number.parse::<f64>().ok());
        if line.starts_with("memory of ") && line.ends_with(" MB") {
            memory.extend(number);
        } else if line.starts_with("cloud-init's first line ") {
            first_line = number;
        }
    }
    let planes: usize = counts[0].parse()?;
    memory.sort_by(f64::total_cmp);
    if !done || memory.len() <= planes {
        bail!("tests/nodes/end-to-end has not printed its steps and the memory of machines");
    }
    let figure = |what: String, value, unit, target| Figure {
        what,
        value,
        unit,
        target,
    };
    // Control plane machines use more than workers.
    let workers = &memory[..memory.len() - planes];
    let mut figures = vec![
        figure(format!("{name}: Cluster Available"), ready, "s", target),
        figure(
            format!("{name}: largest control plane machine"),
            memory.last().copied().unwrap_or_default(),
            "MB",
            600.0,
        ),
        figure(
            format!("{name}: largest worker"),
            workers.last().copied().unwrap_or_default(),
            "MB",
            250.0,
        ),
    ];
    if let Some(seconds) = first_line {
        let what = format!("{name}: server created until cloud-init's first line");
        figures.push(figure(what, seconds, "s", 2.0));
    }
    Ok(figures)
}

/// Step and seconds in a line such as `two replicas run    2.2 s`.
pub(super) fn step(line: &str) -> Option<(&str, f64)> {
    let rest = line.strip_suffix(" s")?;
    let (what, seconds) = rest.rsplit_once(' ')?;
    Some((what.trim_end(), seconds.parse().ok()?))
}

pub(super) fn table(report: &Report) -> String {
    let mut text = format!(
        "{}; load {:.1} before, {:.1} after\n\n",
        report.machine, report.load[0], report.load[1]
    );
    for figure in &report.figures {
        let verdict = if figure.value <= figure.target {
            ""
        } else {
            "  (more than the target)"
        };
        text += &format!(
            "{:<58} {:>7.1} {:<2} target {:>4} {}{verdict}\n",
            figure.what, figure.value, figure.unit, figure.target, figure.unit
        );
    }
    text
}

/// Script of this repository.
pub(super) struct Script {
    command: Command,
    name: String,
}

impl Script {
    pub(super) fn new(root: &Path, name: &str) -> Self {
        Self {
            command: Command::new(root.join(name)),
            name: name.to_owned(),
        }
    }

    pub(super) fn with(mut self, variable: &str, value: &Path) -> Self {
        self.command.env(variable, value);
        self
    }

    /// Runs the script, and returns its standard output.
    pub(super) fn run(mut self, arguments: &[&str]) -> anyhow::Result<String> {
        let command = format!("{} {}", self.name, arguments.join(" "));
        let output = self
            .command
            .args(arguments)
            .output()
            .with_context(|| command.clone())?;
        if !output.status.success() {
            bail!(
                "{command}: {}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            );
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests;
