//! Snapshots of volumes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Volumes;
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;

/// The snapshot of a group, of which a snapshot is part (Newton, 2016).
const OF_GROUP: &str = "3.14";

/// A snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Snapshot {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Free text.
    pub description: String,
    /// `creating`, `available`, `deleting`, `error`, ...
    pub status: String,
    /// Size of the volume in GiB, when it was taken.
    pub size: i64,
    /// The volume.
    pub volume_id: String,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
    /// The snapshot of a group that it is part of, if it is of one; since microversion 3.14.
    pub group_snapshot_id: String,
}

/// A new snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotCreate {
    /// Name.
    pub name: String,
    /// The volume.
    pub volume_id: String,
    /// Free text.
    pub description: String,
    /// Force: the snapshot is taken although a server has the volume.
    pub force: bool,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
}

impl Volumes {
    /// The project's snapshots.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn snapshots(&self) -> Result<Vec<Snapshot>> {
        let call = Call::list(Service::Volume, "/snapshots/detail", &[]).microversion(OF_GROUP);
        self.session.list(call, "snapshots").await
    }

    /// One snapshot.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn snapshot(&self, id: &str) -> Result<Snapshot> {
        let call = Call::get(Service::Volume, "/snapshots/{id}", &[id]);
        self.session.one(call, "snapshot").await
    }

    /// Creates a snapshot; it is `creating` when this returns.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_snapshot(&self, snapshot: &SnapshotCreate) -> Result<Snapshot> {
        let call = Call::post(Service::Volume, "/snapshots", &[]).body("snapshot", snapshot);
        self.session.one(call, "snapshot").await
    }

    /// Deletes a snapshot; it is `deleting` when this returns.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_snapshot(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::Volume, "/snapshots/{id}", &[id]);
        self.session.done(call).await
    }
}
