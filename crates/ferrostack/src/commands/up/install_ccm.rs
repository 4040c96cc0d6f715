//! `up --install-ccm`: a cloud controller manager in each workload cluster on a real cloud, by a ClusterResourceSet.
//!
//! Each Cluster with an OpenStackCluster has a Secret with the manifests, and a ClusterResourceSet with a selector for
//! the Cluster's label. The Cluster owns both: the credentials are deleted with the Cluster. Both are written again at
//! each start: changed credentials reach the workload cluster.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::time::Duration;

use api::addons::v1beta2::ClusterResourceSet;
use api::core::v1beta2::Cluster;
use api::infra::v1beta2::OpenStackCluster;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Patch, PatchParams};
use kube::{Client, Resource, ResourceExt};
use operator::client::Api;
use operator::metrics::Metrics;
use operator::watch::{self, Reports};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::cloud_controller_manager::manifests;

/// Label of a Cluster for the selector of the set; the value is the Cluster's name.
const LABEL: &str = "ferrostack.dev/cloud-controller-manager";
/// Interval between reads of Clusters with missing objects.
const RETRY: Duration = Duration::from_secs(5);
/// Program in the workload clusters.
const PROGRAM: cloud_conf::Program = cloud_conf::Program::CloudControllerManager;
/// Name in User-Agent and managed fields.
const NAME: &str = "ferrostack-install-ccm";

/// Installs the manager with this image in all Clusters, also in new ones, until `stop`.
pub(super) async fn run(client: Client, image: String, metrics: Metrics, stop: CancellationToken) {
    let client = operator::client::named(&client, "install-ccm");
    let reports = Reports {
        watch: "install-ccm",
        metrics,
        recorder: None,
    };
    let seen = watch::touched::<Cluster>(Api::all(client.clone()), reports);
    let work = async {
        let mut seen = pin!(seen);
        let mut installed = HashSet::new();
        let mut waiting: HashMap<String, (Cluster, String)> = HashMap::new();
        loop {
            match tokio::time::timeout(RETRY, seen.next()).await {
                Ok(None | Some(Err(_))) => break,
                Ok(Some(Ok(cluster))) => note(&mut waiting, &installed, cluster),
                Err(_) => {}
            }
            let mut done = Vec::new();
            for (uid, (cluster, last)) in &mut waiting {
                match install(&client, cluster, &image).await {
                    Ok(true) => done.push(uid.clone()),
                    Ok(false) => {}
                    Err(problem) => report(cluster, last, &format!("{problem:#}")),
                }
            }
            for uid in done {
                waiting.remove(&uid);
                installed.insert(uid);
            }
        }
    };
    stop.run_until_cancelled(work).await;
}

/// Remembers a [`Cluster`] without a manager, and forgets a deleted one.
fn note(
    waiting: &mut HashMap<String, (Cluster, String)>,
    installed: &HashSet<String>,
    cluster: Cluster,
) {
    let uid = cluster.uid().unwrap_or_default();
    if cluster.metadata.deletion_timestamp.is_some() {
        waiting.remove(&uid);
    } else if !installed.contains(&uid) {
        let last = waiting.remove(&uid).map(|(_, last)| last);
        waiting.insert(uid, (cluster, last.unwrap_or_default()));
    }
}

fn report(cluster: &Cluster, last: &mut String, problem: &str) {
    if last != problem {
        let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
        tracing::warn!("--install-ccm: Cluster {namespace}/{name}: {problem}");
        problem.clone_into(last);
    }
}

/// Writes Secret, set and label of a [`Cluster`]. True if nothing is left to do.
async fn install(client: &Client, cluster: &Cluster, image: &str) -> anyhow::Result<bool> {
    let (namespace, name) = (cluster.namespace().unwrap_or_default(), cluster.name_any());
    // A Cluster with a topology gets its reference later.
    let Some(reference) = &cluster.spec.infrastructure_ref else {
        return Ok(false);
    };
    if reference.kind != "OpenStackCluster" {
        return Ok(true);
    }
    let clusters = Api::<OpenStackCluster>::namespaced(client.clone(), &namespace);
    let Some(found) = clusters.get_opt(&reference.name).await? else {
        return Ok(false);
    };
    let cloud = provider::cloud_config(client, &namespace, &found.spec.identity_ref).await;
    let cloud = cloud.map_err(|problem| anyhow::anyhow!(problem.message))?;
    // The provider makes a Secret of the type of ClusterResourceSets with a credential of its own, on request.
    let is_credential_made = provider::is_credential_asked_for(&found, PROGRAM);
    let text = match is_credential_made {
        true => {
            let secret = provider::name_of_cloud_config(PROGRAM);
            manifests::with_secret(&secret, &name, image)?
        }
        false => manifests::of_cluster(&cloud, &name, image)?,
    };
    let object = format!("{name}-cloud-controller-manager");
    let owner = Cluster::controller_owner_ref(cluster, &()).map(|owner| {
        json!({"apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name, "uid": owner.uid})
    });
    let metadata = json!({"name": object, "namespace": namespace, "ownerReferences": [owner]});
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "addons.cluster.x-k8s.io/resource-set",
        "metadata": metadata, "stringData": {"cloud-controller-manager.yaml": text.expose_secret()}});
    let credentials = provider::name_of_cloud_configs(&reference.name);
    let mut resources = vec![json!({"kind": "Secret", "name": object})];
    if is_credential_made {
        resources.insert(0, json!({"kind": "Secret", "name": credentials}));
    }
    let set = json!({"apiVersion": ClusterResourceSet::api_version(&()), "kind": "ClusterResourceSet",
        "metadata": metadata, "spec": {"strategy": "Reconcile",
            "clusterSelector": {"matchLabels": {LABEL: name}},
            "resources": resources}});
    let params = PatchParams::apply(NAME).force();
    Api::<Secret>::namespaced(client.clone(), &namespace)
        .patch(&object, &params, &Patch::Apply(secret))
        .await?;
    Api::<ClusterResourceSet>::namespaced(client.clone(), &namespace)
        .patch(&object, &params, &Patch::Apply(set))
        .await?;
    let label = json!({"metadata": {"labels": {LABEL: name}}});
    Api::<Cluster>::namespaced(client.clone(), &namespace)
        .patch(&name, &PatchParams::default(), &Patch::Merge(label))
        .await?;
    tracing::info!(
        "Cluster {namespace}/{name}: ClusterResourceSet {object} installs the cloud controller manager"
    );
    Ok(true)
}
