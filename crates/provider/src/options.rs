//! The configuration of the provider.

use std::time::Duration;

use openstack::{CloudPool, PoolOptions};
use operator::controller::Objects;
use operator::metrics::Metrics;

/// The configuration of the provider; `Options::default()` has the defaults of the flags of the Go provider.
#[derive(Clone, Debug)]
pub struct Options {
    /// The only namespace to watch (`--namespace`); all when absent.
    pub namespace: Option<String>,
    /// Only objects whose label `cluster.x-k8s.io/watch-filter` has a value (`--watch-filter`), and how often those at rest
    /// are reconciled (`--sync-period`).
    pub objects: Objects,
    /// The maximum number of concurrent reconciles of OpenStackClusters.
    pub cluster_concurrency: u16,
    /// The maximum number of concurrent reconciles of OpenStackMachines.
    pub machine_concurrency: u16,
    /// How long a server may run without a Node before its console output is read for the cause.
    pub bootstrap_timeout: Duration,
    /// Certificates of authorities, in PEM (`--ca-certs`), for clouds whose Secret and entry have none; those of the system
    /// when absent.
    pub ca: Option<String>,
    /// How clouds are accessed and observed.
    pub clouds: PoolOptions,
    /// Sessions and lists that are shared with others, in place of ones with `clouds`. Its owner registers the metrics of
    /// requests.
    pub shared: Option<CloudPool>,
    /// The metrics of reconciles and of requests to clouds.
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
