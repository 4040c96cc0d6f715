//! A copy of the objects of a namespace, in an API server in memory.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use apiserver::{ApiServer, Options};
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Client, ResourceExt};
use operator::client::Api;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::differences::Objects;

use installer::older::Older;

/// Kinds of a topology, and of objects read by the controllers of topologies: owners come before their objects.
const KINDS: [(&str, &str); 12] = [
    ("cluster.x-k8s.io", "ClusterClass"),
    ("cluster.x-k8s.io", "Cluster"),
    (
        "infrastructure.cluster.x-k8s.io",
        "OpenStackClusterTemplate",
    ),
    (
        "infrastructure.cluster.x-k8s.io",
        "OpenStackMachineTemplate",
    ),
    (
        "controlplane.cluster.x-k8s.io",
        "KubeadmControlPlaneTemplate",
    ),
    ("bootstrap.cluster.x-k8s.io", "KubeadmConfigTemplate"),
    ("infrastructure.cluster.x-k8s.io", "OpenStackCluster"),
    ("controlplane.cluster.x-k8s.io", "KubeadmControlPlane"),
    ("cluster.x-k8s.io", "MachineDeployment"),
    ("cluster.x-k8s.io", "MachineSet"),
    ("cluster.x-k8s.io", "Machine"),
    ("cluster.x-k8s.io", "MachineHealthCheck"),
];
/// Fields of `metadata` set by the API server.
const SET_BY_SERVER: [&str; 5] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "managedFields",
];
/// Interval between reads of the copy.
const LOOK: Duration = Duration::from_millis(100);
/// Number of reads without a change that make a rest.
const REST: u32 = 10;
/// Maximum number of reads.
const LOOKS: u32 = 600;

/// A copy of the objects of a namespace.
pub(crate) struct Copy {
    server: ApiServer,
    client: Client,
    namespace: String,
}

