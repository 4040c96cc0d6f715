//! Alpha part of the specification, behind `--alpha`: GetSnapshot and the health of volumes.

use std::time::Duration;

use csi_spec::{
    ControllerGetVolumeHealthRequest, ControllerGetVolumeHealthResponse,
    ControllerListVolumeHealthRequest, ControllerListVolumeHealthResponse, GetSnapshotRequest,
    GetSnapshotResponse, VolumeHealth,
};
use futures::stream::{self, StreamExt as _};
use grpc::{Code, Method, Status};
use openstack::volume::Volume;
use openstack::{Kind, View};

use super::Driver;
use crate::plan::{line, snapshot};
use crate::request::given;
use crate::{answers, health, listing, refusal};

/// Lists needed for the health of volumes.
const KINDS: &[Kind] = &[Kind::Volumes, Kind::Servers];
/// Maximum age of a list for the answer to a list.
const RECENT: Duration = Duration::from_secs(60);
/// Maximum number of concurrent requests for messages of Cinder.
const AT_ONCE: usize = 8;

impl Driver {
    /// UNIMPLEMENTED, unless `--alpha` is set.
    fn alpha<M: Method>(&self) -> Result<(), Status> {
        match self.options.alpha {
            true => Ok(()),
            false => Err(grpc::unimplemented(M::PATH)),
        }
    }

    pub(super) async fn getting_snapshot(
        &self,
        request: GetSnapshotRequest,
    ) -> Result<GetSnapshotResponse, Status> {
        self.alpha::<GetSnapshotRequest>()?;
        let id = given(&request.snapshot_id, "snapshot_id")?;
        let cloud = self.cloud(&request.secrets).await?;
        let kinds = [Kind::Snapshots, Kind::Backups];
        let view = cloud.inventory.view(&kinds, Duration::ZERO).await;
        let view = view.map_err(|error| refusal::of_read(&error))?;
        let found = view.snapshots.get(&id);
        let taken = match (found, view.backups.get(&id)) {
            (Some(it), _) => snapshot::of_snapshot(it, it.status == "available"),
            (None, Some(it)) => snapshot::of_backup(it, it.status == "available"),
            (None, None) => {
                let message = format!("snapshot {} does not exist", id.escape_debug());
                return Err(Status::new(Code::NotFound, message));
            }
        };
        Ok(GetSnapshotResponse {
            snapshot: Some(answers::snapshot(&taken)),
        })
    }

    pub(super) async fn getting_health(
        &self,
        request: ControllerGetVolumeHealthRequest,
    ) -> Result<ControllerGetVolumeHealthResponse, Status> {
        self.alpha::<ControllerGetVolumeHealthRequest>()?;
        let id = given(&request.volume_id, "volume_id")?;
        let cloud = self.cloud(&request.secrets).await?;
        let view = cloud.inventory.view(KINDS, Duration::ZERO).await;
        let view = view.map_err(|error| refusal::of_read(&error))?;
        let volume = view.volumes.get(&id).ok_or_else(|| {
            let message = format!("volume {} does not exist", id.escape_debug());
            Status::new(Code::NotFound, message)
        })?;
        let health = explained(&cloud, volume, &view).await;
        Ok(ControllerGetVolumeHealthResponse {
            volume_health: Some(health),
        })
    }

    pub(super) async fn listing_health(
        &self,
        request: ControllerListVolumeHealthRequest,
    ) -> Result<ControllerListVolumeHealthResponse, Status> {
        self.alpha::<ControllerListVolumeHealthRequest>()?;
        let cloud = self.cloud(&request.secrets).await?;
        let view = cloud.inventory.view(KINDS, RECENT).await;
        let view = view.map_err(|error| refusal::of_read(&error))?;
        let ill = view
            .volumes
            .iter()
            .filter(|it| !health::of(it, &view).is_empty());
        let items = ill.map(|it| (listing::key("", &it.id), it));
        let (page, next_token) = listing::page(
            items.collect(),
            request.max_entries,
            &request.starting_token,
        )?;
        let asked: Vec<_> = page
            .into_iter()
            .map(|volume| explained(&cloud, volume, &view))
            .collect();
        let entries = stream::iter(asked).buffered(AT_ONCE);
        Ok(ControllerListVolumeHealthResponse {
            entries: entries.collect().await,
            next_token,
        })
    }
}

/// Health of a [`Volume`]. For a volume in an error status, with Cinder's newest message.
async fn explained(cloud: &openstack::Cloud, volume: &Volume, view: &View) -> VolumeHealth {
    let mut entries = health::of(volume, view);
    if health::is_in_error(volume)
        && let Some(entry) = entries.first_mut()
        && let Ok(messages) = cloud
            .inventory
            .session()
            .volume()
            .messages(&volume.id)
            .await
        && let Some(newest) = messages.into_iter().next()
    {
        entry.message = line(format!("{}: {}", entry.message, newest.user_message));
    }
    VolumeHealth {
        volume_id: volume.id.clone(),
        health_statuses: entries,
    }
}
