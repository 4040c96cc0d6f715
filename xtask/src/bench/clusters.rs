//! `bench clusters`: cost of each further cluster of one `ferrostack up`.
//!
//! Each run is a process with an empty data directory, a simulated cloud without latency, and a number of clusters of
//! one control plane machine and no workers. All clusters are created together, from one template with a copy of the
//! default template for each.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;

use super::process::Up;

/// Arguments of `bench clusters`.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Output format.
    #[arg(short, long, value_enum, default_value = "text")]
    output: Output,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Numbers of clusters, each measured in a run; the first and the last give the cost of a further cluster.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 10, 25, 50])]
    clusters: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Output {
    Text,
    Json,
}

/// Idle time of the clusters before memory, threads and disk are read.
const REST: Duration = Duration::from_secs(15);
pub(super) const TEMPLATE: &str = "config/templates/cluster-template.yaml";
const NAME: &str = "${CLUSTER_NAME}";

/// Results of all runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    runs: Vec<Figures>,
    /// Difference between the last and the first run, per cluster.
    further_cluster: Figures,
}

/// Figures of one run, or of a further cluster.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    clusters: f64,
    seconds_to_ready: f64,
    /// Processor time until all clusters are ready.
    cpu_seconds: f64,
    /// Memory without the pages of the program and of other files, with all clusters ready.
    megabytes: f64,
    /// The same after [`REST`].
    megabytes_at_rest: f64,
    threads: f64,
    disk_megabytes: f64,
}

/// Row of the table: label and value.
type Row = (&'static str, fn(&Figures) -> f64);

const ROWS: [Row; 6] = [
    ("seconds to ready", |it| it.seconds_to_ready),
    ("CPU seconds to ready", |it| it.cpu_seconds),
    ("memory, MB", |it| it.megabytes),
    ("memory after 15 s of rest, MB", |it| it.megabytes_at_rest),
    ("threads at rest", |it| it.threads),
    ("disk at rest, MB", |it| it.disk_megabytes),
];

/// Measures the given binary, or a release build.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let numbers = &arguments.clusters;
    if numbers.len() < 2 || !numbers.is_sorted_by(|a, b| a < b) || numbers.contains(&0) {
        bail!("--clusters takes at least two numbers of clusters, in ascending order");
    }
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => super::build(root)?,
    };
    let template = root.join(TEMPLATE);
    let template = std::fs::read_to_string(&template)
        .with_context(|| format!("cannot read {}", template.display()))?;
    let mut runs = Vec::new();
    for number in numbers {
        runs.push(measure(&binary, &template, *number)?);
    }
    let further_cluster = further(&runs[0], &runs[runs.len() - 1]);
    let report = Report {
        machine: super::machine(),
        runs,
        further_cluster,
    };
    crate::print(&match arguments.output {
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
        Output::Text => table(&report),
    })
}

fn measure(binary: &Path, template: &str, clusters: u32) -> anyhow::Result<Figures> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("template.yaml");
    std::fs::write(&file, repeated(template, clusters))?;
    let data = directory.path().join("data");
    let file = file.to_string_lossy();
    let arguments = [
        "--from",
        &file,
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "0",
    ];
    let started = Instant::now();
    let mut up = Up::start(binary, &data, &arguments)?;
    up.wait_until_ready()?;
    let seconds_to_ready = started.elapsed().as_secs_f64();
    let (cpu_seconds, megabytes) = (up.cpu_seconds()?, up.anonymous_megabytes()?);
    std::thread::sleep(REST);
    let figures = Figures {
        clusters: clusters.into(),
        seconds_to_ready,
        cpu_seconds,
        megabytes,
        megabytes_at_rest: up.anonymous_megabytes()?,
        threads: up.threads()?,
        disk_megabytes: megabytes_below(&data)?,
    };
    up.stop()?;
    Ok(figures)
}

/// Repeats the template for each cluster, with a number at the end of the cluster's name.
pub(super) fn repeated(template: &str, clusters: u32) -> String {
    let one = |number| template.replace(NAME, &format!("{NAME}-{number}"));
    (1..=clusters).map(one).collect::<Vec<_>>().join("\n---\n")
}

/// Difference per cluster.
fn further(first: &Figures, last: &Figures) -> Figures {
    let clusters = last.clusters - first.clusters;
    let each = |of: fn(&Figures) -> f64| (of(last) - of(first)) / clusters;
    Figures {
        clusters: 1.0,
        seconds_to_ready: each(|it| it.seconds_to_ready),
        cpu_seconds: each(|it| it.cpu_seconds),
        megabytes: each(|it| it.megabytes),
        megabytes_at_rest: each(|it| it.megabytes_at_rest),
        threads: each(|it| it.threads),
        disk_megabytes: each(|it| it.disk_megabytes),
    }
}

/// Disk space of all files below `directory`, in megabytes.
fn megabytes_below(directory: &Path) -> anyhow::Result<f64> {
    use std::os::unix::fs::MetadataExt;
    let mut total = 0.0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        total += match metadata.is_dir() {
            true => megabytes_below(&entry.path())?,
            // st_blocks counts units of 512 bytes, for any block size.
            false => metadata.blocks() as f64 * 512.0 / 1e6,
        };
    }
    Ok(total)
}

fn table(report: &Report) -> String {
    let mut text =
        String::from("clusters of 1 control plane machine and no workers, in one `up`\n\n");
    let _ = write!(text, "  {:<32}", "clusters");
    for run in &report.runs {
        let _ = write!(text, "{:>10}", run.clusters);
    }
    text.push_str("   each further\n");
    for (name, value) in ROWS {
        let _ = write!(text, "  {name:<32}");
        for run in &report.runs {
            let _ = write!(text, "{:>10.2}", value(run));
        }
        let _ = writeln!(text, "{:>15.2}", value(&report.further_cluster));
    }
    let _ = writeln!(text, "\nmachine: {}", report.machine);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cluster_of_a_repeated_template_has_a_name() {
        let text = repeated("name: ${CLUSTER_NAME}\nsecret: ${CLUSTER_NAME}-cloud", 2);
        assert_eq!(
            text,
            "name: ${CLUSTER_NAME}-1\nsecret: ${CLUSTER_NAME}-1-cloud\n---\n\
             name: ${CLUSTER_NAME}-2\nsecret: ${CLUSTER_NAME}-2-cloud"
        );
    }

    #[test]
    fn a_further_cluster_is_the_difference_for_each() {
        let run = |clusters: f64, cpu_seconds: f64| Figures {
            clusters,
            seconds_to_ready: 2.0,
            cpu_seconds,
            megabytes: 40.0 + 2.0 * clusters,
            megabytes_at_rest: 40.0 + clusters,
            threads: 5.0,
            disk_megabytes: 1.0,
        };
        let each = further(&run(1.0, 1.5), &run(11.0, 6.5));
        assert_eq!(each.cpu_seconds, 0.5);
        assert_eq!((each.megabytes, each.megabytes_at_rest), (2.0, 1.0));
        assert_eq!((each.threads, each.seconds_to_ready), (0.0, 0.0));
    }
}
