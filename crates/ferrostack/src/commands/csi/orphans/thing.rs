//! Volumes, snapshots and backups alike.

use std::collections::BTreeMap;

use futures::future::try_join3;
use openstack::Error;
use openstack::session::Session;
use openstack::volume::{Backup, Snapshot, Volume};
use serde::Serialize;

/// Type of a resource, in the order of deletion: a volume with snapshots cannot be deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Form {
    Backup,
    Snapshot,
    Volume,
}

impl Form {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Backup => "backup",
            Self::Snapshot => "snapshot",
            Self::Volume => "volume",
        }
    }
}

/// A volume, a snapshot or a backup.
#[derive(Clone, Debug)]
pub(crate) struct Thing {
    /// Name of the cloud; empty for `[Global]`.
    pub(crate) cloud: String,
    pub(crate) form: Form,
    pub(crate) id: String,
    pub(crate) name: String,
    /// Size in GiB.
    pub(crate) size: i64,
    pub(crate) status: String,
    /// Time of the creation in UTC, as written by Cinder.
    pub(crate) created_at: String,
    pub(crate) metadata: BTreeMap<String, String>,
    /// Obstacles to the deletion, in words.
    pub(crate) used_by: Vec<String>,
}

impl Thing {
    pub(crate) fn of_volume(cloud: &str, volume: Volume) -> Self {
        let servers = volume.attachments.iter().map(|it| &it.server_id);
        Self {
            cloud: cloud.to_owned(),
            form: Form::Volume,
            used_by: servers.map(|id| format!("server {id} has it")).collect(),
            id: volume.id,
            name: volume.name,
            size: volume.size,
            status: volume.status,
            created_at: volume.created_at,
            metadata: volume.metadata,
        }
    }

    pub(crate) fn of_snapshot(cloud: &str, snapshot: Snapshot) -> Self {
        Self {
            cloud: cloud.to_owned(),
            form: Form::Snapshot,
            used_by: Vec::new(),
            id: snapshot.id,
            name: snapshot.name,
            size: snapshot.size,
            status: snapshot.status,
            created_at: snapshot.created_at,
            metadata: snapshot.metadata,
        }
    }

    pub(crate) fn of_backup(cloud: &str, backup: Backup) -> Self {
        let dependent = backup.has_dependent_backups;
        let dependent = dependent.then(|| "another backup continues it".to_owned());
        Self {
            cloud: cloud.to_owned(),
            form: Form::Backup,
            used_by: dependent.into_iter().collect(),
            id: backup.id,
            name: backup.name,
            size: backup.size,
            status: backup.status,
            created_at: backup.created_at,
            metadata: backup.metadata,
        }
    }

    /// Current state of the resource; `None` if gone.
    pub(crate) async fn again(&self, session: &Session) -> Result<Option<Self>, Error> {
        let (volumes, cloud, id) = (session.volume(), &self.cloud, &self.id);
        let read = match self.form {
            Form::Volume => volumes.get(id).await.map(|it| Self::of_volume(cloud, it)),
            Form::Snapshot => {
                let read = volumes.snapshot(id).await;
                read.map(|it| Self::of_snapshot(cloud, it))
            }
            Form::Backup => volumes
                .backup(id)
                .await
                .map(|it| Self::of_backup(cloud, it)),
        };
        match read {
            Ok(thing) => Ok(Some(thing)),
            Err(error) if error.is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Deletes the resource in Cinder. A missing one counts as deleted.
    pub(crate) async fn delete(&self, session: &Session) -> Result<(), Error> {
        let (volumes, id) = (session.volume(), &self.id);
        let deleted = match self.form {
            Form::Volume => volumes.delete(id).await,
            Form::Snapshot => volumes.delete_snapshot(id).await,
            Form::Backup => volumes.delete_backup(id).await,
        };
        deleted.or_else(|error| match error.is_absent() {
            true => Ok(()),
            false => Err(error),
        })
    }
}

/// All [`Thing`]s of the project in a cloud. Without a backup service there are no backups.
pub(crate) async fn all(cloud: &str, session: &Session) -> Result<Vec<Thing>, Error> {
    let volumes = session.volume();
    let backups = async {
        match volumes.backups().await {
            Err(error) if error.is_absent() => Ok(Vec::new()),
            listed => listed,
        }
    };
    let (volumes, snapshots, backups) =
        try_join3(volumes.list(), volumes.snapshots(), backups).await?;
    let backups = backups.into_iter().map(|it| Thing::of_backup(cloud, it));
    let mut all: Vec<Thing> = backups.collect();
    all.extend(
        snapshots
            .into_iter()
            .map(|it| Thing::of_snapshot(cloud, it)),
    );
    all.extend(volumes.into_iter().map(|it| Thing::of_volume(cloud, it)));
    Ok(all)
}
