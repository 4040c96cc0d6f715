//! `bench apiserver`: the embedded API server beside kube-apiserver with etcd, the same requests by the same clients.
//!
//! Each server runs in processes of its own on this machine, with fresh data, over TLS; both have each write on disk
//! before they acknowledge it.

mod client;
mod clusters;
mod fan_out;
mod load;
mod serve;
mod servers;
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

/// Clients at the same time.
const CLIENTS: [usize; 3] = [1, 16, 64];
/// A server is left alone for this long before its memory is read.
const REST: Duration = Duration::from_secs(5);
/// How often a server is started to see how long that takes: the median counts.
const STARTS: usize = 3;

/// What to do: measure, or be one of the processes that are measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// A tenth of everything, in a minute or two: to see that it works.
    #[arg(long)]
    quick: bool,
    /// Directory of kube-apiserver and etcd; by default those of tests/kubernetes/up, and without these only the
    /// embedded server is measured.
    #[arg(long, value_name = "DIR", env = "KUBEBUILDER_ASSETS")]
    assets: Option<PathBuf>,
    /// Where the servers keep their data, each in a directory of its own that is removed again; by default beside
    /// what is built, which is mostly on a disk.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Only these parts.
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Part>,
    /// Be the embedded server, with the certificates in this directory.
    #[arg(long, value_name = "DIR", hide = true)]
    serve: Option<PathBuf>,
    /// Be the process with so many servers.
    #[arg(long, value_name = "N", hide = true)]
    clusters: Option<usize>,
}

/// A part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Start, memory, a large list.
    Size,
    /// Creates, updates and gets a second.
    Rates,
    /// Watches of the same objects.
    FanOut,
    /// Many servers in one process.
    Clusters,
}

/// How much of everything.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Scale {
    /// Objects of the list, and of the first look at the memory.
    some: usize,
    /// Objects of the second.
    many: usize,
    /// How long each of the loads of requests lasts.
    load_seconds: u64,
    fan_out: Ask,
    /// Servers in one process.
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

/// Everything that was measured.
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

/// Of one server; what was not asked for is not there.
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
    /// Objects in the end: fewer than asked for when there was no time for all.
    created: usize,
    /// Of these objects, a second.
    creates: f64,
    list_milliseconds: f64,
    list_megabytes: f64,
}

/// Measures in release; a debug build builds that and runs it.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return in_release(root);
    }
    // Children have it too: a thousand watchers are a thousand connections.
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
    // From where this was called: paths among the arguments are meant from there.
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
    let disk = servers::Disk::of(&data)?;
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
        bench.say("clusters", &format!("{} in one process", scale.clusters));
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

/// In a process of its own, whose memory is nothing else.
fn many_clusters(count: usize) -> anyhow::Result<clusters::Figures> {
    let output = Command::new(std::env::current_exe()?)
        .args(["bench", "apiserver", "--clusters", &count.to_string()])
        .output()?;
    serde_json::from_slice(&output.stdout)
        .with_context(|| String::from_utf8_lossy(&output.stderr).into_owned())
}

/// What is to be measured of each server.
struct Bench {
    begun: Instant,
    scale: Scale,
    data: PathBuf,
    size: bool,
    rates: bool,
    fan_out: bool,
}

impl Bench {
    /// It takes minutes: what is known so far.
    fn say(&self, who: &str, what: &str) {
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
                self.say(
                    kind.name(),
                    &format!(
                        "{clients} clients: {creates:.0} creates, {updates:.0} updates, {gets:.0} gets a second"
                    ),
                );
                figures.rates.push(found);
            }
        }
        if self.fan_out {
            self.say(
                kind.name(),
                &format!("{} watches begin", self.scale.fan_out.watchers),
            );
            let found = fan_out::fan_out(&server, self.scale.fan_out).await?;
            self.say(
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
        let say = |what: &str| self.say(kind.name(), what);
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
        say(&format!(
            "started in {start_milliseconds:.0} ms, idle with {idle}"
        ));
        let (_, first) = load::fill(&server.access, 0, some).await?;
        let (list_milliseconds, list_megabytes) = load::list(&server.access).await?;
        say(&format!(
            "{some} objects listed in {list_milliseconds:.0} ms"
        ));
        tokio::time::sleep(REST).await;
        let with_some = server.rss()?;
        say(&format!("with {some} objects {with_some}"));
        let (created, second) = load::fill(&server.access, some, many).await?;
        tokio::time::sleep(REST).await;
        let with_many = server.rss()?;
        let creates = created as f64 / (first + second).as_secs_f64();
        say(&format!(
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
