//! `bench simulator`: how large a cloud the simulated one can be, and how fast it answers then.
//!
//! The binary serves the cloud in a process of its own; this program fills it over HTTP and puts load
//! on it, on the same machine and the same cores.

mod client;
mod fill;
mod load;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use self::client::{Client, Simulator};
use super::{build, machine};

/// Servers in the filled cloud, each with one port.
const SERVERS: usize = 10_000;
/// How many servers the measured list has: Nova's largest page.
const PAGE: usize = 1_000;
/// Connections that put load on the cloud at the same time.
const CONNECTIONS: usize = 4;
/// How long the load lasts.
const LOAD: Duration = Duration::from_secs(10);

/// Everything that was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    servers: usize,
    user_data_bytes: usize,
    fill_seconds: f64,
    rss_megabytes: f64,
    /// Median and worst of GET /servers/detail?limit=1000, transfer and parsing of the head included.
    list_milliseconds: f64,
    list_worst_milliseconds: f64,
    list_megabytes: f64,
    mixed: load::Mixed,
}

/// Measures the given binary, or builds the release one and measures that.
pub(crate) fn run(root: &Path, binary: Option<PathBuf>, json: bool) -> anyhow::Result<()> {
    let binary = match binary {
        Some(binary) => binary,
        None => build(root)?,
    };
    let simulator = Simulator::start(&binary)?;
    let begun = Instant::now();
    let network = fill::network(&mut simulator.client()?)?;
    fill::servers(&simulator, &network, SERVERS, CONNECTIONS)?;
    let fill_seconds = begun.elapsed().as_secs_f64();
    let rss_megabytes = simulator.rss_megabytes()?;
    let (list_milliseconds, list_worst_milliseconds, list_megabytes) =
        list(&mut simulator.client()?)?;
    let mixed = load::mixed(&simulator, &network, CONNECTIONS, LOAD)?;
    simulator.stop()?;
    let report = Report {
        machine: machine(),
        servers: SERVERS,
        user_data_bytes: fill::USER_DATA,
        fill_seconds,
        rss_megabytes,
        list_milliseconds,
        list_worst_milliseconds,
        list_megabytes,
        mixed,
    };
    let text = if json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        render(&report)
    };
    crate::print(&text)
}

/// Median and worst time in milliseconds, and size in megabytes, of a full page of servers.
fn list(client: &mut Client) -> anyhow::Result<(f64, f64, f64)> {
    let path = format!("/compute/v2.1/servers/detail?limit={PAGE}");
    let mut bytes = 0;
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..21 {
        let begun = Instant::now();
        bytes = client.get(&path)?.len();
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    let worst = times.last().copied().context("no measurement")?;
    Ok((times[times.len() / 2], worst, bytes as f64 / 1e6))
}

fn render(report: &Report) -> String {
    let mixed = &report.mixed;
    let mut text = format!(
        "simulated cloud: {} servers with a port each and {} bytes of user data\n\n",
        report.servers, report.user_data_bytes
    );
    let mut row = |name: &str, value: String, target: &str| {
        text.push_str(&format!("  {name:<44}{value:>16}   {target}\n"));
    };
    row(
        "memory (RSS)",
        format!("{:.0} MB", report.rss_megabytes),
        "target: less than 500 MB",
    );
    row(
        "1000 servers in detail, median",
        format!("{:.1} ms", report.list_milliseconds),
        "target: less than 20 ms",
    );
    row(
        "1000 servers in detail, worst of 21",
        format!("{:.1} ms", report.list_worst_milliseconds),
        "",
    );
    row("  its size", format!("{:.1} MB", report.list_megabytes), "");
    row(
        "mixed requests",
        format!("{:.0}/s", mixed.requests_per_second),
        "target: 5000/s",
    );
    row(
        "  median, 99th percentile",
        format!(
            "{:.2}, {:.2} ms",
            mixed.median_milliseconds, mixed.percentile_99_milliseconds
        ),
        "",
    );
    row("filling it", format!("{:.1} s", report.fill_seconds), "");
    text.push_str("\n  of the mixed requests\n");
    for (name, milliseconds) in &mixed.by_operation {
        text.push_str(&format!("    {name:<42}{milliseconds:>13.3} ms\n"));
    }
    text.push_str(&format!("\nmachine: {}\n", report.machine));
    text
}
