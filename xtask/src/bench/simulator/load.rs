//! Mixed load: the reads and writes of controllers.

use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use serde::Serialize;
use serde_json::{Value, json};

use super::fill::Network;
use crate::simulated::{Client, Simulator};

/// Results of the load.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Mixed {
    pub(super) requests_per_second: f64,
    pub(super) median_milliseconds: f64,
    pub(super) percentile_99_milliseconds: f64,
    /// Mean duration of each operation.
    pub(super) by_operation: BTreeMap<&'static str, f64>,
}

type Times = Vec<(&'static str, Duration)>;

/// Generates load for some time.
pub(super) fn mixed(
    simulator: &Simulator,
    network: &Network,
    connections: usize,
    time: Duration,
) -> anyhow::Result<Mixed> {
    let listed = simulator
        .client()?
        .get("/compute/v2.1/servers?limit=1000")?;
    let listed: Value = serde_json::from_slice(&listed)?;
    let servers: Vec<&str> = listed["servers"]
        .as_array()
        .context("a list of servers")?
        .iter()
        .filter_map(|server| server["id"].as_str())
        .collect();
    let begun = Instant::now();
    let all: Vec<Times> = thread::scope(|scope| {
        let servers = &servers;
        let workers: Vec<_> = (0..connections)
            .map(|worker| {
                scope.spawn(move || -> anyhow::Result<Times> {
                    let mut client = simulator.client()?;
                    let mut times = Times::new();
                    let mine = servers.iter().skip(worker).step_by(connections).cycle();
                    for server in mine {
                        if begun.elapsed() >= time {
                            break;
                        }
                        round(&mut client, network, server, &mut times)?;
                    }
                    Ok(times)
                })
            })
            .collect();
        let join = |worker: thread::ScopedJoinHandle<'_, anyhow::Result<Times>>| {
            worker.join().map_err(|_| anyhow!("a thread panicked"))?
        };
        workers.into_iter().map(join).collect::<anyhow::Result<_>>()
    })?;
    let seconds = begun.elapsed().as_secs_f64();
    summary(all.into_iter().flatten().collect(), seconds)
}

/// Requests of a controller for one server: looks up the server, creates, updates and deletes a port, sets tags.
fn round(
    client: &mut Client,
    network: &Network,
    server: &str,
    times: &mut Times,
) -> anyhow::Result<()> {
    let mut timed = |name, method: &str, path: &str, body: Option<Value>| {
        let begun = Instant::now();
        let reply = client.call(method, path, body.as_ref());
        times.push((name, begun.elapsed()));
        reply
    };
    timed(
        "GET server",
        "GET",
        &format!("/compute/v2.1/servers/{server}"),
        None,
    )?;
    let found = format!("/network/v2.0/ports?device_id={server}");
    timed("GET ports of a server", "GET", &found, None)?;
    let named = format!("/compute/v2.1/servers?limit=1&marker={server}");
    timed("GET servers, a short page", "GET", &named, None)?;
    let body = json!({"port": {"network_id": network.id, "name": "load"}});
    let created = timed("POST port", "POST", "/network/v2.0/ports", Some(body))?;
    let created: Value = serde_json::from_slice(&created)?;
    let port = created["port"]["id"].as_str().context("the id of a port")?;
    let port = format!("/network/v2.0/ports/{port}");
    timed("GET port", "GET", &port, None)?;
    let body = json!({"port": {"description": "changed"}});
    timed("PUT port", "PUT", &port, Some(body))?;
    timed(
        "PUT tags",
        "PUT",
        &format!("{port}/tags"),
        Some(json!({"tags": ["a", "b"]})),
    )?;
    timed("DELETE port", "DELETE", &port, None)?;
    let metadata = format!("/compute/v2.1/servers/{server}/metadata");
    let body = json!({"metadata": {"changed": "yes"}});
    timed("POST metadata", "POST", &metadata, Some(body))?;
    timed("GET networks", "GET", "/network/v2.0/networks", None)?;
    timed("GET flavors", "GET", "/compute/v2.1/flavors/detail", None)?;
    timed(
        "GET load balancers",
        "GET",
        "/load-balancer/v2.0/lbaas/loadbalancers",
        None,
    )?;
    Ok(())
}

fn summary(times: Times, seconds: f64) -> anyhow::Result<Mixed> {
    let mut sums: BTreeMap<&'static str, (f64, f64)> = BTreeMap::new();
    let mut all = Vec::with_capacity(times.len());
    for (name, time) in times {
        let milliseconds = time.as_secs_f64() * 1000.0;
        let sum = sums.entry(name).or_default();
        *sum = (sum.0 + milliseconds, sum.1 + 1.0);
        all.push(milliseconds);
    }
    all.sort_by(f64::total_cmp);
    let at = |part: usize| all.get(all.len() * part / 100).copied();
    Ok(Mixed {
        requests_per_second: all.len() as f64 / seconds,
        median_milliseconds: at(50).context("no measurement")?,
        percentile_99_milliseconds: at(99).context("no measurement")?,
        by_operation: sums
            .into_iter()
            .map(|(name, (sum, count))| (name, sum / count))
            .collect(),
    })
}
