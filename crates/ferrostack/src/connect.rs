//! Finding the management API that is running.

use std::path::PathBuf;

use anyhow::{Context, bail};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use crate::cli::{ConnectArgs, DataDirArg};
use crate::environment::Environment;

/// The data directory that `arg` names, or the default one.
pub(crate) fn data_dir(arg: &DataDirArg, environment: &Environment) -> PathBuf {
    arg.data_dir
        .clone()
        .unwrap_or_else(|| environment.default_data_dir())
}

/// A client of the management API, found through `--kubeconfig`, `KUBECONFIG` or the data
/// directory, in that order.
pub(crate) async fn client(
    args: &ConnectArgs,
    environment: &Environment,
) -> anyhow::Result<Client> {
    let kubeconfig = kubeconfig(args, environment)?;
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
        .await
        .context("the kubeconfig cannot be used")?;
    // A person waits: say at once that nothing answers.
    config.default_retry = false;
    let address = config.cluster_url.to_string();
    let client = Client::try_from(config).context("the kubeconfig cannot be used")?;
    let client = operator::client::named(&client, "ferrostack");
    if let Err(error) = client.apiserver_version().await {
        match error {
            kube::Error::Api(status) => {
                bail!(
                    "the API server at {address} rejected the request: {}",
                    status.message
                )
            }
            other => {
                let cause = operator::controller::chain(&other);
                bail!("no API server answers at {address}: {cause}. Is `ferrostack up` running?")
            }
        }
    }
    Ok(client)
}

fn kubeconfig(args: &ConnectArgs, environment: &Environment) -> anyhow::Result<Kubeconfig> {
    let paths: Vec<PathBuf> = match (&args.kubeconfig, environment.non_empty("KUBECONFIG")) {
        (Some(path), _) => vec![path.clone()],
        (None, Some(paths)) => std::env::split_paths(paths).collect(),
        (None, None) => {
            let path = data_dir(&args.data_dir, environment).join("kubeconfig");
            if !path.exists() {
                bail!(
                    "there is no {}: start `ferrostack up` first, or name a kubeconfig with --kubeconfig",
                    path.display()
                );
            }
            vec![path]
        }
    };
    read(&paths)
}

/// Kubeconfig files, merged as kubectl merges those of `KUBECONFIG`.
pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Kubeconfig> {
    let mut merged = Kubeconfig::default();
    for path in paths.iter().filter(|path| !path.as_os_str().is_empty()) {
        let next = Kubeconfig::read_from(path)
            .with_context(|| format!("cannot use kubeconfig {}", path.display()))?;
        merged = merged
            .merge(next)
            .context("the kubeconfig files cannot be merged")?;
    }
    Ok(merged)
}
