//! The flags of `describe`, `get` and `delete`.

use clap::Subcommand;

use super::values::duration;
use super::{ConnectArgs, OutputArg};

#[derive(Debug, Subcommand)]
pub(crate) enum Describe {
    /// Show a cluster as a tree.
    Cluster {
        /// Name of the cluster.
        name: String,
        #[command(flatten)]
        connect: ConnectArgs,
        /// Show each machine in its own line.
        #[arg(long)]
        no_grouping: bool,
        #[command(flatten)]
        output: OutputArg,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// Print the admin kubeconfig of a workload cluster.
    Kubeconfig {
        /// Name of the cluster.
        name: String,
        #[command(flatten)]
        connect: ConnectArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Delete {
    /// Delete a cluster.
    Cluster {
        /// Name of the cluster.
        name: String,
        /// Wait until everything is gone.
        #[arg(long)]
        wait: bool,
        /// Timeout of --wait.
        #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration, requires = "wait")]
        timeout: std::time::Duration,
        #[command(flatten)]
        connect: ConnectArgs,
    },
}
