//! Flags of `plan`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{ConnectArgs, OutputArg};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Plan {
    #[command(subcommand)]
    pub(crate) command: Option<PlanCommand>,
    #[command(flatten)]
    pub(crate) of_files: PlanFiles,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Show what the controllers would write to the cloud for a cluster as it is stored.
    Cluster(PlanCluster),
}

#[derive(Debug, Args)]
pub(crate) struct PlanCluster {
    /// Name of the cluster.
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PlanFiles {
    /// File with new or changed objects, such as the manifest of a cluster, or `-` for standard input; may be given
    /// more than once.
    #[arg(short, long = "file", value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
