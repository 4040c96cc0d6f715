//! `bench simulator`: size and speed of a large simulated cloud.
//!
//! The binary serves the cloud in a separate process; this program fills it over HTTP and generates load, on the same
//! machine and cores.

mod fill;
mod load;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use serde::Serialize;

use super::{build, machine};
use crate::simulated::{Client, Simulator};

/// Number of servers in the filled cloud, each with one port.
const SERVERS: usize = 10_000;
/// Number of servers in the measured list: Nova's largest page.
const PAGE: usize = 1_000;
/// Number of connections that generate load.
const CONNECTIONS: usize = 4;
/// Number of starts.
const STARTS: usize = 11;
/// Duration of the load.
const LOAD: Duration = Duration::from_secs(10);

/// Results of the measurement.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    /// Median from exec to the first answer, a token.
    start_milliseconds: f64,
    servers: usize,
    user_data_bytes: usize,
    fill_seconds: f64,
    rss_megabytes: f64,
    list: List,
    mixed: load::Mixed,
}

/// Times of GET /servers/detail?limit=1000, including the transfer and the parsing of the head.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct List {
    /// First list: each server must be serialised.
    first_milliseconds: f64,
    /// Median of the later lists.
    median_milliseconds: f64,
    worst_milliseconds: f64,
    megabytes: f64,
}

/// Measures the given binary, or a release build.
pub(crate) fn run(root: &Path, binary: Option<PathBuf>, json: bool) -> anyhow::Result<()> {
    let binary = match binary {
        Some(binary) => binary,
        None => build(root)?,
    };
    let start_milliseconds = start(&binary)?;
    let simulator = Simulator::start(&binary)?;
    let begun = Instant::now();
    let network = fill::network(&mut simulator.client()?)?;
    fill::servers(&simulator, &network, SERVERS, CONNECTIONS)?;
    let fill_seconds = begun.elapsed().as_secs_f64();
    let rss_megabytes = simulator.rss_megabytes()?;
    let list = list(&mut simulator.client()?)?;
    let mixed = load::mixed(&simulator, &network, CONNECTIONS, LOAD)?;
    simulator.stop()?;
    let report = Report {
        machine: machine(),
        start_milliseconds,
        servers: SERVERS,
        user_data_bytes: fill::USER_DATA,
        fill_seconds,
        rss_megabytes,
        list,
        mixed,
    };
    let text = if json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        render(&report)
    };
    crate::print(&text)
}

fn start(binary: &Path) -> anyhow::Result<f64> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let begun = Instant::now();
        let simulator = Simulator::start(binary)?;
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
        simulator.stop()?;
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}

fn list(client: &mut Client) -> anyhow::Result<List> {
    let path = format!("/compute/v2.1/servers/detail?limit={PAGE}");
    let mut bytes = 0;
    let mut times: Vec<f64> = Vec::new();
    for _ in 0..22 {
        let begun = Instant::now();
        bytes = client.get(&path)?.len();
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let first_milliseconds = times.remove(0);
    times.sort_by(f64::total_cmp);
    Ok(List {
        first_milliseconds,
        median_milliseconds: times[times.len() / 2],
        worst_milliseconds: times.last().copied().context("no measurement")?,
        megabytes: bytes as f64 / 1e6,
    })
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
        "from exec to the first answer, median of 11",
        format!("{:.1} ms", report.start_milliseconds),
        "target: less than 50 ms",
    );
    row(
        "memory (RSS)",
        format!("{:.0} MB", report.rss_megabytes),
        "target: less than 500 MB",
    );
    let list = &report.list;
    row(
        "1000 servers in detail, median of 21",
        format!("{:.1} ms", list.median_milliseconds),
        "target: less than 20 ms",
    );
    row(
        "  worst of 21",
        format!("{:.1} ms", list.worst_milliseconds),
        "",
    );
    row(
        "  the first, when nothing is kept yet",
        format!("{:.1} ms", list.first_milliseconds),
        "",
    );
    row("  its size", format!("{:.1} MB", list.megabytes), "");
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
