//! `storage-tests`: storage tests of Kubernetes (`tests/csi/external-storage`) as a table of docs/project/runs/csi-storage-tests.md,
//! from the reports of their runs.
//!
//! A [`Report`] is written by Ginkgo's `--json-report` to a file `NAME.json` or `NAME-NUMBER.json`, where NAME is the
//! file system of the run. Every test must be in a report as [`End`] of one kind: it ran, the framework skipped it with
//! a reason, or its name has a mark of left-out tests. The last of several runs of a test counts.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

use crate::differences::page::{self, Marks};

const PAGE: &str = "docs/project/runs/csi-storage-tests.md";
const MARKS: Marks = Marks {
    before: "<!-- storage tests: begin -->\n",
    after: "<!-- storage tests: end -->\n",
};
/// Maximum size of a report in bytes: a report of all tests has some MiB.
const LARGEST_REPORT: u64 = 256 << 20;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Reports of Ginkgo.
    #[arg(value_name = "REPORT", required = true)]
    reports: Vec<PathBuf>,
    /// A mark in the names of tests that no run has, and the reason, such as `[Slow]=takes minutes`.
    #[arg(long, value_name = "MARK=WHY", value_parser = mark)]
    left_out: Vec<(String, String)>,
    /// Write the table to docs/project/runs/csi-storage-tests.md.
    #[arg(long)]
    write: bool,
}

/// Report of one run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    start_time: String,
    spec_reports: Vec<Spec>,
}

/// One test in a run.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Spec {
    leaf_node_type: String,
    container_hierarchy_texts: Option<Vec<String>>,
    leaf_node_text: String,
    state: String,
    failure: Option<Failure>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Failure {
    message: String,
}

/// Place of a test in the table.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Name {
    group: String,
    test: String,
}

/// End of a test with one kind of volume.
#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    /// The test ran: file systems of its runs, each with true if passed.
    Ran(BTreeMap<String, bool>),
    /// The test does not apply, or is left out, for this reason.
    Not(String),
    /// No run had the test, without a reason.
    Nowhere,
}

/// [`End`]s of all tests, by name and by kind of volume.
type Ends = BTreeMap<Name, BTreeMap<String, End>>;

/// Prints the table, or writes it to the page.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let mut reports = Vec::new();
    for file in &arguments.reports {
        let read = read(file).with_context(|| file.display().to_string())?;
        reports.extend(read.into_iter().map(|report| (file_system(file), report)));
    }
    reports.sort_by(|(_, one), (_, other)| one.start_time.cmp(&other.start_time));
    let table = table(&reports, &arguments.left_out)?;
    if !arguments.write {
        return crate::print(&table);
    }
    let file = root.join(PAGE);
    let text = std::fs::read_to_string(&file).context(PAGE)?;
    let text = page::replaced(&text, MARKS, &table).context(PAGE)?;
    Ok(std::fs::write(file, text)?)
}

fn mark(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=');
    let (mark, why) = pair.ok_or_else(|| format!("`{text}` is not MARK=WHY"))?;
    Ok((mark.to_owned(), why.to_owned()))
}

