//! `bench apiserver`: the embedded API server and kube-apiserver with etcd under the same requests of the same clients.
//!
//! Each server runs in separate processes on this machine, with fresh data, over TLS. Both write to disk before they
//! acknowledge a request.

mod clusters;
mod fan_out;
mod load;
mod serve;
pub(super) mod servers;
mod table;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::Serialize;

use self::fan_out::{Ask, FanOut};
use self::load::Rates;
use self::servers::{Kind, Rss, Server};
use super::machine;

/// Numbers of concurrent clients.
const CLIENTS: [usize; 3] = [1, 16, 64];
/// Idle time of a server before a measurement of its memory.
const REST: Duration = Duration::from_secs(5);
/// Number of starts, for the median.
const STARTS: usize = 3;

/// Arguments: either measure, or run as one of the measured processes.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// A tenth of all amounts, in a minute or two, to check that the measurement works.
    #[arg(long)]
    quick: bool,
    /// Directory of kube-apiserver and etcd; by default the one of tests/kubernetes/up. Without both programs, only the
    /// embedded server is measured.
    #[arg(long, value_name = "DIR", env = "KUBEBUILDER_ASSETS")]
    assets: Option<PathBuf>,
    /// Directory for the data of the servers, in subdirectories that are removed afterwards; by default the target
    /// directory, mostly on a disk.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Measure these parts only.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Run as the embedded server, with the certificates in this directory.
    #[arg(long, value_name = "DIR", hide = true)]
    serve: Option<PathBuf>,
    /// Run as the process with this number of servers.
    #[arg(long, value_name = "N", hide = true)]
    clusters: Option<usize>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Start, memory, a large list.
    Size,
    /// Creates, updates and gets per second.
    Rates,
    /// Watches of the same objects.
    FanOut,
    /// Many servers in one process.
    Clusters,
}

/// Amounts of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scale {
    /// Number of objects in the list, and at the first measurement of memory.
    some: usize,
    /// Number of objects at the second measurement.
    many: usize,
    /// Duration of each load of requests.
    load_seconds: u64,
    fan_out: Ask,
    /// Number of servers in one process.
    clusters: usize,
}

impl Scale {
    const FULL: Self = Self {
        some: 10_000,
        many: 100_000,
        load_seconds: 5,
        fan_out: Ask {
            watchers: 1000,
            rate: 100,
            seconds: 10,
        },
        clusters: 1000,
    };
    const QUICK: Self = Self {
        some: 1000,
        many: 10_000,
        load_seconds: 1,
        fan_out: Ask {
            watchers: 100,
            rate: 100,
            seconds: 5,
        },
        clusters: 100,
    };
}

/// Results of both servers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    scale: Scale,
    disk: servers::Disk,
    embedded: Figures,
    real: Option<Figures>,
    clusters: Option<clusters::Figures>,
    minutes: f64,
}

/// Results of one server; `None` for a [`Part`] that was not measured.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    size: Option<Size>,
    rates: Vec<Rates>,
    fan_out: Option<FanOut>,
}

/// Start, memory and a large list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Size {
    start_milliseconds: f64,
    idle: Rss,
    with_some: Rss,
    with_many: Rss,
    /// Number of created objects, lower than requested if the time was too short.
    created: usize,
    /// Creates per second.
    creates: f64,
    list_milliseconds: f64,
    list_megabytes: f64,
}

/// Measures in a release build; a debug build builds and runs one.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return in_release(root);
    }
    // Inherited by child processes: a thousand watchers need a thousand connections.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let raised = rustix::process::Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    rustix::process::setrlimit(rustix::process::Resource::Nofile, raised)?;
    let runtime = tokio::runtime::Runtime::new()?;
    match (&arguments.serve, arguments.clusters) {
        (Some(directory), _) => runtime.block_on(serve::serve(directory)),
        (None, Some(count)) => runtime.block_on(clusters::run(count)),
        (None, None) => runtime.block_on(measure(root, arguments)),
    }
}

fn in_release(root: &Path) -> anyhow::Result<()> {
    // Run in the caller's directory: paths in the arguments are relative to it.
    let status = Command::new("cargo")
        .args(["run", "--release", "--quiet", "--manifest-path"])
        .arg(root.join("Cargo.toml"))
        .args(["--package", "xtask", "--"])
        .args(std::env::args_os().skip(1))
        .status()
        .context("cargo run")?;
    if !status.success() {
        bail!("the release build could not measure");
    }
    Ok(())
}

