//! Many watches of the same objects: time until each receives a change.
//!
//! Watchers share the machine with the server, so a [`Watch`] is cheap: it searches the bytes of its connection for
//! times, put between two `@` by the writers, without parsing HTTP or JSON. A watch ended by the server, as
//! kube-apiserver does with slow clients, is resumed from its last revision.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use hyper::Method;
use serde::Serialize;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::load::map;
use super::servers::Server;
use super::watch::{Seen, Watch, now};
use crate::https::{Access, Client};

const MAPS: &str = "/api/v1/namespaces/kube-public/configmaps";
/// Number of objects, changed in turn.
const OBJECTS: usize = 16;
/// Number of watches that start concurrently.
const BEGINNING: usize = 16;
/// Timeout of the last events after the last write.
const PATIENCE: Duration = Duration::from_secs(60);

/// Load of a measurement.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ask {
    pub(super) watchers: usize,
    /// Changes per second.
    pub(super) rate: u64,
    pub(super) seconds: u64,
}

/// Results of all watchers.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct FanOut {
    pub(super) delivered: usize,
    pub(super) expected: usize,
    /// Number of watches ended by the server and resumed.
    pub(super) ended: usize,
    /// Achieved changes per second: fewer than requested on a busy machine.
    pub(super) reached: f64,
    /// Time from before a write is sent until a watcher has received the event.
    pub(super) median_milliseconds: f64,
    pub(super) percentile_99_milliseconds: f64,
    /// Processor time of the server, including writes, per delivered event.
    pub(super) processor_microseconds: f64,
}

/// Measures watches of changing objects, each on its own connection, under the load [`Ask`].
pub(super) async fn fan_out(server: &Server, ask: Ask) -> anyhow::Result<FanOut> {
    let access = &server.access;
    let mut writers = Vec::new();
    for n in 0..OBJECTS {
        let mut client = access.connect().await?;
        client.post(MAPS, &map(&format!("fan-{n}"), "")).await?;
        writers.push(client);
    }
    let total = usize::try_from(ask.rate * ask.seconds)?;
    let mut following = JoinSet::new();
    let watches = begin(access, ask.watchers).await?;
    let spent = server.processor_time()?;
    let seen: Arc<Vec<Mutex<Seen>>> = Arc::new(watches.iter().map(|_| Mutex::default()).collect());
    for (n, watch) in watches.into_iter().enumerate() {
        let (access, seen) = (access.clone(), Arc::clone(&seen));
        following.spawn(async move { watch.follow(&access, total, &seen[n]).await });
    }
    let reached = write(writers, ask.rate, total).await?;
    let all = async { while following.join_next().await.is_some() {} };
    // After the timeout, a slow watcher reports the events received so far.
    let _ = tokio::time::timeout(PATIENCE, all).await;
    following.shutdown().await;
    let (mut times, mut ended) = (Vec::with_capacity(ask.watchers * total), 0);
    for seen in seen.iter() {
        let seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        times.extend_from_slice(&seen.times);
        ended += seen.ended;
    }
    let spent = server.processor_time()?.saturating_sub(spent);
    times.sort_unstable();
    let at = |part: usize| {
        let index = (times.len() * part / 100).min(times.len().saturating_sub(1));
        times
            .get(index)
            .map_or(f64::NAN, |micros| f64::from(*micros) / 1000.0)
    };
    Ok(FanOut {
        delivered: times.len(),
        expected: ask.watchers * total,
        ended,
        reached,
        median_milliseconds: at(50),
        percentile_99_milliseconds: at(99),
        processor_microseconds: spent.as_secs_f64() * 1e6 / times.len() as f64,
    })
}

/// Starts watches at the same revision, and waits for the answers to all.
async fn begin(access: &Access, watchers: usize) -> anyhow::Result<Vec<Watch>> {
    let list: Value = serde_json::from_slice(&access.connect().await?.get(MAPS).await?)?;
    let from = list["metadata"]["resourceVersion"]
        .as_str()
        .context("the revision of the list")?
        .to_owned();
    let permits = Arc::new(Semaphore::new(BEGINNING));
    let mut beginning = JoinSet::new();
    for _ in 0..watchers {
        let (access, from) = (access.clone(), from.clone());
        let permits = Arc::clone(&permits);
        beginning.spawn(async move {
            let _permit = permits.acquire_owned().await?;
            Watch::begin(&access, MAPS, &from).await
        });
    }
    let mut watches = Vec::with_capacity(watchers);
    while let Some(watch) = beginning.join_next().await {
        watches.push(watch??);
    }
    Ok(watches)
}

/// Makes `total` changes at `rate` per second, or slower; returns the achieved rate.
async fn write(writers: Vec<Client>, rate: u64, total: usize) -> anyhow::Result<f64> {
    let begun = tokio::time::Instant::now();
    let mut sending = JoinSet::new();
    for (n, mut client) in writers.into_iter().enumerate() {
        sending.spawn(async move {
            for turn in (n..total).step_by(OBJECTS) {
                let due = Duration::from_micros(1_000_000 / rate * turn as u64);
                tokio::time::sleep_until(begun + due).await;
                let name = format!("fan-{n}");
                let object = map(&name, &format!("@{}@", now())).to_string();
                let path = format!("{MAPS}/{name}");
                client.call(Method::PUT, &path, object).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = sending.join_next().await {
        done??;
    }
    Ok(total as f64 / begun.elapsed().as_secs_f64())
}
