//! The configuration of the provider.

use std::time::Duration;

use openstack::{CloudPool, PoolOptions};
use operator::controller::Objects;
use operator::metrics::Metrics;

/// Configuration of the provider; `Options::default()` has the defaults of the Go provider's flags.
#[derive(Clone, Debug)]
pub struct Options {
    /// The only namespace to watch (`--namespace`); all when absent.
    pub namespace: Option<String>,
    /// Filter by the value of the label `cluster.x-k8s.io/watch-filter` (`--watch-filter`), and the interval between
    /// reconciles of objects at rest (`--sync-period`).
    pub objects: Objects,
    /// The maximum number of concurrent reconciles of OpenStackClusters.
    pub cluster_concurrency: u16,
    /// The maximum number of concurrent reconciles of OpenStackMachines.
    pub machine_concurrency: u16,
    /// Time that a server may run without a Node before its console output is read for the cause.
    pub bootstrap_timeout: Duration,
    /// Certificates of authorities, in PEM (`--ca-certs`), for clouds whose Secret and entry have none; the system's
    /// when absent.
    pub ca: Option<String>,
    /// [`PoolOptions`] for access to clouds and their observation.
    pub clouds: PoolOptions,
    /// Shared [`CloudPool`] with sessions and lists, in place of one with `clouds`. Its owner registers the metrics of
    /// requests.
    pub shared: Option<CloudPool>,
    /// [`Metrics`] of reconciles and of requests to clouds.
    pub metrics: Metrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            objects: Objects::default(),
            cluster_concurrency: 10,
            machine_concurrency: 10,
            bootstrap_timeout: Duration::from_secs(120),
            ca: None,
            clouds: PoolOptions::default(),
            shared: None,
            metrics: Metrics::default(),
        }
    }
}
