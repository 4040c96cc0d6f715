//! The flags of `move`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::values::duration;
use super::{ConnectArgs, OutputArg};

/// Moves all clusters of a namespace, with everything that belongs to them, to another management cluster.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// Kubeconfig of the cluster to which the namespace moves.
    #[arg(long, value_name = "FILE", conflicts_with = "to_directory", required_unless_present_any = ["to_directory", "from_directory", "dry_run", "roll_back"])]
    pub(crate) to_kubeconfig: Option<PathBuf>,
    /// Context of that kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME", requires = "to_kubeconfig")]
    pub(crate) to_kubeconfig_context: Option<String>,
    /// Write the objects to files of this directory instead; the clusters stay and go on.
    #[arg(long, value_name = "DIR", conflicts_with = "from_directory")]
    pub(crate) to_directory: Option<PathBuf>,
    /// Create what the files of this directory describe, in the cluster of --to-kubeconfig or, without it, in the one of
    /// --kubeconfig.
    #[arg(long, value_name = "DIR")]
    pub(crate) from_directory: Option<PathBuf>,
    /// Show what moves, what stays and what stands in the way, and write nothing.
    #[arg(long, conflicts_with_all = ["to_directory", "from_directory"])]
    pub(crate) dry_run: bool,
    /// Undo a move that was cut off before the target had everything.
    #[arg(long, conflicts_with_all = ["to_directory", "from_directory", "dry_run"])]
    pub(crate) roll_back: bool,
    /// How long the controllers of either side have to confirm that the clusters are paused.
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = duration)]
    pub(crate) confirm_within: Duration,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) connect: ConnectArgs,
}
