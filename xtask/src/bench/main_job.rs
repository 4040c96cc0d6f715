//! `bench main-job`: one cluster of 3 control plane and 3 worker machines, from start to ready.
//!
//! The binary runs as for a user, in a separate process with a fresh data directory: once with a simulated cloud
//! without latency, once with the latencies of a real one.

mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::bail;
use serde::Serialize;
use serde_json::Value;

use super::process::{self, Up};

/// Critical path of a real cloud for this cluster, with durations in seconds from the simulator's `real` latencies
/// (medians of a real cloud): creation of the load balancer, then three control plane servers one after the other,
/// since kubeadm joins one at a time. The workers boot meanwhile.
const CHAIN: [(&str, f64, u32); 5] = [
    ("token, network, subnet", 0.3, 1),
    ("router with gateway and interface", 1.2, 1),
    ("load balancer to ACTIVE, floating IP", 5.0, 1),
    ("port, tags, server POST", 0.45, 3),
    ("server to ACTIVE", 1.5, 3),
];

/// Lists shared by all objects of a cloud, repeated while something is pending. Every other read is a lookup for one
/// object, counted with the writes.
const SHARED: [&str; 12] = [
    "/v2.1/servers/detail",
    "/v2.0/floatingips",
    "/v2.0/networks",
    "/v2.0/ports",
    "/v2.0/routers",
    "/v2.0/security-groups",
    "/v2.0/subnets",
    "/v2.0/lbaas/healthmonitors",
    "/v2.0/lbaas/listeners",
    "/v2.0/lbaas/loadbalancers",
    "/v2.0/lbaas/pools",
    "/v2.0/lbaas/pools/{pool_id}/members",
];

const CONTROL_PLANE: u64 = 3;
const WORKERS: u64 = 3;

/// Results of all runs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub(super) machine: String,
    pub(super) runs: Vec<Run>,
    /// Additional requests of a cluster with one more worker, without shared lists.
    pub(super) requests_per_worker: u64,
    /// Requests of a cluster without its machines, without shared lists.
    pub(super) requests_per_cluster: u64,
    /// Requests in ten idle minutes.
    pub(super) idle: Vec<Idle>,
}

/// Ten minutes without changes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Idle {
    pub(super) workers: u64,
    /// All requests to the cloud, including shared lists.
    pub(super) requests: u64,
}

/// Figures of one run.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Run {
    pub(super) latency: String,
    pub(super) seconds_to_ready: f64,
    pub(super) peak_rss_megabytes: f64,
    pub(super) sqlite_bytes: u64,
    /// Logins, writes and lookups.
    pub(super) requests: u64,
    /// Shared lists.
    pub(super) shared_lists: u64,
    pub(super) by_route: Vec<Route>,
    /// Critical path of cloud operations, in seconds; 0 without latency.
    pub(super) chain_seconds: f64,
}

/// Number of calls of a route.
#[derive(Debug, Serialize)]
pub(super) struct Route {
    pub(super) service: String,
    pub(super) method: String,
    pub(super) route: String,
    pub(super) count: u64,
}

/// Idle time of a ready cluster before its requests are counted: the intervals of the lists grow while nothing changes.
const SETTLING: Duration = Duration::from_secs(300);
const IDLE: Duration = Duration::from_secs(600);
/// Numbers of workers of the idle clusters.
const IDLE_WORKERS: [u64; 2] = [3, 30];

/// Measures the given binary, or a release build. Without `idle`, the idle quarter of an hour is left out.
pub(crate) fn run(
    root: &Path,
    binary: Option<PathBuf>,
    json: bool,
    idle: bool,
) -> anyhow::Result<()> {
    let binary = match binary {
        Some(binary) => binary,
        None => super::build(root)?,
    };
    let runs = vec![
        measure(&binary, "none", WORKERS)?,
        measure(&binary, "real", WORKERS)?,
    ];
    let larger = measure(&binary, "none", WORKERS + 1)?;
    let requests_per_worker = larger.requests.saturating_sub(runs[0].requests);
    let of_machines = requests_per_worker * (CONTROL_PLANE + WORKERS);
    let report = Report {
        machine: super::machine(),
        requests_per_worker,
        requests_per_cluster: runs[0].requests.saturating_sub(of_machines),
        runs,
        idle: if idle {
            idle_minutes(&binary)?
        } else {
            Vec::new()
        },
    };
    let text = if json {
        serde_json::to_string_pretty(&report)? + "\n"
    } else {
        table::render(&report)
    };
    crate::print(&text)
}