fn read(file: &Path) -> anyhow::Result<Vec<Report>> {
    let size = std::fs::metadata(file)?.len();
    ensure!(size <= LARGEST_REPORT, "this is too large for a report");
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

/// File system in the name of a report: `xfs` of `…/xfs-2.json`.
fn file_system(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = stem.split('-').next().unwrap_or_default();
    name.to_owned()
}

/// The table, after a line with a summary.
fn table(reports: &[(String, Report)], left_out: &[(String, String)]) -> anyhow::Result<String> {
    let ends = ends(reports, left_out);
    let all = || ends.values().flat_map(BTreeMap::values);
    let nowhere = all().filter(|end| **end == End::Nowhere).count();
    if nowhere > 0 {
        let is_one = |kinds: &BTreeMap<String, End>| kinds.values().any(|it| *it == End::Nowhere);
        let mut names = ends.iter().filter(|(_, kinds)| is_one(kinds));
        let first = names.next().map(|(name, _)| name);
        let first = first.map(|name| format!("{} {}", name.group, name.test));
        bail!(
            "{nowhere} tests are in no run, such as `{}`: give the reports of all parts",
            first.unwrap_or_default()
        );
    }
    let ran = || {
        let all = all().filter_map(|end| match end {
            End::Ran(by) => Some(by.values()),
            End::Not(_) | End::Nowhere => None,
        });
        all.flatten()
    };
    let dates: BTreeSet<&str> = reports.iter().filter_map(|it| date(&it.1)).collect();
    let dates: Vec<&str> = dates.into_iter().collect();
    let mut text = format!(
        "Of {} tests, {} ran: {} times they passed, {} times they failed ({}, UTC).\n\n\
         | group | test | passed with | not run |\n|---|---|---|---|\n",
        all().count(),
        all().filter(|it| matches!(it, End::Ran(_))).count(),
        ran().filter(|passed| **passed).count(),
        ran().filter(|passed| !**passed).count(),
        dates.join(", "),
    );
    let mut group = "";
    for (name, kinds) in &ends {
        let once = if name.group == group { "" } else { &name.group };
        group = &name.group;
        let _ = writeln!(
            text,
            "| {once} | {} | {} | {} |",
            name.test,
            ran_with(kinds),
            not_run(kinds)
        );
    }
    Ok(text)
}

fn date(report: &Report) -> Option<&str> {
    report.start_time.get(..10)
}

/// Kinds of volumes by file system: `ext4: block volmode, default fs`.
fn ran_with(kinds: &BTreeMap<String, End>) -> String {
    let mut by: BTreeMap<(bool, &str), Vec<&str>> = BTreeMap::new();
    for (kind, end) in kinds {
        if let End::Ran(systems) = end {
            for (system, passed) in systems {
                by.entry((!passed, system)).or_default().push(kind);
            }
        }
    }
    let lists = by.into_iter().map(|((failed, system), kinds)| {
        let failed = if failed { "**failed**, " } else { "" };
        format!("{failed}{system}: {}", kinds.join(", "))
    });
    lists.collect::<Vec<_>>().join("; ")
}

/// Reasons with their numbers: `takes minutes (3)`.
fn not_run(kinds: &BTreeMap<String, End>) -> String {
    let mut by: BTreeMap<&str, usize> = BTreeMap::new();
    for end in kinds.values() {
        if let End::Not(why) = end {
            *by.entry(why).or_default() += 1;
        }
    }
    let counts = by
        .into_iter()
        .map(|(why, count)| format!("{why} ({count})"));
    counts.collect::<Vec<_>>().join("; ")
}

fn ends(reports: &[(String, Report)], left_out: &[(String, String)]) -> Ends {
    let mut ends = Ends::new();
    for (system, report) in reports {
        let tests = report.spec_reports.iter();
        for spec in tests.filter(|it| it.leaf_node_type == "It") {
            let (name, kind) = placed(spec);
            let end = ends
                .entry(name)
                .or_default()
                .entry(kind)
                .or_insert(End::Nowhere);
            match (end_of(spec, system, left_out), &mut *end) {
                (End::Ran(new), End::Ran(systems)) => systems.extend(new),
                (End::Nowhere, _) | (End::Not(_), End::Ran(_)) => {}
                (new, end) => *end = new,
            }
        }
    }
    ends
}

fn end_of(spec: &Spec, system: &str, left_out: &[(String, String)]) -> End {
    if spec.state != "skipped" {
        return End::Ran(BTreeMap::from([(
            system.to_owned(),
            spec.state == "passed",
        )]));
    }
    let message = spec.failure.as_ref().map(|it| it.message.trim());
    if let Some(message) = message.filter(|it| !it.is_empty()) {
        return End::Not(reason(message));
    }
    let containers = spec.container_hierarchy_texts.iter().flatten();
    let text: String = containers.chain([&spec.leaf_node_text]).cloned().collect();
    let mut marks = left_out.iter();
    let mark = marks.find(|(mark, _)| text.contains(mark));
    mark.map_or(End::Nowhere, |(_, why)| End::Not(why.clone()))
}

/// [`Name`] of a test without marks, and the kind of its volume.
fn placed(spec: &Spec) -> (Name, String) {
    let containers = spec.container_hierarchy_texts.iter().flatten();
    let mut containers = containers.skip(1);
    let first = containers.next().map(String::as_str).unwrap_or_default();
    let pattern = first.strip_prefix("[Testpattern: ");
    let (kind, group) = pattern
        .and_then(|it| it.split_once(']'))
        .unwrap_or(("", first));
    let name = Name {
        group: in_a_cell(group),
        test: in_a_cell(&spec.leaf_node_text),
    };
    (name, kind.trim().to_owned())
}

/// Message of the framework, without the name of the driver and without `skipping`.
fn reason(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let line = line.split(" -- skipping").next().unwrap_or_default();
    let line = line.split(" - skipping").next().unwrap_or_default();
    let mut words = line.split_whitespace().peekable();
    let is_driver = words.next_if_eq(&"Driver").is_some();
    let rest = words.collect::<Vec<_>>().join(" ");
    let name = |rest: &str| {
        rest.split(' ')
            .next()
            .is_some_and(|it| it.contains(".csi."))
    };
    let rest = match is_driver {
        true if name(&rest) => rest.split_once(' ').map_or("", |it| it.1).to_owned(),
        true => format!("Driver {rest}"),
        false => rest,
    };
    in_a_cell(&rest)
}

/// Text for a table cell: without marks in brackets, which would be links, and without `|`.
fn in_a_cell(text: &str) -> String {
    let mut kept = String::new();
    let mut depth = 0_u32;
    for c in text.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ if depth == 0 => kept.push(if c == '|' { '/' } else { c }),
            _ => {}
        }
    }
    let words: Vec<&str> = kept.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn spec(name: &str, state: &str, message: Option<&str>) -> Value {
        let (kind, rest) = name.split_once("] ").unwrap();
        let (group, test) = rest.split_once(": ").unwrap();
        let container = format!("{kind}] {group}");
        let mut spec = json!({"LeafNodeType": "It", "LeafNodeText": test, "State": state,
            "ContainerHierarchyTexts": ["External Storage [Driver: x]", container]});
        if let Some(message) = message {
            spec["Failure"] = json!({"Message": message});
        }
        spec
    }

    fn report(system: &str, day: u32, specs: Vec<Value>) -> (String, Report) {
        let mut all = specs;
        all.push(json!({"LeafNodeType": "BeforeSuite", "LeafNodeText": "", "State": "passed", "ContainerHierarchyTexts": null}));
        let value = json!({"StartTime": format!("2026-11-{day:02}T10:00:00Z"), "SpecReports": all});
        (system.to_owned(), serde_json::from_value(value).unwrap())
    }

    fn slow() -> Vec<(String, String)> {
        vec![mark("[Slow]=takes minutes").unwrap()]
    }

    const STORE: &str = "[Testpattern: Dynamic PV (default fs)] volumes: should store data";
    const BLOCK: &str = "[Testpattern: Dynamic PV (block volmode)] volumes: should store data";
    const MANY: &str =
        "[Testpattern: Dynamic PV (ext4)] multiVolume [Slow]: should go [Feature:X] on";
    const NTFS: &str = "[Testpattern: Dynamic PV (ntfs)] volumes: should store data";
    const WHY: &str = "Driver cinder.csi.openstack.org doesn't support ntfs -- skipping";

    #[test]
    fn what_a_run_has_come_to_is_a_table_by_name() {
        let ext4 = vec![
            spec(STORE, "passed", None),
            spec(BLOCK, "failed", Some("timed out")),
            spec(NTFS, "skipped", Some(WHY)),
            spec(MANY, "skipped", None),
        ];
        let xfs = vec![spec(STORE, "passed", None), spec(BLOCK, "skipped", None)];
        let reports = [report("ext4", 29, ext4), report("xfs", 30, xfs)];
        let table = table(&reports, &slow()).unwrap();
        let expected = "Of 4 tests, 2 ran: 2 times they passed, 1 times they failed (2026-11-29, 2026-11-30, UTC).\n\n\
            | group | test | passed with | not run |\n|---|---|---|---|\n\
            | multiVolume | should go on |  | takes minutes (1) |\n\
            | volumes | should store data | ext4: Dynamic PV (default fs); xfs: Dynamic PV (default fs); **failed**, ext4: Dynamic PV (block volmode) | doesn't support ntfs (1) |\n";
        assert_eq!(table, expected);
    }

    #[test]
    fn parts_of_a_run_are_one_table_and_the_last_time_counts() {
        let first = vec![
            spec(STORE, "failed", Some("late")),
            spec(BLOCK, "skipped", None),
        ];
        let second = vec![spec(STORE, "passed", None), spec(BLOCK, "skipped", None)];
        let third = vec![spec(STORE, "skipped", None), spec(BLOCK, "passed", None)];
        let mut reports = vec![report("ext4", 1, first), report("ext4", 2, second)];
        let error = table(&reports, &slow()).unwrap_err().to_string();
        assert!(
            error.starts_with("1 tests are in no run, such as `volumes should store data`"),
            "{error}"
        );
        reports.push(report("ext4", 3, third));
        let table = table(&reports, &slow()).unwrap();
        assert!(
            table.contains("2 times they passed, 0 times they failed"),
            "{table}"
        );
    }

    #[test]
    fn a_file_is_named_after_its_file_system() {
        for (file, expected) in [("a/ext4.json", "ext4"), ("xfs-3.json", "xfs")] {
            assert_eq!(file_system(Path::new(file)), expected);
        }
    }

    #[test]
    fn what_the_framework_says_is_one_sentence() {
        for (message, expected) in [
            (WHY, "doesn't support ntfs"),
            (
                "Driver \"cinder.csi.openstack.org\" does not support ROX access mode - skipping\nmore",
                "does not support ROX access mode",
            ),
            (
                "Driver supports dynamic provisioning, skipping InlineVolume pattern",
                "Driver supports dynamic provisioning, skipping InlineVolume pattern",
            ),
            (
                "Suite \"volumeLimits\" does not support [x]",
                "Suite \"volumeLimits\" does not support",
            ),
        ] {
            assert_eq!(reason(message), expected);
        }
    }
}
