//! The flags of `apply`, `status`, `down`, `completion` and `version`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

use super::values::duration;
use super::{DataDirArg, OutputArg, ServerArgs};

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Manifests: a file, a directory, a URL, or `-` for standard input; may be given more than once.
    #[arg(
        short,
        long = "filename",
        value_name = "FILE|DIR|URL|-",
        required = true
    )]
    pub(crate) files: Vec<PathBuf>,
    /// Namespace of objects that do not name one.
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct Status {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct Down {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Timeout of waiting for its end.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: std::time::Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// The shell.
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print the version of this program only.
    #[arg(long)]
    pub(crate) client: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// The directory to write to, such as ~/.local/share/man/man1.
    pub(crate) directory: PathBuf,
}
