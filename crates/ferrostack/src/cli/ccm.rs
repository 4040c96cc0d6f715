//! Commands of the cloud controller manager.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::OutputArg;

#[derive(Debug, Subcommand)]
pub(crate) enum CloudConf {
    /// Check a cloud.conf: exit with 1 and every error if the cloud controller manager would reject it.
    Check {
        /// The file (`-` is standard input).
        file: PathBuf,
        #[command(flatten)]
        output: OutputArg,
    },
    /// Print a cloud.conf, secrets included.
    Generate(GenerateCloudConf),
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct GenerateCloudConf {
    /// From an entry of clouds.yaml.
    #[arg(long, value_name = "NAME")]
    pub(crate) cloud: Option<String>,
    /// From a cloud.conf of the in-tree provider (`--cloud-provider=openstack`; `-` is standard input).
    #[arg(long, value_name = "FILE")]
    pub(crate) from_legacy: Option<PathBuf>,
}
