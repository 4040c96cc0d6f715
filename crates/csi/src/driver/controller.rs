//! Service [`Controller`].

use std::sync::Arc;
use std::time::Duration;

use csi_spec::controller_service_capability::rpc::Type;
use csi_spec::controller_service_capability::{Rpc, Type as Capability};
use csi_spec::list_snapshots_response::Entry as SnapshotEntry;
use csi_spec::validate_volume_capabilities_response::Confirmed;
use csi_spec::{
    Controller, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse,
    ControllerGetCapabilitiesRequest, ControllerGetCapabilitiesResponse,
    ControllerGetVolumeHealthRequest, ControllerGetVolumeHealthResponse,
    ControllerGetVolumeRequest, ControllerGetVolumeResponse, ControllerListVolumeHealthRequest,
    ControllerListVolumeHealthResponse, ControllerModifyVolumeRequest,
    ControllerModifyVolumeResponse, ControllerPublishVolumeRequest,
    ControllerPublishVolumeResponse, ControllerServiceCapability, ControllerUnpublishVolumeRequest,
    ControllerUnpublishVolumeResponse, CreateSnapshotRequest, CreateSnapshotResponse,
    CreateVolumeRequest, CreateVolumeResponse, DeleteSnapshotRequest, DeleteSnapshotResponse,
    DeleteVolumeRequest, DeleteVolumeResponse, GetCapacityRequest, GetCapacityResponse,
    GetSnapshotRequest, GetSnapshotResponse, ListSnapshotsRequest, ListSnapshotsResponse,
    ListVolumesRequest, ListVolumesResponse, Reply, ValidateVolumeCapabilitiesRequest,
    ValidateVolumeCapabilitiesResponse, context, controller_get_volume_response::VolumeStatus,
};
use futures::FutureExt as _;
use grpc::{Code, Context, Status};
use openstack::{Cloud, ErrorKind, Kind, View};

use super::Driver;
use crate::answers;
use crate::attributes::Attributes;
use crate::capacity::{Room, Wanted};
use crate::hints::Hints;
use crate::listing;
use crate::plan::{self, snapshot};
use crate::refusal::{self, invalid};
use crate::request::{self, Class, Form, NewSnapshot, NewVolume, given};
use crate::round::{CHECKED, CREATION, Round};
use crate::size::{self, Range};

/// Maximum age of a list for the answer to a list.
const RECENT: Duration = Duration::from_secs(60);
/// The same for volumes. The attacher lists all volumes each minute in search of attachments that somebody else has
/// ended; writes of this driver are in a list at once.
const RECENT_VOLUMES: Duration = Duration::from_secs(300);
/// Capabilities of the controller.
const CAPABILITIES: &[Type] = &[
    Type::CreateDeleteVolume,
    Type::PublishUnpublishVolume,
    Type::ListVolumes,
    Type::ListVolumesPublishedNodes,
    Type::GetVolume,
    Type::CreateDeleteSnapshot,
    Type::ListSnapshots,
    Type::ExpandVolume,
    Type::CloneVolume,
    Type::GetCapacity,
    Type::SingleNodeMultiWriter,
    Type::ModifyVolume,
];
/// Further capabilities with `--alpha`.
const ALPHA: &[Type] = &[
    Type::GetSnapshot,
    Type::GetVolumeHealth,
    Type::ListVolumeHealth,
];

