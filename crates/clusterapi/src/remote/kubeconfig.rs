//! Clients created from kubeconfig Secrets.

use std::time::Duration;

use api::kube::config::{KubeConfigOptions, Kubeconfig};
use api::kube::{Client, Config};
use futures::FutureExt;
use futures::future::BoxFuture;
use secrecy::{ExposeSecret, SecretString};

use super::{ClusterKey, Connector};

/// How long a workload cluster may take to begin an answer (upstream: 10 s for the whole of it).
const TIMEOUT: Duration = Duration::from_secs(10);

/// The name of the Secret with the kubeconfig of `cluster`.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// Connects as specified by the kubeconfig.
#[derive(Clone, Copy, Debug, Default)]
pub struct KubeconfigConnector;

impl Connector for KubeconfigConnector {
    fn connect<'a>(
        &'a self,
        _cluster: &'a ClusterKey,
        kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        async move {
            let parsed = Kubeconfig::from_yaml(kubeconfig.expose_secret())
                .map_err(|source| format!("the kubeconfig cannot be read: {source}"))?;
            reject_local(&parsed)?;
            let mut config = Config::from_custom_kubeconfig(parsed, &KubeConfigOptions::default())
                .await
                .map_err(|source| format!("the kubeconfig cannot be used: {source}"))?;
            config.connect_timeout = Some(Duration::from_secs(5));
            // For connections of HTTP/1.1. Watches may be idle for long; the API server ends them after 290 s, as the
            // watcher requests.
            config.read_timeout = Some(Duration::from_secs(295));
            config.write_timeout = Some(TIMEOUT);
            // Controllers retry, and report why: an eviction that a budget forbids is a 429, which the client would
            // repeat until the timeout.
            config.default_retry = false;
            operator::client::multiplexed(config, TIMEOUT)
                .map_err(|source| format!("the kubeconfig cannot be used: {source}"))
        }
        .boxed()
    }
}

/// Tenants may write the Secret of a kubeconfig: it must not execute local programs or read local files.
fn reject_local(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let users = kubeconfig
        .auth_infos
        .iter()
        .filter_map(|user| user.auth_info.as_ref());
    for user in users {
        let local = user.exec.is_some()
            || user.auth_provider.is_some()
            || user.token_file.is_some()
            || user.client_certificate.is_some()
            || user.client_key.is_some();
        if local {
            return Err(
                "the kubeconfig names a program or a file; it must contain its credentials \
                        itself"
                    .to_owned(),
            );
        }
    }
    let clusters = kubeconfig
        .clusters
        .iter()
        .filter_map(|cluster| cluster.cluster.as_ref());
    if clusters
        .into_iter()
        .any(|cluster| cluster.certificate_authority.is_some())
    {
        return Err(
            "the kubeconfig names a file; it must contain the authority's certificate itself"
                .to_owned(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
