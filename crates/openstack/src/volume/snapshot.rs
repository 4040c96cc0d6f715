//! Snapshots of volumes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Volumes;
use crate::call::Call;
use crate::error::Result;
use crate::service::Service;

/// Group snapshot of a snapshot (Newton, 2016).
const OF_GROUP: &str = "3.14";

/// Snapshot.
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
    /// Size of the volume in GiB at the time of the snapshot.
    pub size: i64,
    /// Volume.
    pub volume_id: String,
    /// Time of creation, RFC 3339 without a zone.
    pub created_at: String,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
    /// Group snapshot that this snapshot is part of, since microversion 3.14; empty for none.
    pub group_snapshot_id: String,
}

/// New snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SnapshotCreate {
    /// Name.
    pub name: String,
    /// Volume.
    pub volume_id: String,
    /// Free text.
    pub description: String,
    /// Force: take the snapshot of a volume that is attached to a server.
    pub force: bool,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
}

impl Volumes {
    /// Returns the project's snapshots.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn snapshots(&self) -> Result<Vec<Snapshot>> {
        let call = Call::list(Service::Volume, "/snapshots/detail", &[]).microversion(OF_GROUP);
        self.session.list(call, "snapshots").await
    }

    /// Returns one snapshot.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn snapshot(&self, id: &str) -> Result<Snapshot> {
        let call = Call::get(Service::Volume, "/snapshots/{id}", &[id]);
        self.session.one(call, "snapshot").await
    }

    /// Creates a snapshot; the snapshot is `creating` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn create_snapshot(&self, snapshot: &SnapshotCreate) -> Result<Snapshot> {
        let call = Call::post(Service::Volume, "/snapshots", &[]).body("snapshot", snapshot);
        self.session.one(call, "snapshot").await
    }

    /// Deletes a snapshot; the snapshot is `deleting` on return.
    ///
    /// # Errors
    /// The [`Error`](crate::Error) of the request.
    pub async fn delete_snapshot(&self, id: &str) -> Result<()> {
        let call = Call::delete(Service::Volume, "/snapshots/{id}", &[id]);
        self.session.done(call).await
    }
}