impl Controller for Driver {
    fn create_volume(
        &self,
        context: Context,
        request: CreateVolumeRequest,
    ) -> Reply<'_, CreateVolumeResponse> {
        self.creating(context, request).boxed()
    }

    fn delete_volume(
        &self,
        context: Context,
        request: DeleteVolumeRequest,
    ) -> Reply<'_, DeleteVolumeResponse> {
        self.deleting(context, request).boxed()
    }

    fn controller_publish_volume(
        &self,
        context: Context,
        request: ControllerPublishVolumeRequest,
    ) -> Reply<'_, ControllerPublishVolumeResponse> {
        self.attaching(context, request).boxed()
    }

    fn controller_unpublish_volume(
        &self,
        context: Context,
        request: ControllerUnpublishVolumeRequest,
    ) -> Reply<'_, ControllerUnpublishVolumeResponse> {
        self.detaching(context, request).boxed()
    }

    fn validate_volume_capabilities(
        &self,
        _: Context,
        request: ValidateVolumeCapabilitiesRequest,
    ) -> Reply<'_, ValidateVolumeCapabilitiesResponse> {
        self.validating(request).boxed()
    }

    fn list_volumes(
        &self,
        _: Context,
        request: ListVolumesRequest,
    ) -> Reply<'_, ListVolumesResponse> {
        self.listing(request).boxed()
    }

    fn controller_get_volume(
        &self,
        _: Context,
        request: ControllerGetVolumeRequest,
    ) -> Reply<'_, ControllerGetVolumeResponse> {
        self.getting(request).boxed()
    }

    fn get_capacity(
        &self,
        _: Context,
        request: GetCapacityRequest,
    ) -> Reply<'_, GetCapacityResponse> {
        self.capacity(request).boxed()
    }

    fn controller_get_capabilities(
        &self,
        _: Context,
        _: ControllerGetCapabilitiesRequest,
    ) -> Reply<'_, ControllerGetCapabilitiesResponse> {
        let capability = |it: &Type| ControllerServiceCapability {
            r#type: Some(Capability::Rpc(Rpc { r#type: *it as i32 })),
        };
        let alpha = ALPHA.iter().filter(|_| self.options.alpha);
        let capabilities = CAPABILITIES.iter().chain(alpha).map(capability).collect();
        let response = ControllerGetCapabilitiesResponse { capabilities };
        futures::future::ready(Ok(response)).boxed()
    }

    fn create_snapshot(
        &self,
        context: Context,
        request: CreateSnapshotRequest,
    ) -> Reply<'_, CreateSnapshotResponse> {
        self.taking(context, request).boxed()
    }

    fn delete_snapshot(
        &self,
        context: Context,
        request: DeleteSnapshotRequest,
    ) -> Reply<'_, DeleteSnapshotResponse> {
        self.untaking(context, request).boxed()
    }

    fn list_snapshots(
        &self,
        _: Context,
        request: ListSnapshotsRequest,
    ) -> Reply<'_, ListSnapshotsResponse> {
        self.listing_snapshots(request).boxed()
    }

    fn controller_expand_volume(
        &self,
        context: Context,
        request: ControllerExpandVolumeRequest,
    ) -> Reply<'_, ControllerExpandVolumeResponse> {
        self.expanding(context, request).boxed()
    }

    fn controller_modify_volume(
        &self,
        context: Context,
        request: ControllerModifyVolumeRequest,
    ) -> Reply<'_, ControllerModifyVolumeResponse> {
        self.modifying(context, request).boxed()
    }

    fn get_snapshot(
        &self,
        _: Context,
        request: GetSnapshotRequest,
    ) -> Reply<'_, GetSnapshotResponse> {
        self.getting_snapshot(request).boxed()
    }

    fn controller_get_volume_health(
        &self,
        _: Context,
        request: ControllerGetVolumeHealthRequest,
    ) -> Reply<'_, ControllerGetVolumeHealthResponse> {
        self.getting_health(request).boxed()
    }

    fn controller_list_volume_health(
        &self,
        _: Context,
        request: ControllerListVolumeHealthRequest,
    ) -> Reply<'_, ControllerListVolumeHealthResponse> {
        self.listing_health(request).boxed()
    }
}

