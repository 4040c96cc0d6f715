//! Selection of the workload clusters to connect, and the source of their kubeconfigs.
//!
//! The controller of Clusters connects the clusters in its reconciles. If another program runs that controller,
//! [`follow`] connects the clusters for the controllers of this process.

use std::sync::Arc;

use api::core::v1beta2::Cluster;
use api::k8s_openapi::api::core::v1::Secret;
use api::kube::ResourceExt;
use api::kube::api::ObjectMeta;
use api::kube::core::PartialObjectMeta;
use api::kube::runtime::{WatchStreamExt, watcher};
use api::names::CLUSTER_NAME_LABEL;
use futures::future::BoxFuture;
use futures::{FutureExt, Stream, StreamExt, stream};
use operator::client::Api;

use crate::remote::ClusterKey;
use crate::{Context, remote};

/// True if there is an API server to connect to.
pub(crate) fn is_reachable(cluster: &Cluster) -> bool {
    cluster.infrastructure_provisioned() && cluster.endpoint().is_some()
}

/// Connects every reachable Cluster, and drops the connection of a deleted one, until shutdown.
pub(crate) fn follow(context: &Arc<Context>) -> BoxFuture<'static, ()> {
    let touched = context.clusters.touched().map(|cluster| {
        ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any())
    });
    let keys = stream::select(kubeconfigs(context), touched);
    let shutdown = context.shutdown.clone();
    let (clusters, remote) = (context.clusters.clone(), context.remote.clone());
    let following = keys.for_each(move |key| {
        match clusters.get(&key.namespace, &key.name) {
            None => remote.forget(&key),
            Some(cluster) if is_reachable(&cluster) && !remote.health(&key).connected => {
                remote.track(&key);
            }
            Some(_) => {}
        }
        std::future::ready(())
    });
    async move {
        shutdown.run_until_cancelled(following).await;
    }
    .boxed()
}

/// Clusters with a new or changed kubeconfig Secret. The resourceVersion is passed to the connection, and kept for
/// the control plane, as are the versions of the certificates. Only the metadata of Secrets is read, but of all of
/// them: users create awaited Secrets with any labels.
pub(crate) fn kubeconfigs(
    context: &Arc<Context>,
) -> impl Stream<Item = ClusterKey> + Send + Unpin + use<> {
    let secrets: Api<PartialObjectMeta<Secret>> = match &context.options.namespace {
        Some(namespace) => Api::namespaced(context.client.clone(), namespace),
        None => Api::all(context.client.clone()),
    };
    let events = operator::watch::metadata(&secrets, watcher::Config::default()).default_backoff();
    let (connections, versions) = (context.remote.clone(), context.secrets.clone());
    let clusters = events.filter_map(move |event| {
        let key = event.ok().and_then(|event| match event {
            watcher::Event::Apply(secret) | watcher::Event::InitApply(secret) => {
                versions.is(&secret.metadata);
                let key = key_of_kubeconfig(&secret.metadata)?;
                let version = secret.resource_version().unwrap_or_default();
                connections.kubeconfig_is(&key, &version);
                Some(key)
            }
            watcher::Event::Delete(secret) => {
                versions.is_gone(&secret.metadata);
                key_of_kubeconfig(&secret.metadata)
            }
            watcher::Event::Init => {
                versions.clear();
                None
            }
            watcher::Event::InitDone => None,
        });
        std::future::ready(key)
    });
    clusters.boxed()
}

/// Cluster of a kubeconfig Secret with this metadata.
fn key_of_kubeconfig(secret: &ObjectMeta) -> Option<ClusterKey> {
    let cluster = secret.labels.as_ref()?.get(CLUSTER_NAME_LABEL)?;
    let is_kubeconfig = secret.name.as_deref() == Some(&remote::secret_name(cluster));
    is_kubeconfig.then(|| ClusterKey::new(secret.namespace.clone().unwrap_or_default(), cluster))
}
