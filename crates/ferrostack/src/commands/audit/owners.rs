//! Existing owners: objects of a management cluster and of its workload clusters.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::Context as _;
use clusterapi::remote::{ClusterKey, Connector};
use k8s_openapi::api::core::v1::{Secret, Service};
use kube::api::DynamicObject;
use kube::{Client, ResourceExt as _};
use operator::client::Api;
use provider::identity::Identity;
use secrecy::SecretString;

use crate::commands::csi::listed;
use crate::commands::csi::orphans::Claimed;

/// Timeout for all responses of a workload cluster.
const PATIENCE: Duration = Duration::from_secs(20);
const INFRASTRUCTURE: &str = "infrastructure.cluster.x-k8s.io";
const VERSIONS: [&str; 3] = ["v1beta2", "v1beta1", "v1alpha1"];

/// Object of a management cluster with ids of resources in the cloud.
#[derive(Clone, Debug)]
pub(super) struct Named {
    /// `Kind/name in namespace`.
    pub(super) object: String,
    /// [`Identity`] of the object or of its cluster.
    pub(super) cluster: Option<Identity>,
    /// Ids in the status and the providerID, each with the kind of the resource.
    pub(super) ids: Vec<(super::thing::Form, String)>,
}

/// Workload cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct Workload {
    /// `namespace/name` of its Cluster.
    pub(super) cluster: String,
    /// Uids of Services, and ids in PersistentVolumes and snapshots; `None` if not asked, or without an answer.
    pub(super) inside: Option<(BTreeSet<String>, Claimed)>,
}

/// All owners.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    /// Every [`Identity`] of an object, with the object.
    pub(super) identities: BTreeMap<Identity, String>,
    /// Names of machines, and of servers.
    pub(super) machines: BTreeSet<String>,
    pub(super) named: Vec<Named>,
    /// [`Workload`]s by the uid of kube-system.
    pub(super) workloads: BTreeMap<String, Workload>,
    /// Reasons why workload clusters were not asked.
    pub(super) unasked: Vec<String>,
}

impl Owners {
    /// Existing owners. Only workload clusters with resources in the cloud are asked: `uids`.
    ///
    /// # Errors
    /// If a list of the management cluster fails, since owners would be missing.
    pub(super) async fn read(
        client: &Client,
        uids: &BTreeSet<String>,
        connector: &dyn Connector,
    ) -> anyhow::Result<Self> {
        let mut owners = Self::default();
        let group = "cluster.x-k8s.io";
        for cluster in listed::of_crd(client, group, &["v1beta2", "v1beta1"], "Cluster").await? {
            owners.workload(client, &cluster, uids, connector).await;
        }
        let mut of_clusters = BTreeMap::new();
        let kinds = [
            "OpenStackCluster",
            "OpenStackMachine",
            "OpenStackServer",
            "OpenStackFloatingIPPool",
        ];
        for kind in kinds {
            let objects = listed::of_crd(client, INFRASTRUCTURE, &VERSIONS, kind).await?;
            anyhow::ensure!(
                kind != "OpenStackCluster" || !objects.is_empty() || owners.serves(client).await?,
                "the API server does not know {kind}: it is not that of a management cluster"
            );
            for object in objects {
                owners.add(kind, &object, &mut of_clusters);
            }
        }
        Ok(owners)
    }

    /// True if OpenStackClusters are served: otherwise, every mark would be one without an owner.
    async fn serves(&self, client: &Client) -> anyhow::Result<bool> {
        let groups = client.list_api_groups().await;
        let groups = groups.context("cannot list the API groups")?;
        Ok(groups.groups.iter().any(|it| it.name == INFRASTRUCTURE))
    }

    fn add(
        &mut self,
        kind: &str,
        object: &DynamicObject,
        of_clusters: &mut BTreeMap<(String, String), Identity>,
    ) {
        let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
        let label = format!("{kind}/{name} in {namespace}");
        let mut found = None;
        for (key, value) in object.annotations() {
            if key.starts_with("infrastructure.cluster.x-k8s.io/ferrostack-")
                && let Some(identity) = Identity::parse(value)
            {
                found = Some(identity);
                self.identities.insert(identity, label.clone());
            }
        }
        let cluster = object.labels().get(api::names::CLUSTER_NAME_LABEL);
        let key = (namespace, cluster.unwrap_or(&name).clone());
        let mut cluster = found;
        if kind == "OpenStackCluster" {
            of_clusters.extend(found.map(|identity| (key, identity)));
        } else {
            self.machines.insert(name);
            cluster = of_clusters.get(&key).copied();
        }
        if object.metadata.deletion_timestamp.is_none() {
            self.named.push(Named {
                object: label,
                cluster,
                ids: super::drift::ids(&object.data),
            });
        }
    }

    async fn workload(
        &mut self,
        client: &Client,
        cluster: &DynamicObject,
        uids: &BTreeSet<String>,
        connector: &dyn Connector,
    ) {
        let Some(uid) = cluster
            .annotations()
            .get(api::names::WORKLOAD_UID_ANNOTATION)
        else {
            return;
        };
        let key = ClusterKey::new(cluster.namespace().unwrap_or_default(), cluster.name_any());
        let mut workload = Workload {
            cluster: key.to_string(),
            inside: None,
        };
        if uids.contains(uid) {
            let asking = inside(client, &key, uid, connector);
            let answer = tokio::time::timeout(PATIENCE, asking).await;
            match answer.unwrap_or_else(|_| Err(anyhow::anyhow!("no answer within 20 s"))) {
                Ok(inside) => workload.inside = Some(inside),
                Err(error) => self.unasked.push(format!(
                    "what Services and claims of cluster {key} have is not judged: {error:#}"
                )),
            }
        }
        self.workloads.insert(uid.clone(), workload);
    }
}

/// Services, claims and snapshots in a workload cluster, after a check of its uid.
async fn inside(
    client: &Client,
    key: &ClusterKey,
    uid: &str,
    connector: &dyn Connector,
) -> anyhow::Result<(BTreeSet<String>, Claimed)> {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &key.namespace);
    let secret = secrets.get(&format!("{}-kubeconfig", key.name)).await;
    let secret = secret.context("cannot read its kubeconfig")?;
    let text = secret.data.unwrap_or_default().remove("value");
    let text = text.and_then(|it| String::from_utf8(it.0).ok());
    let text = SecretString::from(text.context("its kubeconfig is empty")?);
    let connected = connector.connect(key, &text).await;
    let workload = connected.map_err(anyhow::Error::msg)?;
    let claimed = Claimed::read(&workload).await?;
    anyhow::ensure!(claimed.cluster_uid == uid, "another cluster answers");
    let services = listed::all::<Service>(&workload).await?;
    let uids = services.iter().filter_map(|it| it.metadata.uid.clone());
    Ok((uids.collect(), claimed))
}
