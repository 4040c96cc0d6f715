//! `csi check`: problems of a cluster's storage, in cloud.conf, in the cloud and in the cluster.

mod finding;
mod observed;
pub(super) mod rules;

#[cfg(test)]
mod tests;

use std::process::ExitCode;

use cloud_conf::Rejected;
use kube::Client;

use self::finding::{Finding, Level};
use self::observed::{Cluster, Observed};
use super::clouds::{self, Files};
use crate::cli::{CsiCheck, Output};
use crate::commands::cloud_controller_manager::files;
use crate::connect;
use crate::environment::Environment;

/// Exit status after errors.
const WRONG: u8 = 2;

/// Prints problems. The exit status is 2 after errors; warnings alone do not count.
pub(crate) async fn run(
    args: &CsiCheck,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let client = connect::cluster(&args.place.server, environment).await?;
    of_cluster(args, &client, environment, print).await
}

async fn of_cluster(
    args: &CsiCheck,
    client: &Client,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let findings = found(args, client, environment).await?;
    print(&match args.place.output.output {
        Output::Text => finding::text(&findings),
        Output::Json => finding::document(&findings)?,
    })?;
    Ok(match finding::count(&findings, Level::Error) {
        0 => ExitCode::SUCCESS,
        _ => ExitCode::from(WRONG),
    })
}

/// [`Finding`]s, as read now.
async fn found(
    args: &CsiCheck,
    client: &Client,
    environment: &Environment,
) -> anyhow::Result<Vec<Finding>> {
    let place = &args.place;
    let files = Files {
        paths: &place.cloud_config,
        names: &place.cloud_name,
        controller: true,
    };
    let mut observed = Observed {
        topology: args.with_topology,
        cluster: Cluster::read(client).await?,
        ..Observed::default()
    };
    match clouds::load(&files, environment) {
        Ok(loaded) => {
            let options = files::session_options(&loaded.conf.metadata, &[]);
            observed.clouds = observed::clouds(&loaded.clouds, &options).await;
            observed.storage = loaded.conf.block_storage;
            observed.conf = loaded.findings;
        }
        Err(error) => match error.downcast::<Rejected>() {
            Ok(rejected) => observed.conf = rejected.findings,
            Err(error) => return Err(error),
        },
    }
    Ok(rules::findings(&observed))
}
