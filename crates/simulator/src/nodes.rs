//! Simulated nodes of a Kubernetes API server: kube-controller-manager, scheduler and kubelets for Deployments,
//! StatefulSets, DaemonSets, Jobs, Pods and claims. No program runs; a Pod becomes ready, and a task succeeds, after a
//! while, unless a fault says otherwise.
//!
//! ```text
//!   world        the objects in the API server, by kind, from watches
//!   deployment   Deployments and ReplicaSets     stateful   StatefulSets
//!   daemon       DaemonSets                      job        Jobs
//!   scheduler    Pods to nodes, claims to volumes
//!   disruption   the status of PodDisruptionBudgets
//!   kubelet      Pods on nodes
//!   faults       failures on request, of a test or of a ConfigMap
//!   programs     the ports of Pods: RabbitMQ's management API, and the APIs of OpenStack
//!   client       the writes
//! ```
//!
//! Each of the controllers is a pure function from the world to writes; only this module sends them. Kinder than a real
//! cluster: an evicted Pod counts until it is gone, no ControllerRevisions, PersistentVolumes and EndpointSlices, no probe is executed, no resources run out,
//! and back-offs are short.

mod cache;
mod client;
mod daemon;
mod deployment;
mod disruption;
pub mod faults;
mod job;
mod kubelet;
mod object;
mod programs;
mod room;
mod scheduler;
mod stateful;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::StreamExt as _;
use futures::future::BoxFuture;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use kube::runtime::{WatchStreamExt as _, watcher};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use self::cache::{Now, ObjectCache, Seen};
pub use self::faults::{Ending, Faults};
use self::object::Write;
pub use self::programs::{Answering, Gate, Programs};
use crate::json::Json;

/// User agent of all requests.
const AGENT: &str = "simulated-nodes";
/// Maximum number of passes without a pause: more would mean two controllers that undo each other's writes.
const PASSES: usize = 50;
/// Time between passes when nothing changes.
const IDLE: Duration = Duration::from_secs(3600);
/// Maximum number of waiting events of a watch.
const BURST: usize = 256;

/// How simulated nodes behave.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Labels of all nodes, besides the hostname.
    pub labels: Vec<(String, String)>,
    /// Time from the binding of a Pod until its container runs.
    pub start: Duration,
    /// Time from the start of a container until it is ready, or its task has ended.
    pub ready: Duration,
    /// First pause before a container or a task is started again, doubled with each failure of a task.
    pub back_off: Duration,
    /// Faults on request.
    pub faults: Faults,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            nodes: vec!["node-0".to_owned()],
            labels: Vec::new(),
            start: Duration::from_millis(20),
            ready: Duration::from_millis(50),
            back_off: Duration::from_millis(200),
            faults: Faults::default(),
        }
    }
}

/// Runs simulated nodes until `shutdown`.
pub fn run(
    client: Client,
    options: Options,
    shutdown: CancellationToken,
) -> BoxFuture<'static, ()> {
    nodes(client, options, shutdown).boxed()
}

async fn nodes(client: Client, options: Options, shutdown: CancellationToken) {
    let (sender, mut events) = mpsc::channel(BURST);
    let mut watches = JoinSet::new();
    for (group, kind) in cache::WATCHED {
        watches.spawn(watch(client.clone(), group, kind, sender.clone()));
    }
    let client = Json::new(client, AGENT);
    let (mut world, mut seen) = (ObjectCache::default(), HashMap::new());
    let faulty = Arc::clone(&options.faults.changed);
    let mut due = Instant::now() + IDLE;
    // The writes follow from the objects, the faults and the time: a report without news needs no pass.
    let mut is_new = true;
    loop {
        while let Ok(event) = events.try_recv() {
            is_new |= world.report(event);
        }
        let now = Instant::now();
        if world.is_complete() && (is_new || due <= now) {
            let wake = passes(&client, &options, &mut world, &mut seen).await;
            due = Instant::now() + wake.unwrap_or(IDLE);
            is_new = false;
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            Some(event) = events.recv() => is_new |= world.report(event),
            () = faulty.notified() => is_new = true,
            () = tokio::time::sleep_until(due) => {}
        }
    }
}

/// Runs passes until nothing remains to write. Returns the time until the next work by the clock alone.
async fn passes(
    client: &Json,
    options: &Options,
    world: &mut ObjectCache,
    seen: &mut HashMap<(String, &'static str), Instant>,
) -> Option<Duration> {
    let mut wake = None;
    for _ in 0..PASSES {
        seen.retain(|(uid, _), _| world.has(uid));
        let mut now = Now::new(options, seen);
        let writes = writes(world, &mut now);
        wake = now.wake();
        if writes.is_empty() {
            return wake;
        }
        let mut all = true;
        for write in writes {
            match client.write(&write).await {
                Ok(answer) => world.written(&write, answer),
                // An object changed or deleted in the meantime is handled again once a watch has reported the change.
                Err(error) => {
                    tracing::debug!("simulated nodes: {error}");
                    all = false;
                }
            }
        }
        if !all {
            return Some(options.back_off);
        }
    }
    wake.or(Some(options.back_off))
}

/// Returns the [`Write`]s of all controllers.
fn writes(world: &ObjectCache, now: &mut Now<'_>) -> Vec<Write> {
    let mut writes = scheduler::register(world, now);
    writes.extend(deployment::deployments(world));
    writes.extend(deployment::replica_sets(world));
    writes.extend(stateful::sets(world));
    writes.extend(daemon::sets(world));
    writes.extend(job::jobs(world, now));
    writes.extend(scheduler::schedule(world));
    writes.extend(kubelet::pods(world, now));
    writes.extend(disruption::budgets(world));
    writes
}

async fn watch(
    client: Client,
    group: &'static str,
    kind: &'static str,
    sender: mpsc::Sender<Seen>,
) {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1", kind));
    let api: Api<DynamicObject> = Api::all_with(client, &resource);
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            // Without a receiver the nodes have ended.
            Ok(event) => {
                if sender.send((kind, event)).await.is_err() {
                    return;
                }
            }
            Err(error) => tracing::debug!("simulated nodes: {error}"),
        }
    }
}

#[cfg(test)]
mod tests;
