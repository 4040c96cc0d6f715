//! Flags of `upgrade`, of `config`, of `generate provider`, and of `delete` for providers.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

use super::values::duration;
use super::{OlderVersions, OutputArg, Providers, ServerArgs};

#[derive(Debug, Subcommand)]
pub(crate) enum Upgrade {
    /// Show the installed providers, and the version to which `upgrade apply` would upgrade them, without changing
    /// anything.
    Plan(UpgradePlan),
    /// Upgrade CRDs, RBAC, webhooks and managers to the version of this program, and then migrate objects that are
    /// stored in old API versions.
    Apply(Box<UpgradeApply>),
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
    pub(crate) older: OlderVersions,
    #[command(flatten)]
    pub(crate) providers: Upgraded,
    /// Wait until the managers are available.
    #[arg(long, requires = "image")]
    pub(crate) wait_providers: bool,
    /// Timeout of --wait-providers, such as `90s` or `5m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, requires = "wait_providers")]
    pub(crate) wait_provider_timeout: Duration,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Versions of single providers in clusterctl's `upgrade apply`. All built-in providers are one program, which is
/// upgraded as a whole: these flags are rejected with the reason.
#[derive(Debug, Default, Args)]
pub(crate) struct Upgraded {
    /// Rejected, as the ones below.
    #[arg(long, value_name = "NAME", hide = true)]
    pub(crate) core: Option<String>,
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) infrastructure: Vec<String>,
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) bootstrap: Vec<String>,
    #[arg(short, long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) control_plane: Vec<String>,
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) ipam: Vec<String>,
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) runtime_extension: Vec<String>,
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) addon: Vec<String>,
}

impl Upgraded {
    /// First given flag, with its value.
    pub(crate) fn first(&self) -> Option<(&'static str, &str)> {
        let core: Vec<&String> = self.core.iter().collect();
        let all = [
            ("--core", core),
            ("--infrastructure", self.infrastructure.iter().collect()),
            ("--bootstrap", self.bootstrap.iter().collect()),
            ("--control-plane", self.control_plane.iter().collect()),
            ("--ipam", self.ipam.iter().collect()),
            (
                "--runtime-extension",
                self.runtime_extension.iter().collect(),
            ),
            ("--addon", self.addon.iter().collect()),
        ];
        let mut given = all.into_iter();
        given.find_map(|(flag, names)| Some((flag, names.first()?.as_str())))
    }
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
    #[arg(short = 'n', long, value_name = "NAMESPACE", default_value = crate::defaults::NAMESPACE)]
    pub(crate) target_namespace: String,
    /// Container image of ferrostack; adds a Deployment of two managers.
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Print the files of a release, with a Deployment and with variables for its image, log and replicas.
    #[arg(long, conflicts_with_all = ["target_namespace", "image", "describe"])]
    pub(crate) raw: bool,
    /// Describe the providers instead of printing their manifests.
    #[arg(long)]
    pub(crate) describe: bool,
    /// File to write to [default: standard output].
    #[arg(long, value_name = "FILE")]
    pub(crate) write_to: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct GenerateRepository {
    /// Directory to write to.
    pub(crate) directory: PathBuf,
    /// Container image of ferrostack in the Deployments, unless FERROSTACK_IMAGE names another [default: the one of the
    /// release].
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Providers to write [default: all].
    #[command(flatten)]
    pub(crate) providers: Providers,
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
