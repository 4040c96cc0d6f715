//! Counters and durations of reconciles, under the names of controller-runtime.

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

/// Metrics of all controllers of one process.
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
    /// Records one reconcile.
    pub fn observe(&self, controller: &'static str, took: Duration, succeeded: bool) {
        let result = if succeeded { "success" } else { "error" };
        self.total
            .get_or_create(&Labels { controller, result })
            .inc();
        self.seconds
            .get_or_create(&Controller { controller })
            .observe(took.as_secs_f64());
    }

    /// Sets the number of objects of a kind that a watch skips.
    pub fn undecodable(&self, watch: &'static str, kind: &str, count: usize) {
        let kind = kind.to_owned();
        self.undecodable
            .get_or_create(&Watch { watch, kind })
            .set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Lets another crate register its metrics in the same registry.
    pub fn register(&self, add: impl FnOnce(&mut Registry)) {
        add(&mut self.registry.lock());
    }

    /// Returns the metrics in the older Prometheus text format, for appending to other metrics in the same format:
    /// there, the type of a counter is declared under the name of the samples.
    pub fn prometheus_text(&self) -> String {
        let text = self.text();
        let counters: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
            .collect();
        let mut out = String::with_capacity(text.len());
        for line in text.lines().filter(|line| *line != "# EOF") {
            let mut words = line.splitn(4, ' ');
            match (words.next(), words.next(), words.next(), words.next()) {
                (Some("#"), Some("UNIT"), ..) => continue,
                (Some("#"), Some(what), Some(name), Some(rest)) if counters.contains(&name) => {
                    out.push_str(&format!("# {what} {name}_total {rest}"));
                }
                _ => out.push_str(line),
            }
            out.push('\n');
        }
        out
    }

    /// Returns the metrics in the OpenMetrics text format.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing into a String cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry.lock());
        text
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::Metrics;

    #[test]
    fn counters_are_declared_under_the_name_of_their_samples_in_the_older_format() {
        let metrics = Metrics::default();
        metrics.observe("a", Duration::from_millis(1), true);
        let text = metrics.prometheus_text();
        for line in [
            "# TYPE controller_runtime_reconcile_total counter",
            "controller_runtime_reconcile_total{controller=\"a\",result=\"success\"} 1",
            "# TYPE controller_runtime_reconcile_time_seconds histogram",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}:\n{text}");
        }
        assert!(!text.contains("EOF"));
    }
}
