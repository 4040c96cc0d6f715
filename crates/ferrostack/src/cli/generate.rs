//! The flags of `generate`, and those that choose and fill a cluster template.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::values::kubernetes_version;
use super::{DataDirArg, GenerateCcm, OutputArg};

#[derive(Debug, Args)]
pub(crate) struct Env {
    /// Entry of clouds.yaml, found where the `openstack` client finds it.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: String,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print the manifests of a cluster, from a template.
    ///
    /// Values of variables come from flags, the environment, the configuration file of clusterctl, and the cloud, in this
    /// order. What the cloud leaves open is asked in a terminal.
    Cluster(Box<GenerateCluster>),
    /// Print what a cluster needs to run `ferrostack manager`: kinds, permissions, webhooks.
    Manager {
        /// Namespace of the manager.
        #[arg(short, long, default_value = crate::manager::manifests::NAMESPACE)]
        namespace: String,
        /// Container image of ferrostack: adds a Deployment of two managers.
        #[arg(long, value_name = "IMAGE")]
        image: Option<String>,
        /// Namespace of OpenStack clouds: adds it, and the permission to run their controller there.
        #[arg(long, value_name = "NAMESPACE")]
        openstack_namespace: Option<String>,
    },
    /// Print what a cluster needs to run `ferrostack cloud-controller-manager`: Secret, permissions, DaemonSet.
    CloudControllerManager(GenerateCcm),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateCluster {
    /// Name of the cluster (CLUSTER_NAME).
    pub(crate) name: String,
    /// Print the template's variables instead, with their values and where these come from.
    #[arg(long)]
    pub(crate) list_variables: bool,
    /// Entry of clouds.yaml: variables without a value get one from this cloud [default: the cloud of a running `up`].
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) options: ClusterOptions,
}

/// The options that choose and fill a cluster template.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClusterOptions {
    /// Template that comes with ferrostack: `default` or `without-lb`.
    #[arg(short = 'F', long, value_name = "FLAVOR", conflicts_with = "from")]
    pub(crate) flavor: Option<String>,
    /// Template file (`-` is standard input).
    ///
    /// The language is that of clusterctl, so that templates of cluster-api-provider-openstack can be used.
    #[arg(long, value_name = "FILE")]
    pub(crate) from: Option<PathBuf>,
    /// Kubernetes version of the cluster (KUBERNETES_VERSION), such as v1.34.2.
    #[arg(long, value_name = "VERSION", value_parser = kubernetes_version)]
    pub(crate) kubernetes_version: Option<String>,
    /// Number of control plane machines (CONTROL_PLANE_MACHINE_COUNT).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=15))]
    pub(crate) control_plane_machine_count: Option<u32>,
    /// Number of worker machines (WORKER_MACHINE_COUNT).
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub(crate) worker_machine_count: Option<u32>,
    /// Namespace of the objects (NAMESPACE).
    #[arg(short = 'n', long, value_name = "NAMESPACE")]
    pub(crate) target_namespace: Option<String>,
    /// clusterctl configuration file with values of variables.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
