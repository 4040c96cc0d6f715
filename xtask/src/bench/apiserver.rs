//! `bench apiserver`: the embedded API server beside kube-apiserver with etcd, the same requests by the same clients.
//!
//! Each server runs in processes of its own on this machine, with fresh data, over TLS; both have each write on disk
//! before they acknowledge it.

mod client;
mod load;
mod serve;
mod servers;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::Value;

use self::load::{FanOut, Rates};
use self::servers::{Kind, Server};
use super::machine;

/// Clients at the same time.
const CLIENTS: [usize; 3] = [1, 16, 64];
/// Servers in one process.
const CLUSTERS: usize = 1000;
/// A server is left alone for this long before its memory is read.
const REST: Duration = Duration::from_secs(5);

/// What to do: measure, or be one of the processes that are measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Directory of kube-apiserver and etcd; by default those of tests/kubernetes/up, and without these only the
    /// embedded server is measured.
    #[arg(long, value_name = "DIR", env = "KUBEBUILDER_ASSETS")]
    assets: Option<PathBuf>,
    /// Be the embedded server, with the certificates in this directory.
    #[arg(long, value_name = "DIR", hide = true)]
    serve: Option<PathBuf>,
    /// Be the process with so many servers.
    #[arg(long, value_name = "N", hide = true)]
    clusters: Option<usize>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    embedded: Figures,
    real: Option<Figures>,
    clusters: usize,
    objects_per_cluster: u64,
    clusters_megabytes: f64,
}

/// Of one server.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    start_milliseconds: f64,
    idle: Vec<(&'static str, f64)>,
    with_10_000: Vec<(&'static str, f64)>,
    with_100_000: Vec<(&'static str, f64)>,
    fill_seconds: f64,
    list_milliseconds: f64,
    list_megabytes: f64,
    rates: Vec<Rates>,
    fan_out: FanOut,
}

/// Measures in release; a debug build builds that and runs it.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if cfg!(debug_assertions) {
        return in_release(root, arguments);
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
        (Some(directory), _) => runtime.block_on(serve::one(directory)),
        (None, Some(count)) => runtime.block_on(serve::many(count)),
        (None, None) => runtime.block_on(measure(root, arguments)),
    }
}

fn in_release(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let mut command = Command::new("cargo");
    command
        .args(["run", "--release", "--package", "xtask", "--quiet", "--"])
        .args(["bench", "apiserver"])
        .current_dir(root);
    if arguments.json {
        command.arg("--json");
    }
    if let Some(assets) = &arguments.assets {
        command.arg("--assets").arg(std::path::absolute(assets)?);
    }
    if !command.status().context("cargo run")?.success() {
        bail!("the release build could not measure");
    }
    Ok(())
}

async fn measure(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let tools = root.join("target/tools");
    let assets = arguments.assets.clone().unwrap_or(tools);
    let real = if assets.join("kube-apiserver").exists() && assets.join("etcd").exists() {
        Some(Kind::Real(assets))
    } else {
        crate::report("no kube-apiserver: run tests/kubernetes/up once to build it");
        None
    };
    let embedded = figures(&Kind::Embedded).await?;
    let real = match real {
        Some(kind) => Some(figures(&kind).await?),
        None => None,
    };
    let many = Command::new(std::env::current_exe()?)
        .args(["bench", "apiserver", "--clusters", &CLUSTERS.to_string()])
        .output()?;
    let many: Value = serde_json::from_slice(&many.stdout)
        .with_context(|| String::from_utf8_lossy(&many.stderr).into_owned())?;
    let report = Report {
        machine: machine(),
        embedded,
        real,
        clusters: CLUSTERS,
        objects_per_cluster: many["objects"].as_u64().unwrap_or_default(),
        clusters_megabytes: many["after"].as_f64().unwrap_or_default(),
    };
    let text = if arguments.json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        render(&report)
    };
    crate::print(&text)
}

