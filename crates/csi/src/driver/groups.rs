//! Service [`GroupController`].

use std::time::Duration;

use csi_spec::group_controller_service_capability::rpc::Type;
use csi_spec::group_controller_service_capability::{Rpc, Type as Capability};
use csi_spec::{
    CreateVolumeGroupSnapshotRequest, CreateVolumeGroupSnapshotResponse,
    DeleteVolumeGroupSnapshotRequest, DeleteVolumeGroupSnapshotResponse,
    GetVolumeGroupSnapshotRequest, GetVolumeGroupSnapshotResponse, GroupController,
    GroupControllerGetCapabilitiesRequest, GroupControllerGetCapabilitiesResponse,
    GroupControllerServiceCapability, Reply,
};
use futures::FutureExt as _;
use grpc::{Context, Status};
use openstack::{Kind, View};

use super::Driver;
use crate::answers;
use crate::plan::{self, group_snapshot, group_unsnapshot};
use crate::refusal;
use crate::request::{NewGroupSnapshot, given};
use crate::round::{CHECKED, CREATION, Round};

/// Key of all calls about groups in [`Busy`](crate::busy::Busy): a volume is in at most one group, so such calls affect
/// each other.
const GROUPS: &str = "volume groups";

impl GroupController for Driver {
    fn group_controller_get_capabilities(
        &self,
        _: Context,
        _: GroupControllerGetCapabilitiesRequest,
    ) -> Reply<'_, GroupControllerGetCapabilitiesResponse> {
        let capability = Rpc {
            r#type: Type::CreateDeleteGetVolumeGroupSnapshot.into(),
        };
        let capabilities = vec![GroupControllerServiceCapability {
            r#type: Some(Capability::Rpc(capability)),
        }];
        let response = GroupControllerGetCapabilitiesResponse { capabilities };
        futures::future::ready(Ok(response)).boxed()
    }

    fn create_volume_group_snapshot(
        &self,
        context: Context,
        request: CreateVolumeGroupSnapshotRequest,
    ) -> Reply<'_, CreateVolumeGroupSnapshotResponse> {
        self.taking_together(context, request).boxed()
    }

    fn delete_volume_group_snapshot(
        &self,
        context: Context,
        request: DeleteVolumeGroupSnapshotRequest,
    ) -> Reply<'_, DeleteVolumeGroupSnapshotResponse> {
        self.untaking_together(context, request).boxed()
    }

    fn get_volume_group_snapshot(
        &self,
        _: Context,
        request: GetVolumeGroupSnapshotRequest,
    ) -> Reply<'_, GetVolumeGroupSnapshotResponse> {
        self.getting_together(request).boxed()
    }
}

impl Driver {
    async fn taking_together(
        &self,
        context: Context,
        request: CreateVolumeGroupSnapshotRequest,
    ) -> Result<CreateVolumeGroupSnapshotResponse, Status> {
        let wanted = NewGroupSnapshot::read(&request)?;
        let guard = self.busy.begin(GROUPS.to_owned(), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CREATION);
        let kinds = [
            Kind::Volumes,
            Kind::VolumeGroups,
            Kind::GroupSnapshots,
            Kind::Snapshots,
            Kind::GroupTypes,
            Kind::VolumeTypes,
        ];
        let plan = |view: &View, past: &plan::Past| {
            group_snapshot::plan(&wanted, &self.options, view, past)
        };
        let (taken, _) = round.run(&kinds, plan).await?;
        Ok(CreateVolumeGroupSnapshotResponse {
            group_snapshot: Some(answers::group_snapshot(&taken)),
        })
    }

    async fn untaking_together(
        &self,
        context: Context,
        request: DeleteVolumeGroupSnapshotRequest,
    ) -> Result<DeleteVolumeGroupSnapshotResponse, Status> {
        let id = given(&request.group_snapshot_id, "group_snapshot_id")?;
        let guard = self.busy.begin(GROUPS.to_owned(), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CHECKED);
        let kinds = [Kind::VolumeGroups, Kind::GroupSnapshots, Kind::Snapshots];
        let parts = &request.snapshot_ids;
        let plan = |view: &View, past: &plan::Past| {
            group_unsnapshot::plan(&id, parts, &self.options, view, past)
        };
        round.run(&kinds, plan).await?;
        Ok(DeleteVolumeGroupSnapshotResponse {})
    }

    async fn getting_together(
        &self,
        request: GetVolumeGroupSnapshotRequest,
    ) -> Result<GetVolumeGroupSnapshotResponse, Status> {
        let id = given(&request.group_snapshot_id, "group_snapshot_id")?;
        let cloud = self.cloud(&request.secrets).await?;
        let kinds = [Kind::GroupSnapshots, Kind::Snapshots];
        let view = cloud.inventory.view(&kinds, Duration::ZERO).await;
        let view = view.map_err(|error| refusal::of_read(&error))?;
        let found = group_snapshot::get(&id, &request.snapshot_ids, &view)?;
        Ok(GetVolumeGroupSnapshotResponse {
            group_snapshot: Some(answers::group_snapshot(&found)),
        })
    }
}
