//! Commands and flags. Names are those of clusterctl and kubectl where these have one.

mod admin;
mod ccm;
mod cluster;
mod generate;
mod manager;
mod runner;
mod session;
mod simulate;
mod up;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(crate) use self::admin::{Admin, Backup, Restore};
pub(crate) use self::ccm::{CloudConf, GenerateCloudConf};
pub(crate) use self::cluster::{Delete, Describe, Get, GetClusters, GetKubeconfig, Listing};
pub(crate) use self::generate::{ClusterOptions, Generate};
pub(crate) use self::manager::{Election, Listen, Manager};
pub(crate) use self::runner::RunnerArgs;
pub(crate) use self::session::{Apply, Completion, Down, Status, Version};
pub(crate) use self::simulate::{Simulate, SimulateCommand, SimulateGuests};
pub(crate) use self::up::Up;
pub(crate) use self::values::LatencyArg;

/// Kubernetes on OpenStack, from one binary.
#[derive(Debug, Parser)]
#[command(
    name = "ferrostack",
    version,
    max_term_width = 100,
    propagate_version = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// What to log on standard error, such as `info` or `provider=debug,warn`.
    #[arg(
        long,
        global = true,
        value_name = "FILTER",
        env = "FERROSTACK_LOG",
        default_value = "error"
    )]
    pub(crate) log: String,
    /// Log as JSON, one object a line.
    #[arg(long, global = true)]
    pub(crate) log_json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Bring clusters up: API server, controllers and, without --cloud, a simulated OpenStack.
    Up(Box<Up>),
    /// Show whether `up` runs, and what its clusters wait for.
    Status(Status),
    /// Stop an `up` that runs in the background; its clusters stay in the data directory.
    Down(Down),
    /// Apply manifests: all of them, or none when one is rejected.
    Apply(Apply),
    /// Run the controllers against any Kubernetes cluster.
    Manager(Box<Manager>),
    /// Check or generate the configuration file of the cloud controller manager.
    #[command(subcommand)]
    CloudConf(CloudConf),
    /// Print manifests from templates.
    #[command(subcommand)]
    Generate(Generate),
    /// Show a cluster and all of its objects.
    #[command(subcommand)]
    Describe(Describe),
    /// List clusters, print a cluster's kubeconfig.
    #[command(subcommand)]
    Get(Get),
    /// Delete a cluster and everything that belongs to it.
    #[command(subcommand)]
    Delete(Delete),
    /// Back up and restore the data directory of `up`.
    #[command(subcommand)]
    Admin(Admin),
    /// Run a simulated OpenStack cloud, or simulated guests on the servers of another one.
    Simulate(Simulate),
    /// Print a script that completes commands and flags in a shell.
    Completion(Completion),
    /// Print the version of this program and of the running API server.
    Version(Version),
}

/// Where the running API server is found.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ConnectArgs {
    /// Kubeconfig of the management API [default: that of --data-dir, then KUBECONFIG, then that of the default data
    /// directory].
    #[arg(long, value_name = "FILE", conflicts_with = "data_dir")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Namespace of the cluster.
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct DataDirArg {
    /// Data directory of `up` [env: FERROSTACK_DATA_DIR] [default: ~/.local/share/ferrostack].
    // The variable is not read by clap, which cannot tell it from the flag: it does not conflict with others.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct OutputArg {
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Output {
    Text,
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