fn start(binary: &Path, data: &Path, latency: &str, workers: u64) -> anyhow::Result<Up> {
    let workers = workers.to_string();
    let arguments = ["--latency", latency, "--worker-machine-count", &workers];
    Up::start(binary, data, &arguments)
}

fn measure(binary: &Path, latency: &str, workers: u64) -> anyhow::Result<Run> {
    let data = tempfile::tempdir()?;
    let started = Instant::now();
    let mut up = start(binary, data.path(), latency, workers)?;
    let ready = up.wait_until_ready()?;
    let seconds_to_ready = started.elapsed().as_secs_f64();
    let peak_rss_megabytes = up.peak_rss_megabytes()?;
    let simulator = ready["simulatedOpenStack"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let by_route = requests(&simulator)?;
    up.stop()?;
    let shared = |route: &&Route| route.method == "GET" && SHARED.contains(&&*route.route);
    let shared_lists = by_route
        .iter()
        .filter(shared)
        .map(|route| route.count)
        .sum();
    let all: u64 = by_route.iter().map(|route| route.count).sum();
    Ok(Run {
        latency: latency.to_owned(),
        seconds_to_ready,
        peak_rss_megabytes,
        sqlite_bytes: bytes_below(data.path()),
        requests: all - shared_lists,
        shared_lists,
        by_route,
        chain_seconds: match latency {
            "none" => 0.0,
            _ => CHAIN
                .iter()
                .map(|(_, seconds, times)| seconds * f64::from(*times))
                .sum(),
        },
    })
}

/// Counts the requests of [`Idle`] clusters, all concurrently.
fn idle_minutes(binary: &Path) -> anyhow::Result<Vec<Idle>> {
    let mut running = Vec::new();
    for workers in IDLE_WORKERS {
        let data = tempfile::tempdir()?;
        let mut up = start(binary, data.path(), "none", workers)?;
        let ready = up.wait_until_ready()?;
        let simulator = ready["simulatedOpenStack"].as_str().unwrap_or_default();
        running.push((workers, simulator.to_owned(), up, data));
    }
    std::thread::sleep(SETTLING);
    let mut before = Vec::new();
    for (_, simulator, ..) in &running {
        before.push(total(&requests(simulator)?));
    }
    std::thread::sleep(IDLE);
    let mut idle = Vec::new();
    for ((workers, simulator, up, _data), before) in running.into_iter().zip(before) {
        let requests = total(&requests(&simulator)?).saturating_sub(before);
        up.stop()?;
        idle.push(Idle { workers, requests });
    }
    Ok(idle)
}

/// Number of calls of each [`Route`] of the simulated cloud so far.
fn requests(simulator: &str) -> anyhow::Result<Vec<Route>> {
    let (status, counts) = process::get(simulator, "/_simulator/requests")?;
    if status != 200 {
        bail!("the simulator answers {status}: {counts}");
    }
    Ok(routes(&serde_json::from_str(&counts)?))
}

fn total(routes: &[Route]) -> u64 {
    routes.iter().map(|route| route.count).sum()
}

fn routes(counts: &Value) -> Vec<Route> {
    let list = counts
        .get("requests")
        .unwrap_or(counts)
        .as_array()
        .cloned()
        .unwrap_or_default();
    let text = |entry: &Value, field: &str| entry[field].as_str().unwrap_or_default().to_owned();
    list.iter()
        .map(|entry| Route {
            service: text(entry, "service"),
            method: text(entry, "method"),
            route: text(entry, "route"),
            count: entry["count"].as_u64().unwrap_or(0),
        })
        .collect()
}

/// Total size of all SQLite files below `directory`, in bytes.
fn bytes_below(directory: &Path) -> u64 {
    let mut total = 0;
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            total += bytes_below(&path);
        } else if path.to_string_lossy().contains(".db") {
            total += entry.metadata().map_or(0, |data| data.len());
        }
    }
    total
}
