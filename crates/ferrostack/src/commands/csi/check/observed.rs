//! Observed state: cloud.conf, the clouds, the cluster.

use std::collections::BTreeMap;

use anyhow::Context;
use cloud_conf::BlockStorage;
use csi::NamedCloud;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{Node, PersistentVolume, PersistentVolumeClaim, Secret};
use k8s_openapi::api::storage::v1::{CSIDriver, StorageClass, VolumeAttachment};
use kube::Client;
use kube::api::DynamicObject;
use openstack::compute::{AvailabilityZone, ServerQuery};
use openstack::session::{Session, SessionOptions};
use openstack::volume::{Backup, GroupType, Volume, VolumeLimits, VolumeQuota, VolumeType};
use operator::client::Api;

use super::super::listed;
use super::rules;

/// List of a cloud, or the reason why there is none.
pub(super) type Read<T> = openstack::Result<T>;

/// Input of the judgement.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// Errors in cloud.conf.
    pub(super) conf: Vec<cloud_conf::Finding>,
    /// `[BlockStorage]`.
    pub(super) storage: BlockStorage,
    /// `--with-topology`.
    pub(super) topology: bool,
    /// [`Cloud`]s by name, which is empty for `[Global]`. None if cloud.conf cannot be used.
    pub(super) clouds: BTreeMap<String, Read<Cloud>>,
    pub(super) cluster: Cluster,
}

/// Storage of a cloud.
#[derive(Debug)]
pub(super) struct Cloud {
    pub(super) nova_zones: Read<Vec<AvailabilityZone>>,
    pub(super) cinder_zones: Read<Vec<AvailabilityZone>>,
    pub(super) types: Read<Vec<VolumeType>>,
    pub(super) limits: Read<VolumeLimits>,
    /// Quotas of snapshots, and of each type of volumes.
    pub(super) quotas: Read<BTreeMap<String, VolumeQuota>>,
    pub(super) volumes: Read<Vec<Volume>>,
    /// Ids of the servers of the project.
    pub(super) servers: Read<Vec<String>>,
    pub(super) backups: Read<Vec<Backup>>,
    pub(super) group_types: Read<Vec<GroupType>>,
}

/// Storage objects of the cluster.
#[derive(Debug, Default)]
pub(super) struct Cluster {
    pub(super) driver: Option<CSIDriver>,
    pub(super) classes: Vec<StorageClass>,
    pub(super) snapshot_classes: Vec<DynamicObject>,
    pub(super) attributes_classes: Vec<DynamicObject>,
    pub(super) group_snapshot_classes: Vec<DynamicObject>,
    pub(super) volumes: Vec<PersistentVolume>,
    pub(super) claims: Vec<PersistentVolumeClaim>,
    pub(super) attachments: Vec<VolumeAttachment>,
    pub(super) nodes: Vec<Node>,
    /// Secrets named in classes, by namespace and name.
    pub(super) secrets: BTreeMap<(String, String), Named>,
}

/// Secret of a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Absent,
    /// No permission to read; the reason.
    Hidden(String),
    /// Key `cloud`; other keys are not kept.
    Found(Option<String>),
}

/// Reads the clouds, all at once.
pub(super) async fn clouds(
    clouds: &[NamedCloud],
    options: &SessionOptions,
) -> BTreeMap<String, Read<Cloud>> {
    let read = clouds.iter().map(|cloud| async move {
        let session = Session::connect(cloud.config.clone(), options).await;
        let seen = match session {
            Ok(session) => Ok(Cloud::read(&session).await),
            Err(error) => Err(error),
        };
        (cloud.name.clone(), seen)
    });
    join_all(read).await.into_iter().collect()
}

impl Cloud {
    async fn read(session: &Session) -> Self {
        let (compute, volume) = (session.compute(), session.volume());
        let query = ServerQuery::default();
        let (nova_zones, servers, cinder_zones, types) = futures::join!(
            compute.availability_zones(),
            compute.servers(&query),
            volume.availability_zones(),
            volume.types(),
        );
        let quotas = async { volume.quotas(&session.project_id().await?).await };
        let (limits, quotas, volumes, backups, group_types) = futures::join!(
            volume.limits(),
            quotas,
            volume.list(),
            volume.backups(),
            volume.group_types(),
        );
        let alive = servers.map(|servers| {
            let alive = servers.into_iter().filter(|server| !server.is_gone());
            alive.map(|server| server.id).collect()
        });
        let cinder_zones = cinder_zones.map(|zones| zones.into_iter().map(|zone| zone.0).collect());
        Self {
            nova_zones,
            cinder_zones,
            types,
            limits,
            quotas,
            volumes,
            servers: alive,
            backups,
            group_types,
        }
    }
}

impl Cluster {
    pub(super) async fn read(client: &Client) -> anyhow::Result<Self> {
        let drivers: Api<CSIDriver> = Api::all(client.clone());
        let name = csi_spec::driver::NAME;
        let driver = drivers.get_opt(name).await;
        let mut cluster = Self {
            driver: driver.with_context(|| format!("cannot read the CSIDriver {name}"))?,
            classes: listed::all(client).await?,
            snapshot_classes: listed::of_crd(
                client,
                "snapshot.storage.k8s.io",
                &["v1"],
                "VolumeSnapshotClass",
            )
            .await?,
            // Not every version of Kubernetes has it.
            attributes_classes: listed::of_crd(
                client,
                "storage.k8s.io",
                &["v1", "v1beta1"],
                "VolumeAttributesClass",
            )
            .await?,
            group_snapshot_classes: listed::of_crd(
                client,
                "groupsnapshot.storage.k8s.io",
                &["v1", "v1beta2", "v1beta1"],
                "VolumeGroupSnapshotClass",
            )
            .await?,
            volumes: listed::all(client).await?,
            claims: listed::all(client).await?,
            attachments: listed::all(client).await?,
            nodes: listed::all(client).await?,
            secrets: BTreeMap::new(),
        };
        for (namespace, name) in rules::secrets(&cluster) {
            let found = named(client, &namespace, &name).await;
            cluster.secrets.insert((namespace, name), found);
        }
        Ok(cluster)
    }
}

/// The Secret of a name.
async fn named(client: &Client, namespace: &str, name: &str) -> Named {
    let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
    match secrets.get_opt(name).await {
        Ok(None) => Named::Absent,
        Ok(Some(secret)) => {
            let data = secret.data.unwrap_or_default();
            let cloud = data.get("cloud").map(|it| String::from_utf8_lossy(&it.0));
            Named::Found(cloud.map(|it| it.into_owned()))
        }
        Err(error) => Named::Hidden(error.to_string()),
    }
}
