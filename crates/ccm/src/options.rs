//! Configuration of the manager.

use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use openstack::{CloudConfig, PoolOptions};
use operator::metrics::Metrics;
use tokio::sync::watch;

use cloud_conf::CloudConf;

/// Current content of cloud.conf and of the referenced files.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Content of cloud.conf.
    pub conf: CloudConf,
    /// Selected cloud, with the CA.
    pub cloud: CloudConfig,
}

/// The enabled controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Controllers {
    /// `cloud-node-controller`: initialises nodes and refreshes their addresses.
    pub node: bool,
    /// `cloud-node-lifecycle-controller`: taints and deletes nodes.
    pub node_lifecycle: bool,
    /// `service-lb-controller`: load balancers.
    pub service: bool,
    /// `node-route-controller`: routes to the pods of nodes, if cloud.conf names a router.
    pub route: bool,
}

impl Controllers {
    /// All controllers.
    pub const ALL: Self = Self {
        node: true,
        node_lifecycle: true,
        service: true,
        route: true,
    };
}

/// Configuration of the route controller.
#[derive(Clone, Debug)]
pub struct Routes {
    /// Ranges of the pods (`--cluster-cidr`). Only ranges of nodes inside these ranges get routes.
    pub cluster_cidrs: Vec<IpNet>,
    /// Minimum interval between changes of the router (`--route-reconciliation-period`).
    pub period: Duration,
}

/// Configuration of the manager, with the flags of the Go manager in parentheses.
#[derive(Clone, Debug)]
pub struct Options {
    /// [`Settings`], now and after each change of the files.
    pub settings: watch::Receiver<Arc<Settings>>,
    /// Enabled [`Controllers`] (`--controllers`).
    pub controllers: Controllers,
    /// The cluster's name in names and descriptions of load balancers (`--cluster-name`).
    pub cluster_name: String,
    /// True if providerIDs contain the region (`OS_CCM_REGIONAL`).
    pub regional: bool,
    /// Interval between checks of nodes that are not ready (`--node-monitor-period`).
    pub node_monitor_period: Duration,
    /// Interval between refreshes of the addresses of nodes (`--node-status-update-frequency`).
    pub node_status_update_frequency: Duration,
    /// Configuration of the route controller.
    pub routes: Routes,
    /// Maximum number of concurrent reconciles of Nodes (`--concurrent-node-syncs`).
    pub node_concurrency: u16,
    /// Maximum number of concurrent reconciles of Services (`--concurrent-service-syncs`).
    pub service_concurrency: u16,
    /// Minimum interval between changes of member weights that follow the endpoints of a Service.
    pub weight_period: Duration,
    /// Time in PENDING until a load balancer causes an event on the Service.
    pub pending_limit: Duration,
    /// Options for access to the clouds.
    pub clouds: PoolOptions,
    /// [`Metrics`] of reconciles and of requests to the cloud.
    pub metrics: Metrics,
}

impl Options {
    /// Defaults of the flags of the Go manager.
    pub fn new(settings: watch::Receiver<Arc<Settings>>) -> Self {
        Self {
            settings,
            controllers: Controllers::ALL,
            cluster_name: "kubernetes".to_owned(),
            regional: false,
            node_monitor_period: Duration::from_secs(5),
            node_status_update_frequency: Duration::from_secs(300),
            routes: Routes {
                cluster_cidrs: Vec::new(),
                period: Duration::from_secs(10),
            },
            node_concurrency: 10,
            service_concurrency: 10,
            weight_period: Duration::from_secs(10),
            pending_limit: Duration::from_secs(300),
            clouds: PoolOptions::default(),
            metrics: Metrics::default(),
        }
    }
}