async fn measure(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let begun = Instant::now();
    let scale = if arguments.quick {
        Scale::QUICK
    } else {
        Scale::FULL
    };
    let wanted = |part: Part| arguments.only.is_empty() || arguments.only.contains(&part);
    let data = arguments
        .data
        .clone()
        .unwrap_or_else(|| root.join("target/bench"));
    let disk = servers::Disk::from_data(&data)?;
    crate::report(&format!("data in {}: {disk}", data.display()));
    let tools = root.join("target/tools");
    let assets = arguments.assets.clone().unwrap_or(tools);
    let real = if assets.join("kube-apiserver").exists() && assets.join("etcd").exists() {
        Some(Kind::Real(std::path::absolute(assets)?))
    } else {
        crate::report("no kube-apiserver: run tests/kubernetes/up once to build it");
        None
    };
    let bench = Bench {
        begun,
        scale,
        data,
        size: wanted(Part::Size),
        rates: wanted(Part::Rates),
        fan_out: wanted(Part::FanOut),
    };
    let embedded = bench.figures(&Kind::Embedded).await?;
    let real = match real {
        Some(kind) => Some(bench.figures(&kind).await?),
        None => None,
    };
    let clusters = if wanted(Part::Clusters) {
        bench.progress("clusters", &format!("{} in one process", scale.clusters));
        Some(many_clusters(scale.clusters)?)
    } else {
        None
    };
    let report = Report {
        machine: machine(),
        scale,
        disk,
        embedded,
        real,
        clusters,
        minutes: begun.elapsed().as_secs_f64() / 60.0,
    };
    let text = if arguments.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        table::render(&report)
    };
    crate::print(&text)
}

/// Measures [`clusters`] in a process without other data.
fn many_clusters(count: usize) -> anyhow::Result<clusters::Figures> {
    let output = Command::new(std::env::current_exe()?)
        .args(["bench", "apiserver", "--clusters", &count.to_string()])
        .output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// Measurement of a [`Server`].
struct Bench {
    begun: Instant,
    scale: Scale,
    data: PathBuf,
    size: bool,
    rates: bool,
    fan_out: bool,
}

impl Bench {
    /// Prints progress: the measurement takes minutes.
    fn progress(&self, who: &str, what: &str) {
        let seconds = self.begun.elapsed().as_secs();
        crate::report(&format!("{seconds:>4} s  {who}: {what}"));
    }

    async fn figures(&self, kind: &Kind) -> anyhow::Result<Figures> {
        let mut figures = Figures::default();
        if self.size {
            figures.size = Some(self.size(kind).await?);
        }
        if !self.rates && !self.fan_out {
            return Ok(figures);
        }
        let server = Server::start(kind, &self.data).await?;
        load::namespace(&server.access).await?;
        if self.rates {
            let lasting = Duration::from_secs(self.scale.load_seconds);
            for clients in CLIENTS {
                let found = load::rates(&server.access, clients, lasting).await?;
                let Rates {
                    creates,
                    updates,
                    gets,
                    ..
                } = found;
                self.progress(
                    kind.name(),
                    &format!(
                        "{clients} clients: {creates:.0} creates, {updates:.0} updates, {gets:.0} gets a second"
                    ),
                );
                figures.rates.push(found);
            }
        }
        if self.fan_out {
            self.progress(
                kind.name(),
                &format!("{} watches begin", self.scale.fan_out.watchers),
            );
            let found = fan_out::fan_out(&server, self.scale.fan_out).await?;
            self.progress(
                kind.name(),
                &format!(
                    "{} of {} events arrived, {} watches were ended; median {:.1} ms, slowest hundredth {:.1} ms",
                    found.delivered,
                    found.expected,
                    found.ended,
                    found.median_milliseconds,
                    found.percentile_99_milliseconds
                ),
            );
            figures.fan_out = Some(found);
        }
        Ok(figures)
    }

    async fn size(&self, kind: &Kind) -> anyhow::Result<Size> {
        let Scale { some, many, .. } = self.scale;
        let progress = |what: &str| self.progress(kind.name(), what);
        let mut starts = Vec::new();
        for _ in 1..STARTS {
            starts.push(Server::start(kind, &self.data).await?.start);
        }
        let server = Server::start(kind, &self.data).await?;
        starts.push(server.start);
        starts.sort_unstable();
        let start_milliseconds = starts[STARTS / 2].as_secs_f64() * 1000.0;
        load::namespace(&server.access).await?;
        tokio::time::sleep(REST).await;
        let idle = server.rss()?;
        progress(&format!(
            "started in {start_milliseconds:.0} ms, idle with {idle}"
        ));
        let (_, first) = load::fill(&server.access, 0, some).await?;
        let (list_milliseconds, list_megabytes) = load::list(&server.access).await?;
        progress(&format!(
            "{some} objects listed in {list_milliseconds:.0} ms"
        ));
        tokio::time::sleep(REST).await;
        let with_some = server.rss()?;
        progress(&format!("with {some} objects {with_some}"));
        let (created, second) = load::fill(&server.access, some, many).await?;
        tokio::time::sleep(REST).await;
        let with_many = server.rss()?;
        let creates = created as f64 / (first + second).as_secs_f64();
        progress(&format!(
            "with {created} objects {with_many}, {creates:.0} creates a second"
        ));
        Ok(Size {
            start_milliseconds,
            idle,
            with_some,
            with_many,
            created,
            creates,
            list_milliseconds,
            list_megabytes,
        })
    }
}
