//! Flags of `describe`, `get` and `delete`.

use std::path::PathBuf;

use api::deletion::Wanted;
use clap::{Args, Subcommand, ValueEnum};
use status::tree::conditions::Selector;

use super::values::duration;
use super::{ConnectArgs, DeleteProviders, Output, OutputArg};

#[derive(Debug, Subcommand)]
pub(crate) enum Describe {
    /// Show the objects of a cluster, or of all clusters, as a tree.
    ///
    /// Each line shows the state of an object and what it is waiting for. Machines in the same state are grouped in
    /// one line.
    Cluster(Box<DescribeCluster>),
}

#[derive(Debug, Args)]
pub(crate) struct DescribeCluster {
    /// Name of the cluster [default: the only one in the namespace].
    pub(crate) name: Option<String>,
    /// Show the clusters of all namespaces.
    #[arg(short = 'A', long, conflicts_with_all = ["namespace", "name"])]
    pub(crate) all_namespaces: bool,
    /// Group machines in the same state in one line.
    #[arg(long, value_name = "true|false", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, hide_possible_values = true)]
    pub(crate) grouping: bool,
    /// Show each machine in a line of its own, as with --grouping=false.
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
    /// Show the infrastructure and bootstrap objects of every machine, not only those that fail for a reason that
    /// their Machine does not report.
    #[arg(long)]
    pub(crate) echo: bool,
    /// When to use colors; `auto` uses them on a terminal, unless the variable NO_COLOR is set.
    #[arg(short, long, value_enum, value_name = "WHEN", default_value_t = Color::Auto, num_args = 0..=1,
        default_missing_value = "always")]
    pub(crate) color: Color,
    /// Show the conditions of `all` objects, of a kind such as Machine, or of KIND/NAME; with a `!` at the end, only
    /// those that report a problem.
    #[arg(long, value_name = "all|KIND|KIND/NAME", value_delimiter = ',')]
    pub(crate) show_conditions: Vec<Selector>,
    /// Keep running, and show every change.
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
    /// Object to explain: KIND/NAME or KIND NAME, as in kubectl, such as machine/demo-md-0-x or node/NAME, or the
    /// name of a cluster [default: the only cluster in the namespace].
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
    /// Names of the clusters [default: all in the namespace].
    pub(crate) names: Vec<String>,
    /// Show the clusters of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "namespace")]
    pub(crate) all_namespaces: bool,
    /// Keep running, and print every change.
    #[arg(short, long)]
    pub(crate) watch: bool,
    /// Output format.
    #[arg(short, long, value_enum, default_value_t = Listing::Text)]
    pub(crate) output: Listing,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

/// When to use colors.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    /// The same as `true` in clusterctl.
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
    /// Name of the cluster [default: the only one in the namespace].
    pub(crate) name: Option<String>,
    /// Add the kubeconfig to the first file of KUBECONFIG, or to ~/.kube/config, as a context with the name of the
    /// cluster.
    #[arg(long)]
    pub(crate) merge: bool,
    /// File to write to [default: standard output]. Only its owner can read it.
    #[arg(long, value_name = "FILE", conflicts_with = "merge")]
    pub(crate) write_to: Option<PathBuf>,
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
    Cluster(DeleteCluster),
}

#[derive(Debug, Args)]
pub(crate) struct DeleteCluster {
    /// Name of the cluster.
    pub(crate) name: String,
    /// Also delete what its Services and claims created in the cloud: `services`, `volumes` (as their reclaim policies say),
    /// `volumes=delete` (all), or `services` and one of the others with a comma.
    #[arg(long, value_name = "WHAT", value_parser = with)]
    pub(crate) with: Option<Wanted>,
    /// Show what would be deleted, and what would stay, without changing anything.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) dry_run: bool,
    /// Wait until everything is deleted.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Timeout of --wait.
    #[arg(long, default_value = "10m", value_name = "DURATION", value_parser = duration, requires = "wait")]
    pub(crate) timeout: std::time::Duration,
    /// Output format of --dry-run.
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    pub(crate) output: Output,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}

fn with(text: &str) -> Result<Wanted, String> {
    let words = Wanted::WORDS;
    let wanted = Wanted::parse(text).map_err(|word| format!("`{word}` is none of {words}"))?;
    match wanted.is_nothing() {
        true => Err(format!("it is {words}")),
        false => Ok(wanted),
    }
}
