//! The flags of `upgrade`, of `config`, of `generate provider`, and of `delete` for providers.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{OutputArg, Providers, ServerArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Upgrade {
    /// Show the providers that ferrostack has installed, and the version that this program would install. Nothing is
    /// changed.
    Plan(UpgradePlan),
    /// Install the version of this program: kinds, permissions, webhooks and managers. Then write objects that are stored
    /// in old versions once.
    Apply(UpgradeApply),
}

#[derive(Debug, Args)]
pub(crate) struct UpgradePlan {
    #[command(flatten)]
    pub(crate) output: OutputArg,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Debug, Args)]
pub(crate) struct UpgradeApply {
    /// Container image of this version of ferrostack. Needed where managers run in the cluster.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Contract of Cluster API; there is one.
    #[arg(long, value_enum, value_name = "CONTRACT", default_value = "v1beta2")]
    pub(crate) contract: Contract,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Contract {
    V1beta2,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// List the providers that `init` can install, and where they come from.
    Repositories(OutputArg),
}

#[derive(Debug, Args)]
pub(crate) struct GenerateProvider {
    #[command(flatten)]
    pub(crate) providers: Providers,
    /// Namespace of the manager.
    #[arg(short = 'n', long, value_name = "NAMESPACE", default_value = crate::manager::manifests::NAMESPACE)]
    pub(crate) target_namespace: String,
    /// Container image of ferrostack: adds a Deployment of two managers.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Print what the providers are, and no manifests.
    #[arg(long)]
    pub(crate) describe: bool,
    /// File to write to [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteProviders {
    #[command(flatten)]
    pub(crate) providers: Providers,
    /// Delete all providers that ferrostack has installed.
    #[arg(long)]
    pub(crate) all: bool,
    /// Delete their kinds, too; refused while there are objects of them.
    #[arg(long)]
    pub(crate) include_crd: bool,
    /// Delete the namespace of the manager, too, with all that is in it.
    #[arg(long)]
    pub(crate) include_namespace: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
