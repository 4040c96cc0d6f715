//! Flags of `admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataDirArg;

#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Back up the data directory to one file; works while `up` runs.
    Backup(Backup),
    /// Restore a backup into a data directory.
    Restore(Restore),
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// File to write to. The file contains keys and Secrets, and only its owner can read it.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Replace the file if there is one.
    #[arg(long)]
    pub(crate) overwrite: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// File written by `admin backup`.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Replace the content of the data directory; the old content is kept in a directory beside it.
    #[arg(long)]
    pub(crate) replace: bool,
}
