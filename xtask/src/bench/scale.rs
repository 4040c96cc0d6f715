//! `bench scale`: many clusters of several shapes in one `ferrostack up`, one more cluster, and the cost at rest.
//!
//! Each [`Shape`] is a process with an empty data directory and a simulated cloud with guests, without latency. Its
//! clusters are created together, from one template; one more is then applied as by a user.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use super::clusters::{TEMPLATE, repeated};
use super::process::{NETWORK, Up};
use crate::https::{Access, Client};

mod access;

/// Pause before a run at rest is observed.
const SETTLING: Duration = Duration::from_secs(30);
/// Interval of looks at the further cluster.
const LOOK: Duration = Duration::from_millis(100);
/// Time limit for the further cluster.
const LIMIT: Duration = Duration::from_secs(600);
/// Name of the further cluster.
const FURTHER: &str = "further";

/// Arguments of `bench scale`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Shapes, each measured in a run: number of clusters, control plane machines and workers of each.
    #[arg(
        long,
        value_name = "NxC+W,...",
        value_delimiter = ',',
        default_value = "100x1+0,50x1+1,10x3+10,3x3+50,1x3+500"
    )]
    shapes: Vec<Shape>,
    /// Duration of the observation at rest, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    idle: u64,
}

/// Number of clusters of the same size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Shape {
    clusters: u32,
    control_plane: u32,
    workers: u32,
}

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parse = || {
            let (clusters, machines) = text.split_once('x')?;
            let (control_plane, workers) = machines.split_once('+')?;
            Some(Self {
                clusters: clusters.parse::<u32>().ok().filter(|it| *it > 0)?,
                control_plane: control_plane.parse::<u32>().ok().filter(|it| it % 2 == 1)?,
                workers: workers.parse().ok()?,
            })
        };
        parse().ok_or_else(|| {
            format!(
                "`{text}` is no shape such as 100x1+0, with an odd number of control plane machines"
            )
        })
    }
}

/// Results of all shapes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    runs: Vec<Figures>,
}

/// Figures of one [`Shape`].
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    shape: Shape,
    /// Time until all clusters are available.
    seconds_to_ready: f64,
    cpu_seconds: f64,
    /// Time until one more cluster of this size is available, beside the others.
    further_seconds: f64,
    further_cpu_seconds: f64,
    /// Maximum memory until then.
    peak_rss_megabytes: f64,
    /// Percentage of one core.
    idle_cpu_percent: f64,
    idle_reconciles_per_minute: f64,
    /// Requests to the management API without watches.
    idle_requests_per_minute: f64,
}

/// Row of the table: label and value.
type Row = (&'static str, fn(&Figures) -> f64);

const ROWS: [Row; 10] = [
    ("seconds to ready", |it| it.seconds_to_ready),
    ("CPU seconds to ready", |it| it.cpu_seconds),
    ("the same for each cluster", |it| {
        it.cpu_seconds / f64::from(it.shape.clusters)
    }),
    ("one more cluster, seconds", |it| it.further_seconds),
    ("one more cluster, CPU seconds", |it| it.further_cpu_seconds),
    ("peak RSS, MB", |it| it.peak_rss_megabytes),
    ("the same for each cluster", |it| {
        it.peak_rss_megabytes / f64::from(it.shape.clusters + 1)
    }),
    ("idle, % of a core", |it| it.idle_cpu_percent),
    ("idle, reconciles per minute", |it| {
        it.idle_reconciles_per_minute
    }),
    ("idle, API requests per minute", |it| {
        it.idle_requests_per_minute
    }),
];

/// Measures the given binary, or a release build.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => binary.clone(),
        None => super::build(root)?,
    };
    let template = root.join(TEMPLATE);
    let template = std::fs::read_to_string(&template)
        .with_context(|| format!("cannot read {}", template.display()))?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut runs = Vec::new();
    for shape in &arguments.shapes {
        let idle = Duration::from_secs(arguments.idle.max(1));
        let measured = runtime.block_on(measure(&binary, &template, *shape, idle));
        runs.push(measured.with_context(|| shape.to_string())?);
    }
    let report = Report {
        machine: super::machine(),
        runs,
    };
    crate::print(&match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => table(&report),
    })
}

async fn measure(
    binary: &Path,
    template: &str,
    shape: Shape,
    idle: Duration,
) -> anyhow::Result<Figures> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("template.yaml");
    std::fs::write(&file, repeated(template, shape.clusters))?;
    let data = directory.path().join("data");
    let mut arguments = vec!["--from".to_owned(), file.display().to_string()];
    arguments.extend(shape.flags());
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let started = Instant::now();
    let mut up = Up::start(binary, &data, &arguments)?;
    up.wait_until_ready()?;
    let seconds_to_ready = started.elapsed().as_secs_f64();
    let cpu_seconds = up.cpu_seconds()?;
    let access = access::of(&data.join("kubeconfig"))?;
    let further = Instant::now();
    add(binary, &data, shape)?;
    available(&access).await?;
    let further_seconds = further.elapsed().as_secs_f64();
    let further_cpu_seconds = up.cpu_seconds()? - cpu_seconds;
    let peak_rss_megabytes = up.peak_rss_megabytes()?;
    tokio::time::sleep(SETTLING).await;
    let (before, counted) = (up.cpu_seconds()?, Counts::read(&access).await?);
    let resting = Instant::now();
    tokio::time::sleep(idle).await;
    let (after, then) = (up.cpu_seconds()?, Counts::read(&access).await?);
    let elapsed = resting.elapsed().as_secs_f64();
    up.stop()?;
    Ok(Figures {
        shape,
        seconds_to_ready,
        cpu_seconds,
        further_seconds,
        further_cpu_seconds,
        peak_rss_megabytes,
        idle_cpu_percent: (after - before) / elapsed * 100.0,
        idle_reconciles_per_minute: (then.reconciles - counted.reconciles) / elapsed * 60.0,
        // The first reading itself is one of the requests.
        idle_requests_per_minute: (then.requests - counted.requests - 1.0).max(0.0) / elapsed
            * 60.0,
    })
}

