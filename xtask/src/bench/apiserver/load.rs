//! Requests to both servers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hyper::Method;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::https::{Access, Client};

/// Maximum duration of filling: the whole measurement must end within a quarter of an hour on slow machines.
const FILLING: Duration = Duration::from_secs(240);
/// Size of the data of objects in requests, in bytes.
const SMALL: usize = 1024;
/// Size of the data of objects that fill the server, in bytes.
const LARGE: usize = 4096;
const MAPS: &str = "/api/v1/namespaces/bench/configmaps";

/// Requests per second with a number of clients.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Rates {
    pub(super) clients: usize,
    pub(super) creates: f64,
    pub(super) updates: f64,
    pub(super) gets: f64,
}

/// Text of about `bytes` bytes, similar to configuration files: words and numbers, each text unique.
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

pub(super) fn map(name: &str, data: &str) -> Value {
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

/// Creates objects `from..to` of 4 KiB over 16 connections, fewer if [`FILLING`] is over before; returns the end of the
/// created range.
pub(super) async fn fill(
    access: &Access,
    from: usize,
    to: usize,
) -> anyhow::Result<(usize, Duration)> {
    let begun = Instant::now();
    let next = Arc::new(AtomicUsize::new(from));
    let mut tasks = JoinSet::new();
    for _ in 0..16 {
        let (mut client, next) = (access.connect().await?, Arc::clone(&next));
        tasks.spawn(async move {
            let mut created = 0;
            loop {
                let n = next.fetch_add(1, Ordering::Relaxed);
                if n >= to || begun.elapsed() > FILLING {
                    return anyhow::Ok(created);
                }
                let object = map(&format!("large-{n:06}"), &text(LARGE, n as u64));
                client.post(MAPS, &object).await?;
                created += 1;
            }
        });
    }
    let mut reached = from;
    while let Some(finished) = tasks.join_next().await {
        reached += finished??;
    }
    Ok((reached, begun.elapsed()))
}

/// Median duration in milliseconds of a list of all objects, including its transfer, and its size in megabytes.
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

/// Measures creates, updates and gets over `clients` connections, each for `lasting`.
pub(super) async fn rates(
    access: &Access,
    clients: usize,
    lasting: Duration,
) -> anyhow::Result<Rates> {
    let mut connections = Vec::new();
    for number in 0..clients {
        let mut client = access.connect().await?;
        let name = format!("client-{clients}-{number}");
        let answer = client.post(MAPS, &map(&name, &text(SMALL, 1))).await?;
        connections.push((client, name, serde_json::from_slice::<Value>(&answer)?));
    }
    let created = Arc::new(AtomicU64::new(0));
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
            let created = Arc::clone(&created);
            tasks.spawn(async move {
                let mut count = 0_u64;
                while begun.elapsed() < lasting {
                    match step {
                        0 => {
                            let n = created.fetch_add(1, Ordering::Relaxed);
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
