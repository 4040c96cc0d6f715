//! Clients created from kubeconfig Secrets.

use std::sync::Arc;
use std::time::Duration;

use api::kube::Client;
use api::kube::config::{KubeConfigOptions, Kubeconfig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use operator::client::{Limits, Settings};
use operator::proxy::Proxies;
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};

use super::{ClusterKey, Connector};

/// User agent of requests without a controller: probes, and watches of Nodes.
const NAME: &str = "ferrostack-clusterapi";

/// Name of the Secret with the kubeconfig of `cluster`.
pub fn secret_name(cluster: &str) -> String {
    format!("{cluster}-kubeconfig")
}

/// Connects as specified by the kubeconfig.
#[derive(Clone, Debug, Default)]
pub struct KubeconfigConnector {
    /// [`Proxies`] for kubeconfigs without one.
    pub proxies: Arc<Proxies>,
}

impl Connector for KubeconfigConnector {
    fn connect<'a>(
        &'a self,
        _cluster: &'a ClusterKey,
        kubeconfig: &'a SecretString,
    ) -> BoxFuture<'a, Result<Client, String>> {
        async move {
            // The parser's own message may quote the content.
            let parsed = Kubeconfig::from_yaml(kubeconfig.expose_secret())
                .map_err(|_| "the kubeconfig cannot be read: it is not YAML of a kubeconfig")?;
            reject_local(&parsed)?;
            reject_incomplete(&parsed)?;
            // Neither message has texts of the kubeconfig, except names and the host of a proxy.
            let unusable = |source: operator::client::Unusable| {
                let why = operator::words::chain(&source);
                format!("the kubeconfig cannot be used: {why}")
            };
            let options = KubeConfigOptions::default();
            let configured = operator::client::configured(parsed, &options, &self.proxies).await;
            let mut config = configured.map_err(unusable)?;
            config.connect_timeout = Some(Duration::from_secs(5));
            // For connections of HTTP/1.1. Watches may be idle for long; the API server ends them after 290 s, as the
            // watcher requests.
            config.read_timeout = Some(Duration::from_secs(295));
            config.write_timeout = Some(Limits::WORKLOAD.answer);
            // Controllers retry, and report the reason: an eviction against a budget is a 429, which the client would
            // repeat until the timeout.
            config.default_retry = false;
            let settings = Settings {
                name: NAME.to_owned(),
                limits: Limits::WORKLOAD,
                shared: true,
            };
            operator::client::connected(config, &settings).map_err(unusable)
        }
        .boxed()
    }
}

/// Rejects local programs and local files: tenants may write the Secret of a [`Kubeconfig`].
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

/// Checks that the current context is complete, and that certificates are valid PEM.
fn reject_incomplete(kubeconfig: &Kubeconfig) -> Result<(), String> {
    let lacks = |what: String| format!("the kubeconfig has no {what}");
    let current = kubeconfig.current_context.as_deref();
    let current = current
        .filter(|name| !name.is_empty())
        .ok_or("current-context is not set in the kubeconfig")?;
    let contexts = kubeconfig.contexts.iter();
    let context = contexts
        .filter(|it| it.name == current)
        .find_map(|it| it.context.as_ref())
        .ok_or_else(|| lacks(format!("context {current}")))?;
    let clusters = kubeconfig.clusters.iter();
    let cluster = clusters
        .filter(|it| it.name == context.cluster)
        .find_map(|it| it.cluster.as_ref())
        .ok_or_else(|| lacks(format!("cluster {}", context.cluster)))?;
    let server = cluster.server.as_deref().unwrap_or_default();
    if server.is_empty() {
        return Err(lacks(format!("server for cluster {}", context.cluster)));
    }
    let address: Option<http::Uri> = server.parse().ok();
    let scheme = address.as_ref().and_then(http::Uri::scheme_str);
    if !matches!(scheme, Some("https" | "http")) {
        return Err(format!(
            "the server of cluster {} in the kubeconfig is not an address such as https://10.0.0.1:6443",
            context.cluster
        ));
    }
    let authority = cluster.certificate_authority_data.as_deref();
    has_certificate("certificate-authority-data", authority)?;
    let Some(name) = &context.user else {
        return Ok(());
    };
    let users = kubeconfig.auth_infos.iter();
    let user = users
        .filter(|it| it.name == *name)
        .find_map(|it| it.auth_info.as_ref())
        .ok_or_else(|| lacks(format!("user {name}")))?;
    let certificate = user.client_certificate_data.as_deref();
    has_certificate("client-certificate-data", certificate)
}

fn has_certificate(field: &str, encoded: Option<&str>) -> Result<(), String> {
    let Some(encoded) = encoded.filter(|text| !text.is_empty()) else {
        return Ok(());
    };
    let pem = STANDARD.decode(encoded.trim()).ok();
    match pem.and_then(|pem| CertificateDer::from_pem_slice(&pem).ok()) {
        Some(_) => Ok(()),
        None => Err(format!(
            "{field} has no certificate in the kubeconfig: it must be PEM in base64"
        )),
    }
}

#[cfg(test)]
mod tests;
