//! Commands of OpenStack on Kubernetes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArg;

#[derive(Debug, Subcommand)]
pub(crate) enum OpenStack {
    /// Check a file of parameters, and print the configuration files of the services.
    Config(OpenStackConfig),
    /// Show what would be created, changed and deleted in a cluster. Nothing is written.
    ///
    /// Every object is sent to the API server as a dry run. The exit status is 0 when there is nothing to do, 2 when
    /// there is, and 1 after an error.
    Plan(OpenStackPlan),
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackPlan {
    /// File of parameters (`-` is standard input).
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Kubeconfig of the cluster [default: KUBECONFIG, then that of the default data directory of `up`].
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig [default: its current context].
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Plan for an empty namespace, and connect to no cluster.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) empty: bool,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct OpenStackConfig {
    /// The service [default: all of them].
    #[arg(value_parser = services())]
    pub(crate) service: Option<String>,
    /// File of parameters (`-` is standard input) [default: a cloud with only defaults].
    #[arg(short, long = "filename", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Release of a cloud with only defaults.
    #[arg(long, value_name = "NAME", default_value = "2025.1", conflicts_with = "file", value_parser = releases())]
    pub(crate) release: String,
    /// Explain an option of the service: what it takes, its default, its value and where that comes from.
    #[arg(long, value_name = "[SECTION.]OPTION", requires = "service")]
    pub(crate) explain: Option<String>,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

fn services() -> Vec<&'static str> {
    deployer::Service::ALL.map(deployer::Service::name).to_vec()
}

fn releases() -> Vec<&'static str> {
    deployer::Release::ALL.map(deployer::Release::name).to_vec()
}