impl Driver {
    async fn creating(
        &self,
        context: Context,
        request: CreateVolumeRequest,
    ) -> Result<CreateVolumeResponse, Status> {
        let mut wanted = NewVolume::read(&request, &self.options)?;
        self.options.sign(&mut wanted.metadata);
        let guard = self
            .busy
            .begin(format!("volume {}", wanted.name), context)
            .await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CREATION);
        if let Some(claims) = &self.options.claims {
            let hints = Hints::read(&**claims, &request.parameters);
            wanted.hints = round.in_time(hints).await?;
        }
        let plan =
            |view: &View, past: &plan::Past| plan::create::plan(&wanted, &self.options, view, past);
        let kinds: &[Kind] = match wanted.uses.several_nodes {
            true => &[Kind::Volumes, Kind::VolumeTypes],
            false => &[Kind::Volumes],
        };
        let (id, view) = round.run(kinds, plan).await?;
        let volume = found(view.volumes.get(&id), &id)?;
        let source = request.volume_content_source;
        let answer = plan::create::answer(volume, &wanted, source, &self.options, &view);
        Ok(CreateVolumeResponse {
            volume: Some(answer),
        })
    }

    async fn deleting(
        &self,
        context: Context,
        request: DeleteVolumeRequest,
    ) -> Result<DeleteVolumeResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let guard = self.busy.begin(format!("volume {id}"), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CHECKED);
        let plan =
            |view: &View, past: &plan::Past| plan::delete::plan(&id, &self.options, view, past);
        round.run(&[Kind::Volumes], plan).await?;
        Ok(DeleteVolumeResponse {})
    }

    async fn attaching(
        &self,
        call: Context,
        request: ControllerPublishVolumeRequest,
    ) -> Result<ControllerPublishVolumeResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let node = given(&request.node_id, "node_id")?;
        let Some(capability) = &request.volume_capability else {
            return invalid("volume_capability is missing");
        };
        let uses = request::safe_use(capability)?;
        let format = request.volume_context.get(context::FORMAT);
        let wanted = plan::attach::Wanted {
            volume: id,
            node,
            uses,
            notes_first: format.is_some_and(|it| it == "first-attach"),
        };
        let guard = self
            .busy
            .begin(format!("volume {}", wanted.volume), call)
            .await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, call, guard, CHECKED);
        let plan = |view: &View, past: &plan::Past| plan::attach::plan(&wanted, view, past);
        let (attached, view) = round.run(&[Kind::Volumes], plan).await?;
        let volume = found(view.volumes.get(&wanted.volume), &wanted.volume)?;
        Ok(ControllerPublishVolumeResponse {
            publish_context: answers::publish_context(volume, &attached),
        })
    }

    async fn detaching(
        &self,
        context: Context,
        request: ControllerUnpublishVolumeRequest,
    ) -> Result<ControllerUnpublishVolumeResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let node = request.node_id;
        let guard = self.busy.begin(format!("volume {id}"), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CHECKED);
        let plan = |view: &View, past: &plan::Past| plan::detach::plan(&id, &node, view, past);
        round.run(&[Kind::Volumes], plan).await?;
        Ok(ControllerUnpublishVolumeResponse {})
    }

    async fn expanding(
        &self,
        context: Context,
        request: ControllerExpandVolumeRequest,
    ) -> Result<ControllerExpandVolumeResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let Some(range) = &request.capacity_range else {
            return invalid("capacity_range is missing");
        };
        let range = Range::read(Some(range))?;
        let block = match &request.volume_capability {
            Some(capability) => request::one_use(capability)?.block,
            None => false,
        };
        let guard = self.busy.begin(format!("volume {id}"), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CHECKED);
        let plan = |view: &View, _: &plan::Past| plan::expand::plan(&id, range, view);
        let (size, _) = round.run(&[Kind::Volumes], plan).await?;
        Ok(ControllerExpandVolumeResponse {
            capacity_bytes: size::bytes(size),
            node_expansion_required: !block,
        })
    }

    async fn modifying(
        &self,
        context: Context,
        request: ControllerModifyVolumeRequest,
    ) -> Result<ControllerModifyVolumeResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let wanted = Attributes::read(&request.mutable_parameters)?;
        let guard = self.busy.begin(format!("volume {id}"), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CHECKED);
        let plan = |view: &View, past: &plan::Past| {
            plan::modify::plan(&id, &wanted, &self.options, view, past)
        };
        let kinds: &[Kind] = match wanted.volume_type {
            Some(_) => &[Kind::Volumes, Kind::VolumeTypes],
            None => &[Kind::Volumes],
        };
        round.run(kinds, plan).await?;
        Ok(ControllerModifyVolumeResponse {})
    }

    async fn taking(
        &self,
        context: Context,
        request: CreateSnapshotRequest,
    ) -> Result<CreateSnapshotResponse, Status> {
        let mut wanted = NewSnapshot::read(&request, &self.options)?;
        self.options.sign(&mut wanted.metadata);
        let guard = self
            .busy
            .begin(format!("snapshot {}", wanted.name), context)
            .await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CREATION);
        let kinds: &[Kind] = match wanted.form {
            Form::Snapshot => &[Kind::Volumes, Kind::Snapshots],
            Form::Backup => &[Kind::Volumes, Kind::Snapshots, Kind::Backups],
        };
        let plan =
            |view: &View, past: &plan::Past| snapshot::plan(&wanted, &self.options, view, past);
        let (taken, _) = round.run(kinds, plan).await?;
        Ok(CreateSnapshotResponse {
            snapshot: Some(answers::snapshot(&taken)),
        })
    }

    async fn untaking(
        &self,
        context: Context,
        request: DeleteSnapshotRequest,
    ) -> Result<DeleteSnapshotResponse, Status> {
        let id = given(&request.snapshot_id, "snapshot_id")?;
        let guard = self.busy.begin(format!("snapshot {id}"), context).await?;
        let cloud = self.cloud(&request.secrets).await?;
        let round = Round::new(cloud.inventory, context, guard, CHECKED);
        let plan = |view: &View, past: &plan::Past| plan::unsnapshot::plan(&id, view, past);
        round.run(&[Kind::Snapshots], plan).await?;
        Ok(DeleteSnapshotResponse {})
    }

    async fn validating(
        &self,
        request: ValidateVolumeCapabilitiesRequest,
    ) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let uses = request::uses(&request.volume_capabilities)?;
        let read = Attributes::read(&request.mutable_parameters);
        if let Err(refusal) = read.and(Class::read(&request.parameters)) {
            return Ok(ValidateVolumeCapabilitiesResponse {
                confirmed: None,
                message: refusal.message,
            });
        }
        if let Some(words) = uses.contradiction() {
            return Ok(ValidateVolumeCapabilitiesResponse {
                confirmed: None,
                message: words.to_owned(),
            });
        }
        let cloud = self.cloud(&request.secrets).await?;
        let view = cloud.inventory.view(&[Kind::Volumes], Duration::ZERO).await;
        let view = view.map_err(|error| refusal::of_read(&error))?;
        let volume = found(view.volumes.get(&id), &id)?;
        if uses.several_nodes && !volume.multiattach {
            let message = format!(
                "volume {id} is of a type without multiattach: one node at a time can have it"
            );
            return Ok(ValidateVolumeCapabilitiesResponse {
                confirmed: None,
                message,
            });
        }
        Ok(ValidateVolumeCapabilitiesResponse {
            confirmed: Some(Confirmed {
                volume_context: request.volume_context,
                volume_capabilities: request.volume_capabilities,
                parameters: request.parameters,
                mutable_parameters: request.mutable_parameters,
            }),
            message: String::new(),
        })
    }

    async fn listing(&self, request: ListVolumesRequest) -> Result<ListVolumesResponse, Status> {
        let mut items = Vec::new();
        for (cloud, view) in self.views(&[Kind::Volumes], RECENT_VOLUMES).await? {
            for volume in view.volumes.iter() {
                let entry = answers::entry(volume, &self.options);
                items.push((listing::key(&cloud, &volume.id), entry));
            }
        }
        let (entries, next_token) =
            listing::page(items, request.max_entries, &request.starting_token)?;
        Ok(ListVolumesResponse {
            entries,
            next_token,
        })
    }

    async fn getting(
        &self,
        request: ControllerGetVolumeRequest,
    ) -> Result<ControllerGetVolumeResponse, Status> {
        let id = given(&request.volume_id, "volume_id")?;
        let views = self.views(&[Kind::Volumes], Duration::ZERO).await?;
        let mut views = views.iter();
        let volume = views.find_map(|(_, view)| view.volumes.get(&id));
        let volume = found(volume, &id)?;
        Ok(ControllerGetVolumeResponse {
            volume: Some(answers::volume(volume, &self.options)),
            status: Some(VolumeStatus {
                published_node_ids: answers::nodes(volume),
            }),
        })
    }

    async fn capacity(&self, request: GetCapacityRequest) -> Result<GetCapacityResponse, Status> {
        let wanted = Wanted::read(&request, &self.options)?;
        let mut most: Option<Room> = None;
        for (_, cloud) in self.all().await? {
            let Some(room) = room(&wanted, &cloud).await? else {
                continue;
            };
            if most.is_none_or(|it| it.left < room.left) {
                most = Some(room);
            }
        }
        most.map(Room::answer).ok_or_else(|| wanted.unknown())
    }

    async fn listing_snapshots(
        &self,
        request: ListSnapshotsRequest,
    ) -> Result<ListSnapshotsResponse, Status> {
        let cloud = self.cloud(&request.secrets).await?;
        // A sidecar lists a single snapshot to see if the snapshot is ready.
        let age = match request.snapshot_id.as_str() {
            "" => RECENT,
            _ => Duration::ZERO,
        };
        let view = listed_snapshots(&cloud, &request.snapshot_id, age).await?;
        let is_wanted = |id: &str, volume: &str| {
            (request.snapshot_id.is_empty() || request.snapshot_id == id)
                && (request.source_volume_id.is_empty() || request.source_volume_id == volume)
        };
        let mut taken = Vec::new();
        for one in view
            .snapshots
            .iter()
            .filter(|it| is_wanted(&it.id, &it.volume_id))
        {
            taken.push(snapshot::of_snapshot(one, one.status == "available"));
        }
        for one in view
            .backups
            .iter()
            .filter(|it| is_wanted(&it.id, &it.volume_id))
        {
            taken.push(snapshot::of_backup(one, one.status == "available"));
        }
        taken.sort_by(|a, b| a.id.cmp(&b.id));
        let entry = |it: &snapshot::Taken| SnapshotEntry {
            snapshot: Some(answers::snapshot(it)),
        };
        let items = taken.iter().map(|it| (listing::key("", &it.id), entry(it)));
        let (entries, next_token) = listing::page(
            items.collect(),
            request.max_entries,
            &request.starting_token,
        )?;
        Ok(ListSnapshotsResponse {
            entries,
            next_token,
        })
    }
}

