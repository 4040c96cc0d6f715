//! How the provider runs.

use std::time::Duration;

use openstack::PoolOptions;
use operator::metrics::Metrics;

/// How the provider runs; `Options::default()` is what the Go provider's flags default to.
#[derive(Clone, Debug)]
pub struct Options {
    /// The only namespace to look at (`--namespace`); all when absent.
    pub namespace: Option<String>,
    /// Only objects whose label `cluster.x-k8s.io/watch-filter` has this value (`--watch-filter`).
    pub watch_filter: Option<String>,
    /// How many OpenStackClusters are worked on at a time.
    pub cluster_concurrency: u16,
    /// How many OpenStackMachines are worked on at a time.
    pub machine_concurrency: u16,
    /// How long a server may run without its Node before its console output is read for the reason.
    pub bootstrap_timeout: Duration,
    /// How clouds are reached and observed.
    pub clouds: PoolOptions,
    /// Where reconciles are counted, and the requests to clouds.
    pub metrics: Metrics,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: None,
            watch_filter: None,
            cluster_concurrency: 10,
            machine_concurrency: 10,
            bootstrap_timeout: Duration::from_secs(120),
            clouds: PoolOptions::default(),
            metrics: Metrics::default(),
        }
    }
}
