//! Flags of `move`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::values::duration;
use super::{ConnectArgs, OutputArg};

/// Sets of warnings that clusterctl can hide.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Hidden {
    /// Warnings due to names which Cluster API has given to its finalizers.
    Default,
    All,
    None,
}

/// Moves all clusters of a namespace, with everything that belongs to them, to another management cluster.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Kubeconfig of the target management cluster.
    #[arg(long, value_name = "FILE", conflicts_with = "to_directory", required_unless_present_any = ["to_directory", "from_directory", "dry_run", "roll_back"])]
    pub(crate) to_kubeconfig: Option<PathBuf>,
    /// Context of --to-kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", requires = "to_kubeconfig")]
    pub(crate) to_kubeconfig_context: Option<String>,
    /// Write the objects to files in this directory instead; the clusters remain in this management cluster.
    #[arg(long, value_name = "DIR", conflicts_with = "from_directory")]
    pub(crate) to_directory: Option<PathBuf>,
    /// Create the objects in the files of this directory, in the cluster of --to-kubeconfig or else of --kubeconfig.
    #[arg(long, value_name = "DIR")]
    pub(crate) from_directory: Option<PathBuf>,
    /// Show what would be moved, what would remain, and what prevents the move, without changing anything.
    #[arg(long, conflicts_with_all = ["to_directory", "from_directory"])]
    pub(crate) dry_run: bool,
    /// Undo a move that was interrupted before everything was in the target cluster.
    #[arg(long, conflicts_with_all = ["to_directory", "from_directory", "dry_run"])]
    pub(crate) roll_back: bool,
    /// How long to wait for the controllers of both management clusters to confirm that the clusters are paused.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) confirm_within: Duration,
    /// Warnings of the API servers that are not printed: `default` (those about the finalizers of Cluster API), `all` or
    /// `none`.
    #[arg(long, value_enum, value_name = "SET", default_value_t = Hidden::Default, hide_possible_values = true)]
    pub(crate) hide_api_warnings: Hidden,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
