//! Controllers: bounded concurrency, back-off per object, contained panics, metrics.

use std::collections::BTreeMap;
use std::fmt::{Debug, Display};
use std::future::Future;
use std::hash::Hash;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::names::WATCH_FILTER_LABEL;
use futures::{FutureExt, StreamExt};
use kube::runtime::controller::{Action, Config, Controller};
use kube::runtime::reflector::ObjectRef;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;
use tracing::{debug, error, warn};

use crate::metrics::Metrics;
use crate::retry::{Failures, Retry, When};
use crate::store::polled_until_listed;
use crate::words::chain;

/// Interval between two reconciles of an unchanged object, returned by the reconcile of an object at rest.
/// [`Objects::resync`] overrides the interval.
pub const RESYNC: Duration = Duration::from_secs(600);

/// Objects of a controller, and the interval of reconciles at rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objects {
    /// Required value of the label `cluster.x-k8s.io/watch-filter`, as with `--watch-filter` of the Go managers; `None`
    /// for all objects.
    pub filter: Option<String>,
    /// Interval in place of [`RESYNC`], as `--sync-period` of the Go managers.
    pub resync: Duration,
}

impl Default for Objects {
    fn default() -> Self {
        Self {
            filter: None,
            resync: RESYNC,
        }
    }
}

impl Objects {
    /// True if an object with these labels is reconciled.
    fn include(&self, labels: &BTreeMap<String, String>) -> bool {
        let Some(value) = &self.filter else {
            return true;
        };
        labels.get(WATCH_FILTER_LABEL) == Some(value)
    }

    /// Returns `action` with [`Objects::resync`] in place of [`RESYNC`].
    fn paced(&self, action: Action) -> Action {
        match action == Action::requeue(RESYNC) {
            true => Action::requeue(self.resync),
            false => action,
        }
    }
}

/// Configuration of a controller.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name in logs and metrics, such as `openstackmachine`.
    pub name: &'static str,
    /// Maximum number of concurrent reconciles.
    pub concurrency: u16,
    /// Objects to reconcile, and the interval of reconciles at rest.
    pub objects: Objects,
    /// Metrics of reconciles.
    pub metrics: Metrics,
    /// Stops the controller after the running reconciles.
    pub shutdown: CancellationToken,
}

/// Failure of a reconcile: an error, or a caught panic.
#[derive(Debug)]
enum Failure<E> {
    Error(E),
    Panic,
}

impl<E: Display> Display for Failure<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Error(source) => source.fmt(f),
            Failure::Panic => f.write_str("the reconcile panicked"),
        }
    }
}

impl<E: std::error::Error + 'static> std::error::Error for Failure<E> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Failure::Error(source) => source.source(),
            Failure::Panic => None,
        }
    }
}

/// Runs `controller` until shutdown.
///
/// The [`Retry`] of an error decides when the object is reconciled again. Consecutive failures of an object increase
/// its back-off without delaying other objects. A panic is caught, logged and retried.
pub async fn run<K, C, E, F, Fut>(
    controller: Controller<K>,
    reconcile: F,
    ctx: Arc<C>,
    settings: Settings,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Default + Eq + Hash + Unpin + Send + Sync,
    C: Send + Sync + 'static,
    E: std::error::Error + Retry + Send + 'static,
    F: Fn(Arc<K>, Arc<C>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
{
    run_with(controller, reconcile, ctx, settings, Arc::default()).await;
}

/// [`run`] with the given `failures` of objects.
async fn run_with<K, C, E, F, Fut>(
    controller: Controller<K>,
    reconcile: F,
    ctx: Arc<C>,
    settings: Settings,
    failures: Arc<Failures<ObjectRef<K>>>,
) where
    K: Resource + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    K::DynamicType: Clone + Debug + Default + Eq + Hash + Unpin + Send + Sync,
    C: Send + Sync + 'static,
    E: std::error::Error + Retry + Send + 'static,
    F: Fn(Arc<K>, Arc<C>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Action, E>> + Send + 'static,
{
    let Settings {
        name,
        concurrency,
        objects,
        metrics,
        shutdown,
    } = settings;
    let objects = Arc::new(objects);
    let (known, of_deleted) = (Arc::clone(&failures), Arc::clone(&failures));
    let counted = metrics.clone();
    let reconcile = move |object: Arc<K>, ctx: Arc<C>| {
        let (reconcile, failures, metrics) =
            (reconcile.clone(), Arc::clone(&failures), counted.clone());
        let objects = Arc::clone(&objects);
        async move {
            if !objects.include(object.labels()) {
                return Ok(Action::await_change());
            }
            let started = Instant::now();
            let key = ObjectRef::from_obj(object.as_ref());
            let result = AssertUnwindSafe(reconcile(object, ctx))
                .catch_unwind()
                .await;
            metrics.observe(name, started.elapsed(), matches!(result, Ok(Ok(_))));
            match result {
                Ok(Ok(action)) => {
                    failures.forget(&key);
                    Ok(objects.paced(action))
                }
                Ok(Err(source)) => Err(Failure::Error(source)),
                Err(_) => Err(Failure::Panic),
            }
        }
    };
    let on_error = move |object: Arc<K>, failure: &Failure<E>, _ctx: Arc<C>| {
        let object_name = object.name_any();
        let when = match failure {
            Failure::Error(source) => source.when(),
            Failure::Panic => When::Backoff,
        };
        match when {
            // A write conflict is normal work, and no reason for a warning.
            When::Now => debug!(controller = name, object = object_name, "again: {failure}"),
            _ => warn!(
                controller = name,
                object = object_name,
                "{}",
                chain(failure)
            ),
        }
        match known.pause(ObjectRef::from_obj(object.as_ref()), when) {
            Some(pause) => Action::requeue(pause),
            None => Action::await_change(),
        }
    };
    let store = controller.store();
    let running = controller
        .with_config(Config::default().concurrency(concurrency))
        .graceful_shutdown_on(async move { shutdown.cancelled().await })
        .run(reconcile, on_error, ctx)
        .for_each(|step| {
            use kube::runtime::controller::Error;
            match step {
                // Whatever failed is retried; the retry finds that the object has been deleted.
                Err(Error::ObjectNotFound(object)) => {
                    of_deleted.forget(&object.into_kind_unchecked(K::DynamicType::default()));
                }
                Err(Error::QueueError(source)) => {
                    error!(controller = name, "watch failed: {}", chain(&source));
                }
                _ => {}
            }
            std::future::ready(())
        });
    polled_until_listed(store, running).await;
}

#[cfg(test)]
mod tests;
