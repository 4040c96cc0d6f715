//! What is asked of both servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::client::{Access, Client};

/// How long each of the loads of requests lasts.
const LOAD: Duration = Duration::from_secs(4);
/// Bytes of data of the objects that requests are about.
const SMALL: usize = 1024;
/// Bytes of data of the objects that fill the server.
const LARGE: usize = 4096;
const MAPS: &str = "/api/v1/namespaces/bench/configmaps";

/// Requests a second with so many clients.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rates {
    pub(super) clients: usize,
    pub(super) creates: f64,
    pub(super) updates: f64,
    pub(super) gets: f64,
}

/// What a thousand watchers saw.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FanOut {
    pub(super) delivered: usize,
    pub(super) expected: usize,
    /// From before the write is sent to when a watcher has its event.
    pub(super) median_milliseconds: f64,
    pub(super) percentile_99_milliseconds: f64,
}

/// Text of about `bytes` bytes as configuration files are: words and numbers, no two the same.
fn text(bytes: usize, seed: u64) -> String {
    const WORDS: [&str; 24] = [
        "server",
        "network",
        "address",
        "interval",
        "enabled",
        "true",
        "false",
        "cluster",
        "node",
        "timeout",
        "path",
        "/etc/config",
        "image",
        "registry.example.org",
        "replicas",
        "policy",
        "always",
        "storage",
        "class",
        "volume",
        "subnet",
        "router",
        "metrics",
        "label",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut out = String::with_capacity(bytes + 64);
    while out.len() < bytes {
        let word = |n: u64| WORDS[(n % 24) as usize];
        let (a, b, c) = (next(), next(), next());
        out.push_str(&format!(
            "{}-{}: {} {}\n",
            word(a),
            word(a >> 8),
            word(b),
            c % 1_000_000
        ));
    }
    out.truncate(bytes);
    out
}

fn map(name: &str, data: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"config": data}})
}

pub(super) async fn namespace(access: &Access) -> anyhow::Result<()> {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bench"}});
    access
        .connect()
        .await?
        .post("/api/v1/namespaces", &namespace)
        .await?;
    Ok(())
}

/// Creates objects `from..to` of 4 KiB over 16 connections.
pub(super) async fn fill(access: &Access, from: usize, to: usize) -> anyhow::Result<Duration> {
    let begun = Instant::now();
    let next = Arc::new(AtomicUsize::new(from));
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (mut client, next) = (access.connect().await?, Arc::clone(&next));
        tasks.spawn(async move {
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= to {
                    return anyhow::Ok(());
                }
                let object = map(&format!("large-{n:06}"), &text(LARGE, n as u64));
                client.post(MAPS, &object).await?;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    Ok(begun.elapsed())
}

/// The median time of a list of everything, in milliseconds, its transfer included, and its megabytes.
pub(super) async fn list(access: &Access) -> anyhow::Result<(f64, f64)> {
    let mut client = access.connect().await?;
    let mut times = Vec::new();
    let mut size = 0;
    for _ in 0..7 {
        let begun = Instant::now();
        size = client.get(MAPS).await?.len();
        times.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2], size as f64 / 1e6))
}

/// Creates, updates and gets over `clients` connections, each for some seconds.
pub(super) async fn rates(access: &Access, clients: usize) -> anyhow::Result<Rates> {
    let mut connections = Vec::new();
    for number in 0..clients {
        let mut client = access.connect().await?;
        let name = format!("own-{clients}-{number}");
        let made = client.post(MAPS, &map(&name, &text(SMALL, 1))).await?;
        connections.push((client, name, serde_json::from_slice::<Value>(&made)?));
    }
    let made = Arc::new(AtomicU64::new(0));
    let mut result = Rates {
        clients,
        creates: 0.0,
        updates: 0.0,
        gets: 0.0,
    };
    for step in 0..3 {
        let begun = Instant::now();
        let mut tasks = JoinSet::new();
        for (mut client, name, mut object) in std::mem::take(&mut connections) {
            let made = Arc::clone(&made);
            tasks.spawn(async move {
                let mut count = 0_u64;
                while begun.elapsed() < LOAD {
                    match step {
                        0 => {
                            let n = made.fetch_add(1, Ordering::Relaxed);
                            let new = map(&format!("new-{clients}-{n}"), &text(SMALL, n));
                            client.post(MAPS, &new).await?;
                        }
                        1 => update(&mut client, &name, &mut object, &text(SMALL, count)).await?,
                        _ => {
                            client.get(&format!("{MAPS}/{name}")).await?;
                        }
                    }
                    count += 1;
                }
                anyhow::Ok((count, (client, name, object)))
            });
        }
        let mut total = 0;
        while let Some(done) = tasks.join_next().await {
            let (count, connection) = done??;
            total += count;
            connections.push(connection);
        }
        let rate = total as f64 / begun.elapsed().as_secs_f64();
        match step {
            0 => result.creates = rate,
            1 => result.updates = rate,
            _ => result.gets = rate,
        }
    }
    Ok(result)
}

