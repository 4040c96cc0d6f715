//! Writes to volumes, snapshots, backups and attachments.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inventory;
use crate::error::Result;
use crate::volume::{Backup, BackupCreate, Snapshot, SnapshotCreate, Volume, VolumeCreate};

impl Inventory {
    /// Creates a volume; the volume is `creating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_volume(&self, volume: &VolumeCreate) -> Result<Arc<Volume>> {
        Ok(self.fold(self.session().volume().create(volume).await?))
    }

    /// Deletes a volume. The inventory shows a pending deletion until a list no longer has the volume.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_volume(&self, id: &str) -> Result<()> {
        let deleted = self.session().volume().delete(id).await;
        self.deleting::<Volume>(id, deleted, |volume| {
            "deleting".clone_into(&mut volume.status)
        })
    }

    /// Extends a volume to a size in GiB; the volume is `extending` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn extend_volume(&self, id: &str, size: i64, attached: bool) -> Result<()> {
        self.session().volume().extend(id, size, attached).await?;
        self.volume_becomes(id, "extending");
        Ok(())
    }

    /// Gives a volume another type; the volume is `retyping` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn retype_volume(&self, id: &str, to: &str, moves: bool) -> Result<()> {
        self.session().volume().retype(id, to, moves).await?;
        self.volume_becomes(id, "retyping");
        Ok(())
    }

    /// Sets metadata of a volume, and leaves other keys as they are.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn set_volume_metadata(
        &self,
        id: &str,
        metadata: BTreeMap<String, String>,
    ) -> Result<()> {
        self.session().volume().set_metadata(id, &metadata).await?;
        self.fold_with::<Volume>(id, |volume| volume.metadata.extend(metadata));
        Ok(())
    }

    /// Attaches a volume to a server; the volume is `reserved` or `attaching` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn attach_volume(&self, server: &str, volume: &str) -> Result<()> {
        let compute = self.session().compute();
        compute.attach_volume(server, volume).await?;
        self.volume_becomes(volume, "attaching");
        Ok(())
    }

    /// Detaches a volume from a server; the volume is `detaching` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request; [`is_absent`](crate::Error::is_absent) if Nova does not know the
    /// server, or the volume on it.
    pub async fn detach_volume(&self, server: &str, volume: &str) -> Result<()> {
        let compute = self.session().compute();
        compute.detach_volume(server, volume).await?;
        self.volume_becomes(volume, "detaching");
        Ok(())
    }

    /// Deletes an attachment whose server is gone.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_attachment(&self, volume: &str, attachment: &str) -> Result<()> {
        let volumes = self.session().volume();
        let deleted = volumes.delete_attachment(attachment).await;
        deleted.or_else(|error| {
            if error.is_absent() {
                Ok(())
            } else {
                Err(error)
            }
        })?;
        self.volume_becomes(volume, "detaching");
        Ok(())
    }

    /// Creates a snapshot; the snapshot is `creating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_snapshot(&self, snapshot: &SnapshotCreate) -> Result<Arc<Snapshot>> {
        Ok(self.fold(self.session().volume().create_snapshot(snapshot).await?))
    }

    /// Deletes a snapshot. The inventory shows a pending deletion until a list no longer has the snapshot.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_snapshot(&self, id: &str) -> Result<()> {
        let deleted = self.session().volume().delete_snapshot(id).await;
        self.deleting::<Snapshot>(id, deleted, |snapshot| {
            "deleting".clone_into(&mut snapshot.status);
        })
    }

    /// Creates a backup; the backup is `creating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_backup(&self, backup: &BackupCreate) -> Result<Arc<Backup>> {
        Ok(self.fold(self.session().volume().create_backup(backup).await?))
    }

    /// Deletes a backup. The inventory shows a pending deletion until a list no longer has the backup.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_backup(&self, id: &str) -> Result<()> {
        let deleted = self.session().volume().delete_backup(id).await;
        self.deleting::<Backup>(id, deleted, |backup| {
            "deleting".clone_into(&mut backup.status)
        })
    }

    /// Sets the status of a volume after a write whose answer lacks the volume.
    fn volume_becomes(&self, id: &str, status: &str) {
        self.fold_with::<Volume>(id, |volume| status.clone_into(&mut volume.status));
    }
}
