//! Flags of `apply`, `status`, `down`, `completion` and `version`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
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
    /// Namespace for objects without one.
    #[arg(short, long, default_value = "default")]
    pub(crate) namespace: String,
    /// Let the API server validate the manifests, and write nothing.
    #[arg(long, value_enum, value_name = "none|server", default_value_t = DryRun::None, num_args = 0..=1,
        default_missing_value = "server", require_equals = true, hide_possible_values = true)]
    pub(crate) dry_run: DryRun,
    /// Show what would change as a unified difference, and write nothing; the exit status is 2 if something would. The
    /// values of Secrets are left out.
    #[arg(long)]
    pub(crate) diff: bool,
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Requests of `apply`, as in kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DryRun {
    /// All.
    None,
    /// Dry runs alone.
    Server,
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
    /// How long to wait for `up` to end, such as `90s` or `10m`.
    #[arg(long, default_value = "30s", value_name = "DURATION", value_parser = duration)]
    pub(crate) timeout: std::time::Duration,
}

#[derive(Debug, Args)]
pub(crate) struct Completion {
    /// Shell for which the script is printed.
    pub(crate) shell: Shell,
}

#[derive(Debug, Args)]
pub(crate) struct Version {
    /// Print only the version of this program.
    #[arg(long)]
    pub(crate) client: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct Docs {
    /// Page, such as `templates`, or a section of one, such as `manager#clouds` [default: a list of all].
    #[arg(value_name = "PAGE")]
    pub(crate) page: Option<String>,
    /// Word whose lines are listed, with page and section.
    #[arg(long, value_name = "WORD", conflicts_with = "page")]
    pub(crate) search: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Directory to write to, such as ~/.local/share/man/man1.
    pub(crate) directory: PathBuf,
}
