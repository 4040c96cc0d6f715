//! Metrics under the names of the Go manager.

use std::sync::Arc;
use std::time::Duration;

use openstack::RequestLabels;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

/// Buckets of requests: the default buckets of Prometheus clients.
const REQUEST_SECONDS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// Buckets of reconciles.
const RECONCILE_SECONDS: [f64; 16] = [
    0.01, 0.05, 0.1, 0.5, 1.0, 2.5, 5.0, 7.5, 10.0, 15.0, 20.0, 25.0, 30.0, 50.0, 100.0, 1000.0,
];

/// Operation of a reconcile of a Service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Ensure,
    /// Members follow the nodes, and nothing else changes.
    Update,
    Delete,
}

impl Operation {
    const fn name(self) -> &'static str {
        match self {
            Self::Ensure => "loadbalancer_ensure",
            Self::Update => "loadbalancer_update",
            Self::Delete => "loadbalancer_delete",
        }
    }

    /// Reason of the event for a failed operation.
    pub(crate) const fn failed(self) -> &'static str {
        match self {
            Self::Ensure => "SyncLoadBalancerFailed",
            Self::Update => "UpdateLoadBalancerFailed",
            Self::Delete => "DeleteLoadBalancerFailed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Request {
    request: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconcile {
    operation: &'static str,
}

/// Metrics. Clones share the counters.
#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    requests: Family<Request, Counter>,
    request_errors: Family<Request, Counter>,
    request_seconds: Family<Request, Histogram>,
    reconciles: Family<Reconcile, Counter>,
    reconcile_errors: Family<Reconcile, Counter>,
    reconcile_seconds: Family<Reconcile, Histogram>,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            requests: Family::default(),
            request_errors: Family::default(),
            request_seconds: Family::new_with_constructor(|| Histogram::new(REQUEST_SECONDS)),
            reconciles: Family::default(),
            reconcile_errors: Family::default(),
            reconcile_seconds: Family::new_with_constructor(|| Histogram::new(RECONCILE_SECONDS)),
        }
    }
}

impl Metrics {
    /// Adds the metrics to a [`Registry`].
    pub(crate) fn register(&self, registry: &mut Registry) {
        // Counters get the suffix `_total` in the output.
        registry.register(
            "openstack_api_requests",
            "Requests to OpenStack",
            self.requests.clone(),
        );
        registry.register(
            "openstack_api_request_errors",
            "Requests to OpenStack that failed",
            self.request_errors.clone(),
        );
        registry.register(
            "openstack_api_request_duration_seconds",
            "Length of requests to OpenStack",
            self.request_seconds.clone(),
        );
        registry.register(
            "cloudprovider_openstack_reconcile",
            "Reconciles of Services",
            self.reconciles.clone(),
        );
        registry.register(
            "cloudprovider_openstack_reconcile_errors",
            "Reconciles of Services that failed",
            self.reconcile_errors.clone(),
        );
        registry.register(
            "cloudprovider_openstack_reconcile_duration_seconds",
            "Length of reconciles of Services",
            self.reconcile_seconds.clone(),
        );
    }

    /// Hook that counts requests.
    pub(crate) fn hook(&self) -> openstack::Hook {
        let metrics = self.clone();
        Arc::new(move |labels: &RequestLabels, took: Duration| metrics.request(labels, took))
    }

    fn request(&self, labels: &RequestLabels, took: Duration) {
        let Some(request) = name(labels.method, labels.route) else {
            return;
        };
        let request = Request { request };
        self.requests.get_or_create(&request).inc();
        let seconds = took.as_secs_f64();
        self.request_seconds
            .get_or_create(&request)
            .observe(seconds);
        // As in the Go manager, an object that does not exist is an answer.
        if labels.status == 0 || labels.status >= 400 && labels.status != 404 {
            self.request_errors.get_or_create(&request).inc();
        }
    }

    /// Records a reconcile of a Service.
    pub(crate) fn reconcile(&self, operation: Operation, took: Duration, succeeded: bool) {
        let operation = Reconcile {
            operation: operation.name(),
        };
        self.reconciles.get_or_create(&operation).inc();
        let seconds = took.as_secs_f64();
        self.reconcile_seconds
            .get_or_create(&operation)
            .observe(seconds);
        if !succeeded {
            self.reconcile_errors.get_or_create(&operation).inc();
        }
    }
}

/// Label of a request, `<resource>_<verb>`; `None` for logins and lists of versions, which are not counted.
fn name(method: &str, route: &str) -> Option<String> {
    let mut segments: Vec<&str> = route.split('/').filter(|part| !part.is_empty()).collect();
    let is_one = segments.last().is_some_and(|last| last.starts_with('{'));
    segments.retain(|part| !part.starts_with('{'));
    let (of_balancer, last) = (segments.first() == Some(&"lbaas"), *segments.last()?);
    let resource = match (of_balancer, last) {
        (_, "failover") => return Some("loadbalancer_failover".to_owned()),
        (_, "loadbalancers") => "loadbalancer",
        (_, "listeners") => "loadbalancer_listener",
        (_, "pools") => "loadbalancer_pool",
        (_, "members") if method == "PUT" && !is_one => "loadbalancer_members",
        (_, "members") => "loadbalancer_member",
        (_, "healthmonitors") => "loadbalancer_healthmonitor",
        (true, _) => "loadbalancer",
        (_, "detail" | "servers") => "server",
        (_, "flavors") => "flavor",
        (_, "ports") => "port",
        (_, "networks") => "network",
        (_, "subnets") => "subnet",
        (_, "routers" | "add_extraroutes" | "remove_extraroutes") => "router",
        (_, "floatingips") => "floating_ip",
        (_, "security-groups") => "security_group",
        (_, "security-group-rules") => "security_group_rule",
        (_, "extensions") => "network_extension",
        (_, "trunks") => "trunk",
        _ => return None,
    };
    let verb = match (method, is_one) {
        ("GET", true) => "get",
        ("GET", false) => "list",
        ("POST", _) => "create",
        ("DELETE", _) => "delete",
        _ => "update",
    };
    Some(format!("{resource}_{verb}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_labels_of_the_go_manager() {
        for (method, route, label) in [
            ("GET", "/lbaas/loadbalancers", Some("loadbalancer_list")),
            ("POST", "/lbaas/loadbalancers", Some("loadbalancer_create")),
            (
                "PUT",
                "/lbaas/listeners/{id}",
                Some("loadbalancer_listener_update"),
            ),
            (
                "GET",
                "/lbaas/pools/{id}/members",
                Some("loadbalancer_member_list"),
            ),
            (
                "PUT",
                "/lbaas/pools/{id}/members",
                Some("loadbalancer_members_update"),
            ),
            (
                "DELETE",
                "/lbaas/healthmonitors/{id}",
                Some("loadbalancer_healthmonitor_delete"),
            ),
            ("GET", "/servers/detail", Some("server_list")),
            ("GET", "/servers/{id}", Some("server_get")),
            ("POST", "/floatingips", Some("floating_ip_create")),
            (
                "DELETE",
                "/security-group-rules/{id}",
                Some("security_group_rule_delete"),
            ),
            ("POST", "/auth/tokens", None),
        ] {
            assert_eq!(name(method, route).as_deref(), label, "{method} {route}");
        }
    }
}
