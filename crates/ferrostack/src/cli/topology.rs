//! Flags of `topology`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConnectArgs, OutputArg};

/// Clusters that come from a ClusterClass.
#[derive(Debug, Subcommand)]
pub(crate) enum Topology {
    /// Show what new or changed classes, templates and clusters would create, change and delete, without changing
    /// anything.
    Plan(TopologyPlan),
}

#[derive(Debug, Args)]
pub(crate) struct TopologyPlan {
    /// File with new or changed objects, such as a Cluster and its class, or `-` for standard input; may be given
    /// more than once.
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Show only the objects of this cluster.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
