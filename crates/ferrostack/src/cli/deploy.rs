//! Commands of OpenStack on Kubernetes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArg;

#[derive(Debug, Subcommand)]
pub(crate) enum OpenStack {
    /// Check a file of parameters, and print the configuration files of the services.
    Config(OpenStackConfig),
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
