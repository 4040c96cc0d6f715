//! The identity of the cluster: the uid of its namespace kube-system.

use std::time::Duration;

use anyhow::{Context, bail};
use csi::ClusterUid;
use k8s_openapi::api::core::v1::Namespace;
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use tokio_util::sync::CancellationToken;

use crate::connect;
use crate::environment::Environment;
use crate::manager;

/// The pause after an attempt to read it.
const PAUSE: Duration = Duration::from_secs(60);

/// The uid of the namespace kube-system. It is never empty.
pub(super) async fn uid(client: &Client) -> anyhow::Result<String> {
    let namespaces: Api<Namespace> = Api::all(client.clone());
    let namespace = namespaces.get("kube-system").await;
    let namespace = namespace.context("cannot read the uid of the namespace kube-system")?;
    match namespace.uid() {
        Some(uid) if !uid.is_empty() => Ok(uid),
        _ => bail!("the namespace kube-system has no uid"),
    }
}

/// Makes the uid known to the driver, if there is a cluster to ask: that of `KUBECONFIG`, or that of the pod. Volumes that are
/// created before have none, which only makes them harder to tell from another cluster's.
pub(super) async fn learn(known: ClusterUid, environment: Environment, stop: CancellationToken) {
    let variables = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"];
    if variables
        .iter()
        .all(|name| environment.non_empty(name).is_none())
    {
        return;
    }
    let mut last_problem = String::new();
    loop {
        match of_environment(&environment).await {
            Ok(uid) => {
                tracing::info!(
                    uid,
                    "what is created has the uid of this cluster in its metadata"
                );
                known.set(uid);
                return;
            }
            Err(problem) => {
                let problem = format!("{problem:#}");
                if problem != last_problem {
                    tracing::warn!(
                        "what is created has no uid of this cluster in its metadata: {problem}"
                    );
                }
                last_problem = problem;
            }
        }
        tokio::select! {
            () = tokio::time::sleep(PAUSE) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn of_environment(environment: &Environment) -> anyhow::Result<String> {
    let config = manager::config(None, None, environment).await?;
    let client = connect::connected(config, "ferrostack-cinder-csi-plugin")?;
    uid(&client).await
}