async fn figures(kind: &Kind) -> anyhow::Result<Figures> {
    // It takes minutes: say what is known so far.
    let tell = |what: &dyn std::fmt::Debug| crate::report(&format!("{}: {what:?}", kind.name()));
    let server = Server::start(kind).await?;
    let start_milliseconds = server.start.as_secs_f64() * 1000.0;
    load::namespace(&server.access).await?;
    tokio::time::sleep(REST).await;
    let idle = server.rss()?;
    tell(&("start, ms; idle, MB", start_milliseconds, &idle));
    let filling = load::fill(&server.access, 0, 10_000).await?;
    let (list_milliseconds, list_megabytes) = load::list(&server.access).await?;
    tokio::time::sleep(REST).await;
    let with_10_000 = server.rss()?;
    tell(&(
        "list, ms; 10 000 objects, MB",
        list_milliseconds,
        &with_10_000,
    ));
    let filling = filling + load::fill(&server.access, 10_000, 100_000).await?;
    tokio::time::sleep(REST).await;
    let with_100_000 = server.rss()?;
    tell(&("100 000 objects, MB", &with_100_000, filling));
    drop(server);

    let server = Server::start(kind).await?;
    load::namespace(&server.access).await?;
    let mut rates = Vec::new();
    for clients in CLIENTS {
        let found = load::rates(&server.access, clients).await?;
        tell(&found);
        rates.push(found);
    }
    let fan_out = load::fan_out(&server.access, 1000, 100, 10).await?;
    tell(&fan_out);
    Ok(Figures {
        start_milliseconds,
        idle,
        with_10_000,
        with_100_000,
        fill_seconds: filling.as_secs_f64(),
        list_milliseconds,
        list_megabytes,
        rates,
        fan_out,
    })
}

fn render(report: &Report) -> String {
    let mut text = format!(
        "  {:<46}{:>12}{:>24}{:>9}\n",
        "", "embedded", "kube-apiserver + etcd", "ratio"
    );
    let real = report.real.as_ref();
    let mut row = |name: &str, unit: &str, digits: usize, value: &dyn Fn(&Figures) -> f64| {
        let ours = value(&report.embedded);
        text.push_str(&format!(
            "  {name:<46}{:>12}",
            format!("{ours:.digits$} {unit}")
        ));
        if let Some(theirs) = real.map(value) {
            let ratio = if unit == "/s" {
                ours / theirs
            } else {
                theirs / ours
            };
            text.push_str(&format!(
                "{:>24}{ratio:>8.1}x",
                format!("{theirs:.digits$} {unit}")
            ));
        }
        text.push('\n');
    };
    for (n, clients) in CLIENTS.into_iter().enumerate() {
        row(&format!("creates, {clients} clients"), "/s", 0, &|f| {
            f.rates[n].creates
        });
        row(&format!("updates, {clients} clients"), "/s", 0, &|f| {
            f.rates[n].updates
        });
        row(&format!("gets, {clients} clients"), "/s", 0, &|f| {
            f.rates[n].gets
        });
    }
    let sum = |all: &[(&'static str, f64)]| all.iter().map(|(_, megabytes)| megabytes).sum();
    row("list of 10 000 objects of 4 KiB", "ms", 0, &|f| {
        f.list_milliseconds
    });
    row("1000 watchers, 100 events/s: median", "ms", 1, &|f| {
        f.fan_out.median_milliseconds
    });
    row(
        "1000 watchers, 100 events/s: 99th percentile",
        "ms",
        1,
        &|f| f.fan_out.percentile_99_milliseconds,
    );
    row("start to first answer", "ms", 0, &|f| f.start_milliseconds);
    row("RSS idle", "MB", 0, &|f| sum(&f.idle));
    row("RSS with 10 000 objects of 4 KiB", "MB", 0, &|f| {
        sum(&f.with_10_000)
    });
    row("RSS with 100 000 objects of 4 KiB", "MB", 0, &|f| {
        sum(&f.with_100_000)
    });
    row("creating these 100 000, 16 clients", "s", 0, &|f| {
        f.fill_seconds
    });
    if let Some(real) = real {
        for (name, all) in [
            ("idle", &real.idle),
            ("10 000", &real.with_10_000),
            ("100 000", &real.with_100_000),
        ] {
            let each: Vec<String> = all
                .iter()
                .map(|(name, mb)| format!("{name} {mb:.0} MB"))
                .collect();
            text.push_str(&format!("\n  of the RSS, {name}: {}", each.join(", ")));
        }
        text.push('\n');
    }
    for (name, figures) in [
        ("embedded", Some(&report.embedded)),
        ("kube-apiserver", real),
    ] {
        if let Some(figures) = figures {
            text.push_str(&format!(
                "  events delivered, {name}: {} of {}; size of the list {:.1} MB\n",
                figures.fan_out.delivered, figures.fan_out.expected, figures.list_megabytes
            ));
        }
    }
    text.push_str(&format!(
        "\n  {} servers in one process, in memory, {} objects each: {:.0} MB\n\nmachine: {}\n",
        report.clusters, report.objects_per_cluster, report.clusters_megabytes, report.machine
    ));
    text
}
