//! Cluster of the driver's volumes: the cluster of the flags, or else of `KUBECONFIG`, or else of the pod.

use std::path::PathBuf;

use anyhow::Context;
use kube::Client;

use crate::cli::CinderCsiPlugin;
use crate::commands::manager;
use crate::connect;
use crate::environment::Environment;

/// Flags with the cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterFlags {
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
    master: Option<String>,
}

impl From<&CinderCsiPlugin> for ClusterFlags {
    fn from(args: &CinderCsiPlugin) -> Self {
        Self {
            kubeconfig: args.kubeconfig.clone(),
            context: args.context.clone(),
            master: args.master.clone(),
        }
    }
}

impl ClusterFlags {
    /// True if a flag or the environment names a cluster.
    pub(super) fn is_named(&self, environment: &Environment) -> bool {
        let variables = ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"];
        self.kubeconfig.is_some()
            || self.context.is_some()
            || self.master.is_some()
            || variables
                .iter()
                .any(|name| environment.non_empty(name).is_some())
    }

    /// [`Client`] of the cluster, without a request.
    ///
    /// # Errors
    /// If no cluster is given, or the kubeconfig cannot be used.
    pub(super) async fn client(&self, environment: &Environment) -> anyhow::Result<Client> {
        let mut config = manager::config(
            self.kubeconfig.as_deref(),
            self.context.as_deref(),
            environment,
        )
        .await?;
        if let Some(master) = &self.master {
            config.cluster_url = master
                .parse()
                .with_context(|| format!("--master `{master}`"))?;
        }
        connect::connected(config, "ferrostack-cinder-csi-plugin")
    }
}
