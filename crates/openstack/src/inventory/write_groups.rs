//! Writes to groups of volumes and their snapshots, and to groups of servers.

use std::sync::Arc;

use super::{Inventory, Kind};
use crate::compute::ServerGroup;
use crate::error::Result;
use crate::volume::{GroupSnapshot, GroupSnapshotCreate, VolumeGroup, VolumeGroupCreate};

impl Inventory {
    /// Creates a group of volumes; the group is `creating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_volume_group(&self, group: &VolumeGroupCreate) -> Result<Arc<VolumeGroup>> {
        Ok(self.fold(self.session().volume().create_group(group).await?))
    }

    /// Adds volumes to a group, and removes others; the group is `updating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn change_volume_group(
        &self,
        id: &str,
        add: &[String],
        remove: &[String],
    ) -> Result<()> {
        let volumes = self.session().volume();
        volumes.change_group(id, add, remove).await?;
        self.fold_with::<VolumeGroup>(id, |group| "updating".clone_into(&mut group.status));
        Ok(())
    }

    /// Deletes a group without volumes. The inventory shows a pending deletion until a list no longer has the group.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_volume_group(&self, id: &str) -> Result<()> {
        let deleted = self.session().volume().delete_group(id).await;
        self.deleting::<VolumeGroup>(id, deleted, |group| {
            "deleting".clone_into(&mut group.status);
        })
    }

    /// Takes a snapshot of each volume of a group; the group snapshot is `creating` on return. The snapshots of the
    /// volumes are known from the next list on.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_group_snapshot(
        &self,
        snapshot: &GroupSnapshotCreate,
    ) -> Result<Arc<GroupSnapshot>> {
        let volumes = self.session().volume();
        let created = volumes.create_group_snapshot(snapshot).await?;
        self.stale(Kind::Snapshots);
        Ok(self.fold(created))
    }

    /// Deletes a group snapshot with its snapshots. The inventory shows a pending deletion until a list no longer has
    /// the group snapshot.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_group_snapshot(&self, id: &str) -> Result<()> {
        let deleted = self.session().volume().delete_group_snapshot(id).await;
        self.stale(Kind::Snapshots);
        self.deleting::<GroupSnapshot>(id, deleted, |snapshot| {
            "deleting".clone_into(&mut snapshot.status);
        })
    }

    /// Creates a server group.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_server_group(&self, name: &str, policy: &str) -> Result<Arc<ServerGroup>> {
        let compute = self.session().compute();
        Ok(self.fold(compute.create_server_group(name, policy).await?))
    }

    /// Deletes a server group; its servers stay.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_server_group(&self, id: &str) -> Result<()> {
        let deleted = self.session().compute().delete_server_group(id).await;
        self.deleted::<ServerGroup>(id, deleted)
    }
}
