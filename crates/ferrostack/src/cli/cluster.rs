//! The flags of `describe`, `get` and `delete`.

use clap::{Args, Subcommand, ValueEnum};

use super::values::duration;
use super::{ConnectArgs, DeleteProviders, OutputArg};
use crate::tree::conditions::Selector;

#[derive(Debug, Subcommand)]
pub(crate) enum Describe {
    /// Show a cluster, or all of them, as a tree.
    ///
    /// Each line has the state of an object and what it waits for. Machines in the same state share a line.
    Cluster(Box<DescribeCluster>),
}

#[derive(Debug, Args)]
pub(crate) struct DescribeCluster {
    /// Name of the cluster [default: the only one of the namespace].
    pub(crate) name: Option<String>,
    /// The clusters of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    pub(crate) all_namespaces: bool,
    /// Whether machines in the same state share a line.
    #[arg(long, value_name = "true|false", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, hide_possible_values = true)]
    pub(crate) grouping: bool,
    /// Show each machine in its own line, as --grouping=false.
    #[arg(long, hide = true)]
    pub(crate) no_grouping: bool,
    /// Show the MachineSets of MachineDeployments.
    #[arg(long)]
    pub(crate) show_machinesets: bool,
    /// Show the ClusterResourceSets that apply to the cluster.
    #[arg(long)]
    pub(crate) show_resourcesets: bool,
    /// Show the templates that machines are made from.
    #[arg(long)]
    pub(crate) show_templates: bool,
    /// Show the infrastructure and bootstrap objects of every machine; otherwise only those that fail for a reason that
    /// their machine does not give.
    #[arg(long)]
    pub(crate) echo: bool,
    /// Whether states have colors; on a terminal they have, unless the variable NO_COLOR is set.
    #[arg(short, long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, num_args = 0..=1,
        default_missing_value = "always")]
    pub(crate) color: Color,
    /// Conditions to show: `all`, kinds such as Machine, or KIND/NAME, of whatever is shown; with a `!` at the end only those that are not as they
    /// should be.
    #[arg(long, value_name = "all|KIND|KIND/NAME", value_delimiter = ',')]
    pub(crate) show_conditions: Vec<Selector>,
    /// Show every change until interrupted.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Listing::Text)]
    pub(crate) output: Listing,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Why {
    /// KIND/NAME or KIND NAME, as kubectl knows them, such as machine/demo-md-0-x or node/NAME, or the name of a cluster
    /// [default: the only cluster of the namespace].
    #[arg(num_args = 0..=2)]
    pub(crate) object: Vec<String>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// List clusters.
    #[command(visible_alias = "cluster")]
    Clusters(GetClusters),
    /// Print a cluster's kubeconfig, or merge it into yours.
    Kubeconfig(GetKubeconfig),
}

#[derive(Debug, Args)]
pub(crate) struct GetClusters {
    /// Names of clusters [default: all of the namespace].
    pub(crate) names: Vec<String>,
    /// The clusters of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Print every change until interrupted.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Listing::Text)]
    pub(crate) output: Listing,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// When states have colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    /// As clusterctl's `true`.
    #[value(alias = "true")]
    Always,
    #[value(alias = "false")]
    Never,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Listing {
    Text,
    Wide,
    Json,
    Yaml,
}

#[derive(Debug, Args)]
pub(crate) struct GetKubeconfig {
    /// Name of the cluster [default: the only one of the namespace].
    pub(crate) name: Option<String>,
    /// Add it to the first file of KUBECONFIG, or to ~/.kube/config, as a context with the name of the cluster.
    #[arg(long)]
    pub(crate) merge: bool,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Delete {
    #[command(subcommand)]
    pub(crate) command: Option<DeleteCommand>,
    #[command(flatten)]
    pub(crate) providers: DeleteProviders,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DeleteCommand {
    /// Delete a cluster and everything that belongs to it.
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
