//! Flags of `up`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Args;

use super::values::{LatencyArg, duration, latency, loopback};
use super::{ClusterOptions, DataDirArg, OlderVersions, OutputArg, RunnerArgs};
use crate::defaults::IMAGE;

#[derive(Debug, Args)]
pub(crate) struct Up {
    /// Manifests to apply: a file, a directory, a URL, or `-` for standard input; may be given more than once.
    #[arg(short, long = "filename", value_name = "FILE|DIR|URL|-", conflicts_with_all = [
        "flavor", "from", "kubernetes_version", "control_plane_machine_count", "worker_machine_count", "config",
        "cluster_name",
    ])]
    pub(crate) files: Vec<PathBuf>,
    /// Cloud to use: an entry of clouds.yaml. Without it, a simulated OpenStack is started.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    /// Allow a data directory that was used with another cloud.
    #[arg(long)]
    pub(crate) switch_cloud: bool,
    /// Install the cloud controller manager from this image in each cluster on the cloud of --cloud, with the
    /// credentials of the cluster [default image: ferrostack:latest].
    #[arg(long, value_name = "IMAGE", num_args = 0..=1, require_equals = true, default_missing_value = IMAGE)]
    pub(crate) install_ccm: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Exit with 0 once every Cluster is Available and every Machine is Running, or with 1 after --timeout.
    #[arg(long, group = "waits")]
    pub(crate) exit_when_ready: bool,
    /// Run in the background, and return once everything is ready; see also `status` and `down`.
    #[arg(long, group = "waits")]
    pub(crate) detach: bool,
    /// Timeout of --exit-when-ready and --detach, such as `90s` or `10m`.
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration, requires = "waits")]
    pub(crate) timeout: std::time::Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) older: OlderVersions,
    /// Address of the management API; port 0 selects a free port, used again at the next start.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback)]
    pub(crate) listen: Option<SocketAddr>,
    /// Address of the simulated cloud; port 0 selects a free port, used again at the next start.
    #[arg(long, value_name = "ADDRESS", value_parser = loopback, conflicts_with = "cloud")]
    pub(crate) simulated_listen: Option<SocketAddr>,
    /// Latency of the simulated cloud: `none`, `real` (as measured on a real cloud), or a file with delays.
    #[arg(long, value_name = "none|real|FILE", default_value = "none", value_parser = latency,
        conflicts_with = "cloud")]
    pub(crate) latency: LatencyArg,
    #[command(flatten)]
    pub(crate) runner: RunnerArgs,
    /// Accept tokens of the cloud's Keystone at the management API, and at those of clusters on simulated guests; a policy says
    /// what their users may do.
    #[arg(long, hide_short_help = true)]
    pub(crate) keystone_auth: bool,
    /// Policy for --keystone-auth [default: the one of `generate keystone-auth`].
    #[arg(
        long,
        value_name = "FILE",
        requires = "keystone_auth",
        hide_short_help = true
    )]
    pub(crate) keystone_policy_file: Option<PathBuf>,
    /// How long a running server may take to become a node before its console log is searched for the reason.
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = duration)]
    pub(crate) bootstrap_timeout: std::time::Duration,
    /// Name of the cluster to create if it does not exist [default: demo, if there is no cluster yet].
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster_name: Option<String>,
    #[command(flatten)]
    pub(crate) cluster: ClusterOptions,
}
