//! Reconcile counters and durations, under the names that controller-runtime gave them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    controller: &'static str,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: &'static str,
}

/// The metrics of all controllers of one process.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    total: Family<Labels, Counter>,
    seconds: Family<Controller, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::default();
        let total = Family::<Labels, Counter>::default();
        let seconds = Family::<Controller, Histogram>::new_with_constructor(|| {
            Histogram::new(exponential_buckets(0.001, 4.0, 8))
        });
        registry.register(
            "controller_runtime_reconcile",
            "Reconciles by controller and result",
            total.clone(),
        );
        registry.register(
            "controller_runtime_reconcile_time_seconds",
            "Length of reconciles by controller",
            seconds.clone(),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            total,
            seconds,
        }
    }
}

impl Metrics {
    /// Counts one reconcile.
    pub fn observe(&self, controller: &'static str, took: Duration, succeeded: bool) {
        let result = if succeeded { "success" } else { "error" };
        self.total
            .get_or_create(&Labels { controller, result })
            .inc();
        self.seconds
            .get_or_create(&Controller { controller })
            .observe(took.as_secs_f64());
    }

    /// Lets another crate register its metrics beside ours.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// The metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry.lock());
        text
    }
}
