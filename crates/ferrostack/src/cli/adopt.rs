//! Flags of `adopt`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::duration;
use super::{ConnectArgs, OutputArg};

#[derive(Debug, Subcommand)]
pub(crate) enum Adopt {
    /// Take over a cluster of cluster-api-provider-openstack, which has to be stopped before.
    ///
    /// Resources with both an id of a status and a name of that provider are marked as the cluster's, by one write each.
    /// Nothing is created, deleted or restarted.
    Cluster(AdoptCluster),
}

#[derive(Debug, Args)]
pub(crate) struct AdoptCluster {
    /// Name of the cluster.
    pub(crate) name: String,
    /// Show what would be marked, and the evidence, without changing anything.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Timeout for the provider.
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration, conflicts_with = "dry_run")]
    pub(crate) timeout: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
