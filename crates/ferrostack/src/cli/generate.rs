//! The flags of `generate`, and those that choose and fill a cluster template.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::GenerateCcm;
use super::values::kubernetes_version;

#[derive(Debug, Subcommand)]
pub(crate) enum Generate {
    /// Print the manifests of a cluster, from a template.
    #[command(after_help = "Example: ferrostack generate cluster demo --list-variables")]
    Cluster {
        /// Name of the cluster (CLUSTER_NAME).
        name: String,
        #[command(flatten)]
        options: ClusterOptions,
        /// Print the template's variables instead: required ones first.
        #[arg(long)]
        list_variables: bool,
    },
    /// Print what a cluster needs to run `ferrostack manager`: kinds, permissions, webhooks.
    #[command(
        after_help = "Example: ferrostack generate manager | kubectl apply --server-side -f -"
    )]
    Manager {
        /// Namespace of the manager.
        #[arg(short, long, default_value = crate::manager::manifests::NAMESPACE)]
        namespace: String,
        /// Container image of ferrostack: adds a Deployment of two managers.
        #[arg(long, value_name = "IMAGE")]
        image: Option<String>,
    },
    /// Print what a cluster needs to run `ferrostack cloud-controller-manager`: Secret, permissions, DaemonSet.
    #[command(
        after_help = "Example: ferrostack generate cloud-controller-manager --cloud mycloud | kubectl apply --server-side -f -"
    )]
    CloudControllerManager(GenerateCcm),
}

/// The options that choose and fill a cluster template.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ClusterOptions {
    /// Template that comes with ferrostack: `default` or `without-lb`.
    #[arg(short = 'F', long, value_name = "FLAVOR", conflicts_with = "from")]
    pub(crate) flavor: Option<String>,
    /// Template file (`-` is standard input).
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
