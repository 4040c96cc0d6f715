//! Commands of the cloud controller manager.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

mod idle;

use self::idle::GoManager;
use super::OutputArg;
use super::idle::WithoutEffect;
use super::klog::Klog;
use super::values::{Cidrs, cidrs, duration};

#[derive(Debug, Subcommand)]
pub(crate) enum CloudConf {
    /// Check a cloud.conf: print every error, and exit with 1 if there are any.
    Check {
        /// File to check, or `-` for standard input.
        file: PathBuf,
        #[command(flatten)]
        output: OutputArg,
    },
    /// Print a cloud.conf, including secrets.
    Generate(GenerateCloudConf),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateCloudConf {
    #[command(flatten)]
    pub(crate) from: CloudConfSource,
    /// File to write to [default: standard output]. Only its owner can read it.
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct CloudConfSource {
    /// Entry of clouds.yaml to take the values from.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    /// Configuration file of the in-tree provider (`--cloud-provider=openstack`) to take the values from, or `-` for standard
    /// input.
    #[arg(long, value_name = "FILE")]
    pub(crate) from_legacy: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateCcm {
    /// Entry of clouds.yaml; adds the Secret cloud-config with its credentials.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    /// Namespace of the manager.
    #[arg(short, long, default_value = crate::defaults::KUBE_SYSTEM)]
    pub(crate) namespace: String,
    /// Container image of ferrostack.
    #[arg(long, value_name = "IMAGE", default_value = crate::defaults::IMAGE)]
    pub(crate) image: String,
    /// Values file of the chart of the Go manager, openstack-cloud-controller-manager; what it sets is set.
    #[arg(long, value_name = "FILE")]
    pub(crate) values: Option<PathBuf>,
}

/// Flags of the Go manager, by their names. Flags without an effect here are accepted, and listed in a line at the
/// start.
#[derive(Debug, Args)]
#[command(args_override_self = true)]
pub(crate) struct CloudControllerManager {
    /// Configuration file (cloud.conf).
    #[arg(long, value_name = "FILE", required = true)]
    pub(crate) cloud_config: PathBuf,
    /// Cloud provider; the only one is `openstack`.
    #[arg(long, value_name = "NAME", default_value = "openstack", value_parser = ["openstack", ""])]
    pub(crate) cloud_provider: String,
    /// Kubeconfig of the cluster [default: KUBECONFIG, then the service account of the pod].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", visible_alias = "kubeconfig-context")]
    pub(crate) context: Option<String>,
    /// URL of the API server; takes precedence over the one in the kubeconfig.
    #[arg(long, value_name = "URL")]
    pub(crate) master: Option<String>,
    /// Name of the cluster, used in names and descriptions of load balancers.
    #[arg(long, value_name = "NAME", default_value = "kubernetes", value_parser = cluster_name)]
    pub(crate) cluster_name: String,
    /// Controllers to run: `*` for all, names, and `-NAME` to leave one out.
    #[arg(
        long,
        value_name = "LIST",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub(crate) controllers: Vec<String>,
    /// Interval at which unready nodes are checked.
    #[arg(long, value_name = "DURATION", default_value = "5s", value_parser = duration)]
    pub(crate) node_monitor_period: Duration,
    /// Interval at which the addresses of all nodes are refreshed.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration)]
    pub(crate) node_status_update_frequency: Duration,
    /// Number of nodes reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrent_node_syncs: u16,
    /// Number of Services reconciled in parallel.
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) concurrent_service_syncs: u16,
    /// CIDRs of the pods: one of IPv4, one of IPv6, or both; required if cloud.conf names a router.
    #[arg(long, value_name = "CIDRS", default_value = "", hide_default_value = true, value_parser = cidrs)]
    pub(crate) cluster_cidr: Cidrs,
    /// Create routes to the pods of nodes on the router that cloud.conf names.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) configure_cloud_routes: bool,
    /// Minimum interval between changes of the router.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) route_reconciliation_period: Duration,
    /// Address of /healthz and, if it is a loopback address, of /metrics.
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub(crate) bind_address: IpAddr,
    /// Port of /healthz and /metrics, over TLS; 0 for none.
    #[arg(long, value_name = "PORT", default_value_t = 10258)]
    pub(crate) secure_port: u16,
    /// Certificate of the server, with intermediate authorities [default: one made at the start].
    #[arg(long, value_name = "FILE", requires = "tls_private_key_file")]
    pub(crate) tls_cert_file: Option<PathBuf>,
    /// Key of --tls-cert-file.
    #[arg(long, value_name = "FILE", requires = "tls_cert_file")]
    pub(crate) tls_private_key_file: Option<PathBuf>,
    /// Oldest accepted version of TLS; the server has 1.2 and 1.3.
    #[arg(long, value_name = "VERSION", hide = true,
        value_parser = ["VersionTLS10", "VersionTLS11", "VersionTLS12", "VersionTLS13"])]
    pub(crate) tls_min_version: Option<String>,
    /// Offered cipher suites of TLS 1.2 [default: all suites of the server].
    #[arg(long, value_name = "LIST", hide = true, value_delimiter = ',')]
    pub(crate) tls_cipher_suites: Vec<String>,
    /// Work only while holding a Lease, so that several managers may run.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) leader_elect: bool,
    /// Time other managers wait for a leader that does not renew.
    #[arg(long, value_name = "DURATION", default_value = "15s", value_parser = duration)]
    pub(crate) leader_elect_lease_duration: Duration,
    /// Time a leader continues without a renewal.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) leader_elect_renew_deadline: Duration,
    /// Interval at which the Lease is read and renewed.
    #[arg(long, value_name = "DURATION", default_value = "2s", value_parser = duration)]
    pub(crate) leader_elect_retry_period: Duration,
    /// Name of the Lease.
    #[arg(long, value_name = "NAME", default_value = "cloud-controller-manager")]
    pub(crate) leader_elect_resource_name: String,
    /// Namespace of the Lease.
    #[arg(long, value_name = "NAMESPACE", default_value = "kube-system")]
    pub(crate) leader_elect_resource_namespace: String,
    /// Kind of the lock; there is only one.
    #[arg(long, value_name = "KIND", default_value = "leases", value_parser = ["leases"])]
    pub(crate) leader_elect_resource_lock: String,
    /// Added to the User-Agent of requests to OpenStack; may be given more than once.
    #[arg(long, value_name = "TEXT")]
    pub(crate) user_agent: Vec<String>,
    #[command(flatten)]
    pub(crate) klog: Klog,
    #[command(flatten)]
    pub(crate) idle: WithoutEffect<GoManager>,
}

/// Part of the names of load balancers, with `_` as the separator of parts.
fn cluster_name(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(char::is_whitespace) {
        true => Err("the name of a cluster is not empty and has no white space".to_owned()),
        false => Ok(text.to_owned()),
    }
}
