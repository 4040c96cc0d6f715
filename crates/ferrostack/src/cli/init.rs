//! The flags of `init`.

use std::time::Duration;

use clap::{Args, Subcommand};

use super::values::duration;
use super::{OutputArg, ServerArgs};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Init {
    #[command(subcommand)]
    pub(crate) command: Option<InitCommand>,
    /// Container image of ferrostack, for a Deployment of two managers [default: no Deployment; run `ferrostack manager`].
    #[arg(long, value_name = "IMAGE")]
    pub(crate) image: Option<String>,
    /// Namespace of the manager.
    #[arg(short = 'n', long, value_name = "NAMESPACE", default_value = crate::manager::manifests::NAMESPACE)]
    pub(crate) target_namespace: String,
    /// Namespace of OpenStack clouds: adds it, and the permission to run their controller there.
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) openstack_namespace: Option<String>,
    #[command(flatten)]
    pub(crate) providers: Providers,
    /// Wait until the managers are available.
    #[arg(long, requires = "image")]
    pub(crate) wait_providers: bool,
    /// Timeout of --wait-providers, such as `90s` or `5m`.
    #[arg(long, value_name = "DURATION", default_value = "5m", value_parser = duration, requires = "wait_providers")]
    pub(crate) wait_provider_timeout: Duration,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

/// The providers of clusterctl's `init`. Only the names of ours can be given, and `-`, which leaves one out.
#[derive(Debug, Default, Args)]
pub(crate) struct Providers {
    /// The core provider: cluster-api, or `-` for none.
    #[arg(long, value_name = "NAME")]
    pub(crate) core: Option<String>,
    /// The infrastructure provider: openstack, or `-` for none.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) infrastructure: Vec<String>,
    /// The bootstrap provider: kubeadm, or `-` for none.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) bootstrap: Vec<String>,
    /// The control plane provider: kubeadm, or `-` for none.
    #[arg(short, long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) control_plane: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InitCommand {
    /// Print the images that a cluster needs, to bring them there before.
    ListImages {
        /// Container image of ferrostack.
        #[arg(long, value_name = "IMAGE")]
        image: Option<String>,
        #[command(flatten)]
        output: OutputArg,
    },
}
