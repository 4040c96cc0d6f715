//! The flags of `admin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::DataDirArg;

#[derive(Debug, Subcommand)]
pub(crate) enum Admin {
    /// Write what `up` keeps to one file, whether it runs or not.
    Backup(Backup),
    /// Put a backup into a data directory.
    Restore(Restore),
}

#[derive(Debug, Args)]
pub(crate) struct Backup {
    /// The file to write: readable by you alone, for it holds keys and Secrets.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
}

#[derive(Debug, Args)]
pub(crate) struct Restore {
    /// A file that `admin backup` wrote.
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Put the backup in the place of what the data directory holds, which is kept beside it.
    #[arg(long)]
    pub(crate) replace: bool,
}
