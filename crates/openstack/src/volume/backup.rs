//! Backups of volumes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Volumes;
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;

/// Metadata of backups (Pike, 2017).
const METADATA: &str = "3.43";
/// Zone for a backup (Pike, 2017).
const ZONE: &str = "3.51";

/// Backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Backup {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `creating`, `available`, `restoring`, `deleting`, `error`, ...
    pub status: String,
    /// Size of the volume in GiB at the time of the backup.
    pub size: i64,
    /// Volume.
    pub volume_id: String,
    /// Snapshot that was backed up; empty for a backup of the volume itself.
    pub snapshot_id: String,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
    /// Reason for a failure.
    pub fail_reason: String,
    /// True if incremental backups depend on the backup.
    pub has_dependent_backups: bool,
    /// Free key-value pairs, since microversion 3.43.
    pub metadata: BTreeMap<String, String>,
}

/// New backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BackupCreate {
    /// Name.
    pub name: String,
    /// Volume.
    pub volume_id: String,
    /// Snapshot to back up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_id: Option<String>,
    /// Free text.
    pub description: String,
    /// Force: take the backup of a volume that is attached to a server.
    pub force: bool,
    /// Availability zone of the backup service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
}

impl Volumes {
    /// Returns the project's backups.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn backups(&self) -> Result<Vec<Backup>> {
        let call = Call::list(Service::Volume, "/backups/detail", &[]).microversion(METADATA);
        self.session.list(call, "backups").await
    }

    /// Returns one backup.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn backup(&self, id: &str) -> Result<Backup> {
        let call = Call::get(Service::Volume, "/backups/{id}", &[id]).microversion(METADATA);
        self.session.one(call, "backup").await
    }

    /// Creates a backup; the backup is `creating` on return. Cinder answers id and name alone; the size is unknown.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_backup(&self, backup: &BackupCreate) -> Result<Backup> {
        let version = match backup.availability_zone {
            Some(_) => ZONE,
            None => METADATA,
        };
        let call = Call::post(Service::Volume, "/backups", &[])
            .microversion(version)
            .body("backup", backup);
        let created: Backup = self.session.one(call, "backup").await?;
        Ok(Backup {
            id: created.id,
            name: backup.name.clone(),
            description: backup.description.clone(),
            status: "creating".to_owned(),
            volume_id: backup.volume_id.clone(),
            snapshot_id: backup.snapshot_id.clone().unwrap_or_default(),
            metadata: backup.metadata.clone(),
            ..Backup::default()
        })
    }

    /// Deletes a backup; the backup is `deleting` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_backup(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::Volume, "/backups/{id}", &[id]);
        self.session.done(call).await
    }
}