/// Replaces an object by name and revision.
async fn update(
    client: &mut Client,
    name: &str,
    object: &mut Value,
    data: &str,
) -> anyhow::Result<()> {
    let mut new = map(name, data);
    new["metadata"]["resourceVersion"] = object["metadata"]["resourceVersion"].clone();
    let path = format!("{MAPS}/{name}");
    let answer = client.call(Method::PUT, &path, new.to_string()).await?;
    *object = serde_json::from_slice(&answer)?;
    Ok(())
}

fn now() -> u128 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos())
}

/// `watchers` watches, each on a connection of its own, of objects that change `rate` times a second.
pub(super) async fn fan_out(
    access: &Access,
    watchers: usize,
    rate: u64,
    seconds: u64,
) -> anyhow::Result<FanOut> {
    const OBJECTS: usize = 16;
    let path = "/api/v1/namespaces/kube-public/configmaps";
    let mut writers = Vec::new();
    for n in 0..OBJECTS {
        let mut client = access.connect().await?;
        client.post(path, &map(&format!("fan-{n}"), "@0@")).await?;
        writers.push(client);
    }
    let list: Value = serde_json::from_slice(&access.connect().await?.get(path).await?)?;
    let from = list["metadata"]["resourceVersion"]
        .as_str()
        .context("the revision of the list")?
        .to_owned();
    let total = (rate * seconds) as usize;
    let mut tasks = JoinSet::new();
    for _ in 0..watchers {
        let mut client = access.connect().await?;
        let watch = format!("{path}?watch=1&resourceVersion={from}");
        let response = client.send(Method::GET, &watch, Bytes::new()).await?;
        tasks.spawn(async move {
            let mut times: Vec<u32> = Vec::with_capacity(total);
            let mut body = response.into_body();
            // The connection lives as long as its client.
            let _client = client;
            while times.len() < total {
                let Some(Ok(frame)) = body.frame().await else {
                    break;
                };
                if let Some(data) = frame.data_ref() {
                    stamps(data, &mut times);
                }
            }
            times
        });
    }
    let begun = tokio::time::Instant::now();
    let mut sending = JoinSet::new();
    for (n, mut client) in writers.into_iter().enumerate() {
        sending.spawn(async move {
            for turn in (n..total).step_by(OBJECTS) {
                let due = Duration::from_micros(1_000_000 / rate * turn as u64);
                tokio::time::sleep_until(begun + due).await;
                let name = format!("fan-{n}");
                let object = map(&name, &format!("@{}@", now())).to_string();
                client
                    .call(Method::PUT, &format!("{path}/{name}"), object)
                    .await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = sending.join_next().await {
        done??;
    }
    let mut times = Vec::with_capacity(watchers * total);
    let deadline = tokio::time::Instant::now() + Duration::from_secs(60);
    while let Ok(Some(done)) = tokio::time::timeout_at(deadline, tasks.join_next()).await {
        times.extend(done?);
    }
    times.sort_unstable();
    let at = |part: usize| {
        let index = (times.len() * part / 100).min(times.len().saturating_sub(1));
        times
            .get(index)
            .map_or(f64::NAN, |micros| f64::from(*micros) / 1000.0)
    };
    Ok(FanOut {
        delivered: times.len(),
        expected: watchers * total,
        median_milliseconds: at(50),
        percentile_99_milliseconds: at(99),
    })
}

/// The ages, in microseconds, of the times that stand between two `@`. A frame holds whole events: both servers flush
/// after each.
fn stamps(data: &[u8], times: &mut Vec<u32>) {
    let now = now();
    let mut parts = data.split(|byte| *byte == b'@').skip(1);
    while let (Some(stamp), Some(_)) = (parts.next(), parts.next()) {
        let stamp = std::str::from_utf8(stamp)
            .ok()
            .and_then(|text| text.parse::<u128>().ok());
        if let Some(stamp) = stamp {
            times.push(u32::try_from(now.saturating_sub(stamp) / 1000).unwrap_or(u32::MAX));
        }
    }
}
