//! Requests to OpenStack under the names of the Go driver's metrics, for its dashboards and alerts.
//!
//! The Go driver counts calls; a list may be one call of several requests. Here each request counts.

use std::sync::Arc;
use std::time::Duration;

use openstack::{Hook, RequestLabels};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Default buckets of the Prometheus clients, in seconds.
const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Labels {
    /// `RESOURCE_VERB`, such as `volume_create`.
    request: &'static str,
}

/// Metrics of the Go driver. Clones share the counters.
#[derive(Clone, Debug)]
pub struct GoMetrics {
    seconds: Family<Labels, Histogram>,
    requests: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
}

impl Default for GoMetrics {
    fn default() -> Self {
        Self {
            seconds: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            requests: Family::default(),
            errors: Family::default(),
        }
    }
}

impl GoMetrics {
    /// Adds the metrics to a [`Registry`].
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "openstack_api_request_duration_seconds",
            "Latency of an OpenStack API call",
            self.seconds.clone(),
        );
        registry.register(
            "openstack_api_requests",
            "Total number of OpenStack API calls",
            self.requests.clone(),
        );
        registry.register(
            "openstack_api_request_errors",
            "Total number of errors for an OpenStack API call",
            self.errors.clone(),
        );
    }

    /// [`Hook`] for sessions that counts each request.
    #[must_use]
    pub fn hook(&self) -> Hook {
        let metrics = self.clone();
        Arc::new(move |labels, took| metrics.observe(labels, took))
    }

    fn observe(&self, labels: &RequestLabels, took: Duration) {
        let Some(request) = name(labels) else {
            return;
        };
        let go = Labels { request };
        self.seconds.get_or_create(&go).observe(took.as_secs_f64());
        self.requests.get_or_create(&go).inc();
        if !(200..400).contains(&labels.status) {
            self.errors.get_or_create(&go).inc();
        }
    }
}

/// Name of a request in the Go driver; `None` for a request that the Go driver does not count, such as a login.
fn name(labels: &RequestLabels) -> Option<&'static str> {
    Some(match (labels.service, labels.method, labels.route) {
        ("block-storage", "POST", "/volumes") => "volume_create",
        ("block-storage", "GET", "/volumes/detail") => "volume_list",
        ("block-storage", "GET", "/volumes/{id}") => "volume_get",
        ("block-storage", "DELETE", "/volumes/{id}") => "volume_delete",
        ("block-storage", "POST", "/volumes/{id}/action") => "volume_expand",
        ("block-storage", "POST", "/snapshots") => "snapshot_create",
        ("block-storage", "GET", "/snapshots/detail") => "snapshot_list",
        ("block-storage", "GET", "/snapshots/{id}") => "snapshot_get",
        ("block-storage", "DELETE", "/snapshots/{id}") => "snapshot_delete",
        ("block-storage", "POST", "/backups") => "backup_create",
        ("block-storage", "GET", "/backups/detail") => "backup_list",
        ("block-storage", "GET", "/backups/{id}") => "backup_get",
        ("block-storage", "DELETE", "/backups/{id}") => "backup_delete",
        ("compute", "GET", "/servers/{id}") => "server_get",
        ("compute", "POST", "/servers/{id}/os-volume_attachments") => "volume_attach",
        ("compute", "DELETE", "/servers/{id}/os-volume_attachments/{volume}") => "volume_detach",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(
        service: &'static str,
        method: &'static str,
        route: &'static str,
        status: u16,
    ) -> RequestLabels {
        RequestLabels {
            service,
            method,
            route,
            status,
            poll: "false",
        }
    }

    #[test]
    fn requests_have_the_names_of_the_go_driver() {
        let (metrics, mut registry) = (GoMetrics::default(), Registry::default());
        metrics.register(&mut registry);
        let hook = metrics.hook();
        let took = Duration::from_millis(30);
        for status in [202, 413, 0] {
            hook(&labels("block-storage", "POST", "/volumes", status), took);
        }
        hook(&labels("identity", "POST", "/auth/tokens", 201), took);
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        for line in [
            "openstack_api_requests_total{request=\"volume_create\"} 3",
            "openstack_api_request_errors_total{request=\"volume_create\"} 2",
            "openstack_api_request_duration_seconds_count{request=\"volume_create\"} 3",
            "openstack_api_request_duration_seconds_bucket{le=\"0.025\",request=\"volume_create\"} 0",
            "openstack_api_request_duration_seconds_bucket{le=\"0.05\",request=\"volume_create\"} 3",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}:\n{text}");
        }
        assert!(!text.contains("auth"), "{text}");
    }
}