/// [`View`] of snapshots, and of backups if the cloud allows. If not, the list for an id other than a snapshot's fails: a
/// backup may have the id.
async fn listed_snapshots(cloud: &Cloud, id: &str, age: Duration) -> Result<Arc<View>, Status> {
    let read = |error: openstack::Error| refusal::of_read(&error);
    let both = [Kind::Snapshots, Kind::Backups];
    match cloud.inventory.view(&both, age).await {
        Err(error) if error.kind() == ErrorKind::Denied => {
            let view = cloud.inventory.view(&[Kind::Snapshots], age).await;
            let view = view.map_err(read)?;
            match id.is_empty() || view.snapshots.get(id).is_some() {
                true => Ok(view),
                false => Err(read(error)),
            }
        }
        view => view.map_err(read),
    }
}

/// [`Room`] of a cloud for volumes; `None` if the cloud lacks their type.
async fn room(wanted: &Wanted, cloud: &Cloud) -> Result<Option<Room>, Status> {
    let mut kinds = vec![Kind::VolumeQuotas];
    kinds.extend(wanted.volume_type.is_some().then_some(Kind::VolumeTypes));
    kinds.extend((!wanted.zones.is_empty()).then_some(Kind::VolumeZones));
    let view = cloud.inventory.view(&kinds, RECENT).await;
    let view = view.map_err(|error| refusal::of_read(&error))?;
    if wanted.volume_type.is_some() {
        let kind = wanted.found(&view);
        return Ok(kind.map(|kind| wanted.room(Some(kind), &view)));
    }
    match cloud.session.volume().default_type().await {
        Ok(kind) => Ok(Some(wanted.room(Some(&kind), &view))),
        Err(error) if error.kind() == ErrorKind::Absent => Ok(Some(wanted.room(None, &view))),
        Err(error) => Err(refusal::of_read(&error)),
    }
}

/// Unwraps an object, or answers NOT_FOUND.
fn found<'a, T>(object: Option<&'a Arc<T>>, id: &str) -> Result<&'a T, Status> {
    object.map(|it| &**it).ok_or_else(|| {
        let message = format!("volume {} does not exist", id.escape_debug());
        Status::new(Code::NotFound, message)
    })
}
