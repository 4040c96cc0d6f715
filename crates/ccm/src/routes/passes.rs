//! Times of passes over all nodes: after changes, at most one in each period.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use api::k8s_openapi::api::core::v1::Node;
use futures::stream::{self, Stream, StreamExt};
use futures::{FutureExt, future};
use openstack::Kind;
use openstack::inventory::batches;
use operator::retry::{Failures, Retry, When};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_util::sync::CancellationToken;

use super::{Shared, desired, pass};

/// Name of the controller in logs and metrics.
pub(crate) const NAME: &str = "node-route";
/// Minimum period.
const SHORTEST: Duration = Duration::from_millis(1);

/// Makes passes until `shutdown`: after changes of `nodes`, of the cloud and of the settings.
pub(crate) async fn run(
    shared: &Shared,
    nodes: impl Stream<Item = kube::runtime::watcher::Result<Node>> + Send,
    shutdown: CancellationToken,
) {
    let changed = Notify::new();
    let nodes = nodes.filter_map(|node| {
        if let Err(error) = &node {
            let error = operator::words::chain(error);
            tracing::warn!(controller = NAME, "watch of Nodes: {error}");
        }
        future::ready(node.ok().map(drop))
    });
    let cloud = batches(shared.ctx.clouds.changes()).filter_map(|batch| {
        let concerns = |kind| matches!(kind, Kind::Routers | Kind::Ports | Kind::Subnets);
        let is_news = batch.is_none_or(|batch| batch.iter().any(|change| concerns(change.kind)));
        future::ready(is_news.then_some(()))
    });
    let settings = stream::unfold(shared.ctx.options.settings.clone(), |mut settings| async {
        settings.changed().await.ok()?;
        Some(((), settings))
    });
    let triggers = stream::select(nodes, stream::select(cloud, settings));
    let collect = triggers.for_each(|()| {
        changed.notify_one();
        future::ready(())
    });
    // A stream that has ended does not end the passes.
    let collect = collect.then(|()| future::pending::<()>());
    tokio::select! {
        () = collect => {}
        () = repeat(shared, &changed, shutdown) => {}
    }
}

/// Finishes the running pass at shutdown.
async fn repeat(shared: &Shared, changed: &Notify, shutdown: CancellationToken) {
    let period = shared.ctx.options.routes.period;
    let mut ticks = interval(period.max(SHORTEST));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let failures = Failures::default();
    // Without the list of Nodes, all routes would be removed.
    tokio::select! {
        listed = operator::store::listed(&shared.nodes) => if !listed {
            return;
        },
        () = shutdown.cancelled() => return,
    }
    loop {
        let next = observed(shared, &failures).await;
        let wait = async {
            let _ = timeout(next, changed.notified()).await;
            // At once, unless the last pass was less than a period ago.
            ticks.tick().await;
        };
        tokio::select! {
            () = wait => {}
            () = shutdown.cancelled() => return,
        }
    }
}

/// Pass with its metrics; a panic is caught. Returns the time until the next pass without a change.
async fn observed(shared: &Shared, failures: &Failures<()>) -> Duration {
    let started = Instant::now();
    let result = AssertUnwindSafe(pass(shared)).catch_unwind().await;
    let metrics = &shared.ctx.options.metrics;
    metrics.observe(NAME, started.elapsed(), matches!(result, Ok(Ok(_))));
    let when = match result {
        Ok(Ok(next)) => {
            failures.forget(&());
            return next;
        }
        Ok(Err(error)) => {
            tracing::warn!(controller = NAME, "{}", operator::words::chain(&error));
            error.when()
        }
        Err(_) => When::Backoff,
    };
    failures.pause((), when).unwrap_or(super::REJECTED)
}

/// Hash of the parts of a [`Node`] that decide on its routes, without heartbeats.
pub(crate) fn aspects(node: &Node) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    desired::pod_cidrs(node).hash(&mut hasher);
    desired::internal_addresses(node).hash(&mut hasher);
    node.metadata.uid.hash(&mut hasher);
    node.metadata.deletion_timestamp.is_some().hash(&mut hasher);
    hasher.finish()
}
