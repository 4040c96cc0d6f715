//! The flags of `audit`.

use std::time::Duration;

use clap::Args;

use super::values::duration;
use super::{OutputArg, ServerArgs};

#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// Cloud of clouds.yaml whose project is looked through.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: String,
    /// Delete what carries our mark and has no owner any more, after a question.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Delete without a question.
    #[arg(long, requires = "delete")]
    pub(crate) yes: bool,
    /// No cluster uses the project that this management cluster does not have: what carries the mark of an unknown one has
    /// no owner.
    #[arg(long)]
    pub(crate) alone: bool,
    /// Delete volumes, snapshots and backups of claims only if they are older.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = duration)]
    pub(crate) older_than: Duration,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}
