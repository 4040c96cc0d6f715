//! The flags of `upgrade`, of `config`, of `generate provider`, and of `delete` for providers.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::{OutputArg, Providers, ServerArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Upgrade {
    /// Show the installed providers, and the version to which `upgrade apply` would upgrade them, without changing
    /// anything.
    Plan(UpgradePlan),
    /// Upgrade CRDs, RBAC, webhooks and managers to the version of this program, and then migrate objects that are
    /// stored in old API versions.
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
    /// Container image of this version of ferrostack; required if managers run in the cluster.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Contract of Cluster API; only v1beta2 is supported.
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
    /// Namespace of the managers.
    #[arg(short = 'n', long, value_name = "NAMESPACE", default_value = crate::manager::manifests::NAMESPACE)]
    pub(crate) target_namespace: String,
    /// Container image of ferrostack; adds a Deployment of two managers.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Describe the providers instead of printing their manifests.
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
    /// Delete all providers that ferrostack installed.
    #[arg(long)]
    pub(crate) all: bool,
    /// Also delete their CRDs; rejected while there are objects of these kinds.
    #[arg(long)]
    pub(crate) include_crd: bool,
    /// Also delete the namespace of the managers, with everything in it.
    #[arg(long)]
    pub(crate) include_namespace: bool,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}
