//! Flags of `init`.

use std::time::Duration;

use clap::{Args, Subcommand};
use installer::choice::Named;

use super::values::duration;
use super::{OutputArg, ServerArgs};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Init {
    #[command(subcommand)]
    pub(crate) command: Option<InitCommand>,
    /// Container image of ferrostack; adds a Deployment of two managers [default: none; run `ferrostack manager`
    /// yourself].
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Namespace of the managers.
    #[arg(short = 'n', long, value_name = "NAMESPACE", default_value = crate::defaults::NAMESPACE)]
    pub(crate) target_namespace: String,
    /// Namespace of OpenStack clouds; adds the namespace, and the permissions to run the controller of clouds in it.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) openstack_namespace: Option<String>,
    #[command(flatten)]
    pub(crate) providers: Providers,
    #[command(flatten)]
    pub(crate) older: OlderVersions,
    /// Validate all manifests before the first one is applied. They are always validated: `false` is rejected.
    #[arg(long, value_name = "true|false", default_value_t = true, num_args = 0..=1, require_equals = true,
        default_missing_value = "true", action = clap::ArgAction::Set, hide_possible_values = true)]
    pub(crate) validate: bool,
    /// Wait until the managers are available.
    #[arg(long, requires = "image")]
    pub(crate) wait_providers: bool,
    /// Timeout of --wait-providers, such as `90s` or `5m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, requires = "wait_providers")]
    pub(crate) wait_provider_timeout: Duration,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// Versions in CRDs.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct OlderVersions {
    /// API versions that the definitions of the OpenStack kinds serve, v1beta1 and v1beta2 among them; before these there
    /// are v1alpha4 to v1alpha7 [default: v1beta1,v1beta2; `init` and `upgrade apply` keep those that are served].
    #[arg(long, value_name = "VERSIONS", value_delimiter = ',')]
    pub(crate) serve_versions: Vec<String>,
}

/// Providers of clusterctl's `init`. Only built-in names are accepted, and `-`, which leaves one out.
#[derive(Debug, Default, Args)]
pub(crate) struct Providers {
    /// Core provider: `cluster-api`, or `-` for none.
    #[arg(long, value_name = "NAME")]
    pub(crate) core: Option<String>,
    /// Infrastructure provider: `openstack`, or `-` for none.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) infrastructure: Vec<String>,
    /// Bootstrap provider: `kubeadm`, or `-` for none.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) bootstrap: Vec<String>,
    /// Control plane provider: `kubeadm`, or `-` for none.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) control_plane: Vec<String>,
    /// Providers of types that ferrostack has none of; rejected with the reason.
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) ipam: Vec<String>,
    /// The same.
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) runtime_extension: Vec<String>,
    /// The same.
    #[arg(long, value_name = "NAME", value_delimiter = ',', hide = true)]
    pub(crate) addon: Vec<String>,
}

impl Providers {
    /// Names of the providers, as [`Named`].
    pub(crate) fn named(&self) -> Named {
        Named {
            core: self.core.clone(),
            infrastructure: self.infrastructure.clone(),
            bootstrap: self.bootstrap.clone(),
            control_plane: self.control_plane.clone(),
            ipam: self.ipam.clone(),
            runtime_extension: self.runtime_extension.clone(),
            addon: self.addon.clone(),
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum InitCommand {
    /// List the container images that the managers need, for example to copy them to a registry of your own.
    ListImages {
        /// Container image of ferrostack.
        #[arg(long, value_name = "IMAGE")]
        image: Option<String>,
        #[command(flatten)]
        providers: Providers,
        #[command(flatten)]
        output: OutputArg,
    },
}
