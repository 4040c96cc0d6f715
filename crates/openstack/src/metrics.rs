//! Counters and durations of requests by service, method, route and status.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

/// Labels of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EncodeLabelSet)]
pub struct RequestLabels {
    /// Official service type, for example `network`.
    pub service: &'static str,
    /// HTTP method.
    pub method: &'static str,
    /// Route with placeholders, for example `/servers/{id}`.
    pub route: &'static str,
    /// HTTP status, or `0` if there was no answer.
    pub status: u16,
    /// `true` for the inventory's shared lists, `false` for a call made for one object.
    pub poll: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TimeLabels {
    service: &'static str,
    method: &'static str,
}

/// Function called for each request after its answer or failure.
pub type Hook = Arc<dyn Fn(&RequestLabels, Duration) + Send + Sync>;

/// Request metrics of any number of sessions. Clones share the counters.
#[derive(Clone)]
pub struct Metrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<TimeLabels, Histogram>,
    counts: Arc<Mutex<BTreeMap<RequestLabels, u64>>>,
    hook: Option<Hook>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            seconds: Family::new_with_constructor(|| {
                Histogram::new(exponential_buckets(0.005, 2.5, 9))
            }),
            counts: Arc::default(),
            hook: None,
        }
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metrics")
            .field("counts", &*self.counts.lock())
            .finish_non_exhaustive()
    }
}

impl Metrics {
    /// Metrics that also call `hook` for each request.
    pub fn with_hook(hook: Hook) -> Self {
        Self {
            hook: Some(hook),
            ..Self::default()
        }
    }

    /// Adds the metrics to a registry as `ferrostack_openstack_requests_total` and
    /// `ferrostack_openstack_request_duration_seconds`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "ferrostack_openstack_requests",
            "Requests to OpenStack by service, method, route and status",
            self.requests.clone(),
        );
        registry.register(
            "ferrostack_openstack_request_duration_seconds",
            "Length of requests to OpenStack",
            self.seconds.clone(),
        );
    }

    /// Returns the current counters.
    pub fn counts(&self) -> BTreeMap<RequestLabels, u64> {
        self.counts.lock().clone()
    }

    pub(crate) fn observe(&self, labels: RequestLabels, took: Duration) {
        self.requests.get_or_create(&labels).inc();
        let time = TimeLabels {
            service: labels.service,
            method: labels.method,
        };
        self.seconds
            .get_or_create(&time)
            .observe(took.as_secs_f64());
        if let Some(hook) = &self.hook {
            hook(&labels, took);
        }
        *self.counts.lock().entry(labels).or_default() += 1;
    }
}
