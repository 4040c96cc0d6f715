//! Reconcile counters and durations, under the names that controller-runtime gave them.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
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

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Watch {
    watch: &'static str,
    kind: String,
}

/// The metrics of all controllers of one process.
#[derive(Clone, Debug)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    total: Family<Labels, Counter>,
    seconds: Family<Controller, Histogram>,
    undecodable: Family<Watch, Gauge>,
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
        let undecodable = Family::<Watch, Gauge>::default();
        registry.register(
            "ferrostack_undecodable_objects",
            "Objects that are skipped because they cannot be decoded, by watch and kind",
            undecodable.clone(),
        );
        Self {
            registry: Arc::new(Mutex::new(registry)),
            total,
            seconds,
            undecodable,
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

    /// Records how many objects of a kind a watch skips.
    pub fn undecodable(&self, watch: &'static str, kind: &str, count: usize) {
        let kind = kind.to_owned();
        self.undecodable
            .get_or_create(&Watch { watch, kind })
            .set(i64::try_from(count).unwrap_or(i64::MAX));
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
