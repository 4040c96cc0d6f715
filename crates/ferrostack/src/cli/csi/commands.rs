//! Commands about the storage of a cluster.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::values::duration;
use crate::cli::{OutputArg, ServerArgs};

/// Minimum age of deleted resources: a sidecar may still be about to use a younger one.
const LEAST_AGE: Duration = Duration::from_secs(600);

#[derive(Debug, Subcommand)]
pub(crate) enum Csi {
    /// Check cloud.conf, zones, types, quota, classes and PersistentVolumes, and print what is wrong.
    ///
    /// The exit status is 2 if there are errors, and 0 if there are warnings alone. Nothing is changed.
    Check(CsiCheck),
    /// List the volumes, snapshots and backups of a cluster that nothing in it names, and delete them with --delete.
    Orphans(CsiOrphans),
}

/// Clouds and the cluster.
#[derive(Debug, Args)]
pub(crate) struct CsiPlace {
    /// Configuration files (cloud.conf), read as one.
    #[arg(long, value_name = "FILE", value_delimiter = ',', required = true)]
    pub(crate) cloud_config: Vec<PathBuf>,
    /// Clouds: NAME for the section [Global "NAME"] [default: that of [Global]].
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(crate) cloud_name: Vec<String>,
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(flatten)]
    pub(crate) output: OutputArg,
}

#[derive(Debug, Args)]
pub(crate) struct CsiCheck {
    #[command(flatten)]
    pub(crate) place: CsiPlace,
    /// Volumes and nodes have zones, as with this flag of the driver.
    #[arg(long, value_name = "BOOL", default_value = "true", default_missing_value = "true", num_args = 0..=1,
        require_equals = true, action = clap::ArgAction::Set)]
    pub(crate) with_topology: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CsiOrphans {
    #[command(flatten)]
    pub(crate) place: CsiPlace,
    /// Name of the Kubernetes cluster in the metadata of its volumes: --cluster of the driver.
    #[arg(long, value_name = "NAME", required = true, value_parser = clap::builder::NonEmptyStringValueParser::new())]
    pub(crate) cluster: String,
    /// Delete what is listed, after a question; each is looked at again before.
    #[arg(long)]
    pub(crate) delete: bool,
    /// Delete without a question.
    #[arg(long, requires = "delete")]
    pub(crate) yes: bool,
    /// Delete also what has the name of the cluster and not the uid of its namespace kube-system. Only if no other cluster
    /// in the project has, or had, this name.
    #[arg(long, requires = "delete")]
    pub(crate) without_uid: bool,
    /// Delete only what is older, which is ten minutes at least.
    #[arg(long, value_name = "DURATION", default_value = "1h", value_parser = age)]
    pub(crate) older_than: Duration,
}

fn age(text: &str) -> Result<Duration, String> {
    let age = duration(text)?;
    match age < LEAST_AGE {
        true => Err("it is ten minutes at least".to_owned()),
        false => Ok(age),
    }
}