impl Copy {
    /// Copies the objects of `namespace`, without objects being deleted.
    pub(crate) async fn for_namespace(client: &Client, namespace: &str) -> anyhow::Result<Self> {
        let options = Options {
            hooks: Arc::new(::management::Rules),
            ..Options::default()
        };
        let server = ApiServer::open(options).await?;
        let copy = Self {
            client: Client::new(server.in_process(), namespace),
            server,
            namespace: namespace.to_owned(),
        };
        crate::commands::up::install_definitions(&copy.client, &Older::default()).await?;
        let namespaces: Api<Namespace> = Api::all(copy.client.clone());
        if namespaces.get_opt(namespace).await?.is_none() {
            let body = serde_json::from_value(json!({ "metadata": { "name": namespace } }))?;
            namespaces.create(&PostParams::default(), &body).await?;
        }
        let mut uids = BTreeMap::new();
        for (group, kind) in KINDS {
            for object in objects(client, group, kind, namespace).await? {
                if object.metadata.deletion_timestamp.is_none() {
                    copy.add(group, kind, &object, &mut uids).await?;
                }
            }
        }
        Ok(copy)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// All objects.
    pub(crate) async fn objects(&self) -> anyhow::Result<Objects> {
        let mut all = Objects::new();
        for (group, kind) in KINDS {
            for object in objects(&self.client, group, kind, &self.namespace).await? {
                all.insert((kind.to_owned(), object.name_any()), json!(object));
            }
        }
        Ok(all)
    }

    /// Runs the controllers until nothing changes any more; returns the obstacles reported by Clusters.
    pub(crate) async fn reconcile(&self) -> anyhow::Result<Vec<String>> {
        let clusters = api(&self.client, "cluster.x-k8s.io", "Cluster", &self.namespace);
        let finalizer = json!({ "metadata": { "finalizers": [clusterapi::CLUSTER_FINALIZER] } });
        for cluster in clusters.list(&ListParams::default()).await?.items {
            // Its controller, which does not run, adds it first.
            let patch = Patch::Merge(&finalizer);
            clusters
                .patch(&cluster.name_any(), &PatchParams::default(), &patch)
                .await?;
        }
        let shutdown = CancellationToken::new();
        let options = clusterapi::Options::default();
        let running = clusterapi::run_topologies(self.client.clone(), options, shutdown.clone());
        let running = tokio::spawn(running);
        let rested = self.rested().await;
        shutdown.cancel();
        running.await.context("the controllers")?;
        rested?;
        let mut obstacles = Vec::new();
        for cluster in clusters.list(&ListParams::default()).await?.items {
            let conditions = cluster.data["status"]["conditions"].as_array();
            let mut conditions = conditions.into_iter().flatten();
            let found =
                conditions.find(|it| it["type"] == "TopologyReconciled" && it["status"] != "True");
            let message = found.and_then(|it| it["message"].as_str());
            obstacles.extend(message.map(|it| format!("Cluster {}: {it}", cluster.name_any())));
        }
        Ok(obstacles)
    }

    pub(crate) async fn close(self) {
        drop(self.client);
        self.server.close().await;
    }

    /// Waits until nothing has changed for a while.
    async fn rested(&self) -> anyhow::Result<()> {
        let (mut before, mut same) = (Objects::new(), 0);
        for _ in 0..LOOKS {
            tokio::time::sleep(LOOK).await;
            let now = self.objects().await?;
            same = if now == before { same + 1 } else { 0 };
            if same == REST {
                return Ok(());
            }
            before = now;
        }
        bail!("the plan does not come to an end: the objects of the copy change all the time")
    }

    /// Adds an object with its status and field managers, without owners outside of the copy.
    async fn add(
        &self,
        group: &str,
        kind: &str,
        object: &DynamicObject,
        uids: &mut BTreeMap<(String, String), String>,
    ) -> anyhow::Result<()> {
        let (name, managed) = (object.name_any(), object.metadata.managed_fields.clone());
        let context = || format!("{kind} {name} cannot be copied");
        let mut body = json!(object);
        if let Some(metadata) = body["metadata"].as_object_mut() {
            metadata.retain(|field, _| !SET_BY_SERVER.contains(&field.as_str()));
        }
        let owners = body["metadata"]["ownerReferences"].take();
        let owners = owners.as_array().into_iter().flatten().filter_map(|owner| {
            let text = |field: &str| owner[field].as_str().unwrap_or_default().to_owned();
            let uid = uids.get(&(text("kind"), text("name")))?;
            let mut owner = owner.clone();
            owner["uid"] = json!(uid);
            Some(owner)
        });
        body["metadata"]["ownerReferences"] = Value::from(owners.collect::<Vec<_>>());
        let status = body["status"].take();
        let all = api(&self.client, group, kind, &self.namespace);
        let body = serde_json::from_value(body).with_context(context)?;
        let created = all
            .create(&PostParams::default(), &body)
            .await
            .with_context(context)?;
        uids.insert(
            (kind.to_owned(), name.clone()),
            created.uid().unwrap_or_default(),
        );
        let params = PatchParams::default();
        if !status.is_null() {
            let patch = Patch::Merge(json!({ "status": status }));
            all.patch_status(&name, &params, &patch)
                .await
                .with_context(context)?;
        }
        if let Some(managed) = managed {
            let patch = Patch::Merge(json!({ "metadata": { "managedFields": managed } }));
            all.patch(&name, &params, &patch)
                .await
                .with_context(context)?;
        }
        Ok(())
    }
}

fn api(client: &Client, group: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk(group, "v1beta2", kind);
    let mut resource = ApiResource::from_gvk(&gvk);
    if kind == "ClusterClass" {
        resource.plural = "clusterclasses".to_owned();
    }
    Api::namespaced_with(client.clone(), namespace, &resource)
}

async fn objects(
    client: &Client,
    group: &str,
    kind: &str,
    namespace: &str,
) -> anyhow::Result<Vec<DynamicObject>> {
    let listed = api(client, group, kind, namespace)
        .list(&ListParams::default())
        .await;
    Ok(listed
        .with_context(|| format!("{kind}s of namespace {namespace} cannot be listed"))?
        .items)
}