impl Shape {
    /// Flags of `up` and of `generate cluster`.
    fn flags(self) -> [String; 4] {
        [
            "--control-plane-machine-count".to_owned(),
            self.control_plane.to_string(),
            "--worker-machine-count".to_owned(),
            self.workers.to_string(),
        ]
    }
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}x{}+{}",
            self.clusters, self.control_plane, self.workers
        )
    }
}

/// Generates and applies one more cluster of the [`Shape`].
fn add(binary: &Path, data: &Path, shape: Shape) -> anyhow::Result<()> {
    let generated = Command::new(binary)
        .args(["generate", "cluster", FURTHER, "--data-dir"])
        .arg(data)
        .args(shape.flags())
        .env(NETWORK.0, NETWORK.1)
        .output()?;
    if !generated.status.success() {
        let stderr = String::from_utf8_lossy(&generated.stderr);
        bail!(
            "`generate cluster` ended with {}: {stderr}",
            generated.status
        );
    }
    let mut apply = Command::new(binary)
        .args(["apply", "-f", "-", "--data-dir"])
        .arg(data)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    let mut input = apply.stdin.take().context("the input of `apply`")?;
    input.write_all(&generated.stdout)?;
    drop(input);
    let status = apply.wait()?;
    if !status.success() {
        bail!("`apply` ended with {status}");
    }
    Ok(())
}

/// Waits until the further cluster is available.
async fn available(access: &Access) -> anyhow::Result<()> {
    let path = format!("/apis/cluster.x-k8s.io/v1beta2/namespaces/default/clusters/{FURTHER}");
    let mut client: Client = access.connect().await?;
    let started = Instant::now();
    while started.elapsed() < LIMIT {
        let cluster: Value = serde_json::from_slice(&client.get(&path).await?)?;
        let conditions = cluster["status"]["conditions"].as_array();
        let mut conditions = conditions.into_iter().flatten();
        if conditions.any(|it| it["type"] == "Available" && it["status"] == "True") {
            return Ok(());
        }
        tokio::time::sleep(LOOK).await;
    }
    bail!(
        "Cluster {FURTHER} is not available after {} s",
        LIMIT.as_secs()
    )
}

/// Counters of the process, from its metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    reconciles: f64,
    requests: f64,
}

impl Counts {
    async fn read(access: &Access) -> anyhow::Result<Self> {
        let text = access.connect().await?.get("/metrics").await?;
        Ok(Self::from_metrics(&String::from_utf8_lossy(&text)))
    }

    fn from_metrics(metrics: &str) -> Self {
        let mut counts = Self::default();
        for line in metrics.lines() {
            let Some((series, value)) = line.rsplit_once(' ') else {
                continue;
            };
            let value: f64 = value.parse().unwrap_or_default();
            if series.starts_with("controller_runtime_reconcile_total{") {
                counts.reconciles += value;
            } else if series.starts_with("apiserver_request_total{")
                && !series.contains("verb=\"WATCH\"")
            {
                counts.requests += value;
            }
        }
        counts
    }
}

fn table(report: &Report) -> String {
    let mut text =
        String::from("clusters, each of control plane machines + workers, in one `up`\n\n");
    let _ = write!(text, "  {:<32}", "");
    for run in &report.runs {
        let _ = write!(text, "{:>12}", run.shape.to_string());
    }
    text.push('\n');
    for (name, value) in ROWS {
        let _ = write!(text, "  {name:<32}");
        for run in &report.runs {
            let _ = write!(text, "{:>12.2}", value(run));
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\nmachine: {}", report.machine);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_clusters_control_plane_machines_and_workers() {
        let shape: Shape = "10x3+50".parse().unwrap();
        assert_eq!(
            (shape.clusters, shape.control_plane, shape.workers),
            (10, 3, 50)
        );
        assert_eq!(shape.to_string(), "10x3+50");
        for wrong in [
            "", "10", "3+50", "0x1+0", "1x2+0", "1x0+1", "1x1+", "1x1+-1",
        ] {
            let error = wrong.parse::<Shape>().unwrap_err();
            assert!(error.contains("100x1+0"), "{error}");
        }
    }

    #[test]
    fn reconciles_and_requests_without_watches_are_counted() {
        let metrics = "# TYPE controller_runtime_reconcile_total counter\n\
            controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 3\n\
            controller_runtime_reconcile_total{controller=\"b\",result=\"error\"} 1\n\
            controller_runtime_reconcile_time_seconds_count{controller=\"a\"} 9\n\
            apiserver_request_total{code=\"200\",verb=\"LIST\"} 5\n\
            apiserver_request_total{code=\"200\",verb=\"WATCH\"} 7\n";
        let expected = Counts {
            reconciles: 4.0,
            requests: 5.0,
        };
        assert_eq!(Counts::from_metrics(metrics), expected);
    }
}
