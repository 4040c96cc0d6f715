//! How the manager runs.

use std::sync::Arc;
use std::time::Duration;

use openstack::{CloudConfig, PoolOptions};
use operator::metrics::Metrics;
use tokio::sync::watch;

use crate::cloud_conf::CloudConf;

/// What cloud.conf, and the files that it names, contain at the moment.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The file.
    pub conf: CloudConf,
    /// The cloud that it leads to, with its CA.
    pub cloud: CloudConfig,
}

/// Which controllers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// `cloud-node-controller`: initialises nodes and refreshes their addresses.
    pub node: bool,
    /// `cloud-node-lifecycle-controller`: taints and deletes nodes.
    pub node_lifecycle: bool,
    /// `service-lb-controller`: load balancers.
    pub service: bool,
}

impl Controllers {
    /// All of them.
    pub const ALL: Self = Self {
        node: true,
        node_lifecycle: true,
        service: true,
    };
}

/// How the manager runs; the names in parentheses are the Go manager's flags.
#[derive(Clone, Debug)]
pub struct Options {
    /// cloud.conf, now and whenever it changes.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// Which controllers run (`--controllers`).
    pub controllers: Controllers,
    /// The cluster's name in names and descriptions of load balancers (`--cluster-name`).
    pub cluster_name: String,
    /// Whether providerIDs name the region (`OS_CCM_REGIONAL`).
    pub regional: bool,
    /// How often nodes that are not ready are looked at (`--node-monitor-period`).
    pub node_monitor_period: Duration,
    /// How often addresses of nodes are refreshed (`--node-status-update-frequency`).
    pub node_status_update_frequency: Duration,
    /// How many nodes are worked on at a time (`--concurrent-node-syncs`).
    pub node_concurrency: u16,
    /// How many Services are worked on at a time (`--concurrent-service-syncs`).
    pub service_concurrency: u16,
    /// How the cloud is reached and observed.
    pub clouds: PoolOptions,
    /// Where reconciles are counted, and the requests to the cloud.
    pub metrics: Metrics,
}

impl Options {
    /// What the Go manager's flags default to.
    pub fn new(settings: watch::Receiver<Arc<Settings>>) -> Self {
        Self {
            settings,
            controllers: Controllers::ALL,
            cluster_name: "kubernetes".to_owned(),
            regional: false,
            node_monitor_period: Duration::from_secs(5),
            node_status_update_frequency: Duration::from_secs(300),
            node_concurrency: 10,
            service_concurrency: 10,
            clouds: PoolOptions::default(),
            metrics: Metrics::default(),
        }
    }
}
