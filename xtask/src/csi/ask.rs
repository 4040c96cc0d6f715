//! One request to a driver, and its answer as a JSON value.

use std::collections::BTreeMap;

use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use csi_spec::volume_content_source::{SnapshotSource, Type as Source, VolumeSource};
use csi_spec::{
    CapacityRange, ControllerExpandVolumeRequest, ControllerGetCapabilitiesRequest,
    ControllerGetVolumeRequest, ControllerPublishVolumeRequest, ControllerUnpublishVolumeRequest,
    CreateSnapshotRequest, CreateVolumeRequest, DeleteSnapshotRequest, DeleteVolumeRequest,
    GetPluginCapabilitiesRequest, GetPluginInfoRequest, ListSnapshotsRequest, ListVolumesRequest,
    NodeExpandVolumeRequest, NodeGetCapabilitiesRequest, NodeGetInfoRequest,
    NodeGetVolumeStatsRequest, NodePublishVolumeRequest, NodeStageVolumeRequest,
    NodeUnpublishVolumeRequest, NodeUnstageVolumeRequest, ProbeRequest, Snapshot, Topology,
    TopologyRequirement, ValidateVolumeCapabilitiesRequest, Volume, VolumeCapability,
    VolumeContentSource, context,
};
use grpc::{Client, Error};
use serde_json::{Value, json};

use super::script::{Call, Step};

/// Maximum number of pages: a longer list never ends.
const PAGES: usize = 20;

/// Contexts for a request, beside its [`Step`] with resolved names.
#[derive(Clone, Debug, Default)]
pub(super) struct Contexts {
    /// Volume context in the answer to CreateVolume.
    pub(super) volume: BTreeMap<String, String>,
    /// Publish context in the answer to ControllerPublishVolume.
    pub(super) publish: BTreeMap<String, String>,
}

/// Sends the request of a [`Step`], and returns the compared part of the answer.
pub(super) async fn ask(client: &Client, step: &Step, contexts: &Contexts) -> Result<Value, Error> {
    match step.call {
        Call::Cloud => Ok(Value::Null),
        call if call.is_of_node() => of_node(client, step, contexts).await,
        Call::CreateVolume => {
            let answer = client.call(&create(step)).await?;
            Ok(answer.volume.as_ref().map_or(Value::Null, volume))
        }
        Call::ListVolumes => volumes(client, step).await,
        Call::ListSnapshots => snapshots(client, step).await,
        Call::CreateSnapshot => {
            let request = CreateSnapshotRequest {
                name: step.name.clone(),
                source_volume_id: step.volume.clone(),
                parameters: step.parameters.clone(),
                secrets: step.secrets.clone(),
                ..CreateSnapshotRequest::default()
            };
            let answer = client.call(&request).await?;
            Ok(answer.snapshot.as_ref().map_or(Value::Null, snapshot))
        }
        Call::GetPluginInfo | Call::GetPluginCapabilities | Call::Probe => {
            of_identity(client, step).await
        }
        _ => of_controller(client, step, contexts).await,
    }
}

async fn of_identity(client: &Client, step: &Step) -> Result<Value, Error> {
    Ok(match step.call {
        Call::GetPluginInfo => {
            let answer = client.call(&GetPluginInfoRequest {}).await?;
            json!({"name": answer.name})
        }
        Call::GetPluginCapabilities => {
            let answer = client.call(&GetPluginCapabilitiesRequest {}).await?;
            words(
                answer
                    .capabilities
                    .iter()
                    .map(|it| format!("{:?}", it.r#type)),
            )
        }
        _ => {
            let answer = client.call(&ProbeRequest {}).await?;
            json!({"ready": answer.ready.unwrap_or(true)})
        }
    })
}

async fn of_controller(client: &Client, step: &Step, contexts: &Contexts) -> Result<Value, Error> {
    let (volume_id, secrets) = (step.volume.clone(), step.secrets.clone());
    Ok(match step.call {
        Call::DeleteVolume => {
            client
                .call(&DeleteVolumeRequest { volume_id, secrets })
                .await?;
            Value::Null
        }
        Call::ControllerPublishVolume => {
            let request = ControllerPublishVolumeRequest {
                volume_id,
                node_id: step.node.clone(),
                volume_capability: capability(step),
                readonly: step.read_only,
                secrets,
                volume_context: contexts.volume.clone(),
            };
            json!({"context": client.call(&request).await?.publish_context})
        }
        Call::ControllerUnpublishVolume => {
            let node_id = step.node.clone();
            let request = ControllerUnpublishVolumeRequest {
                volume_id,
                node_id,
                secrets,
            };
            client.call(&request).await?;
            Value::Null
        }
        Call::ValidateVolumeCapabilities => {
            let request = ValidateVolumeCapabilitiesRequest {
                volume_id,
                volume_capabilities: capability(step).into_iter().collect(),
                secrets,
                ..ValidateVolumeCapabilitiesRequest::default()
            };
            json!({"confirmed": client.call(&request).await?.confirmed.is_some()})
        }
        Call::ControllerGetVolume => {
            let answer = client
                .call(&ControllerGetVolumeRequest { volume_id })
                .await?;
            let nodes = answer.status.map(|it| it.published_node_ids);
            entry(answer.volume.as_ref(), nodes.unwrap_or_default())
        }
        Call::DeleteSnapshot => {
            let snapshot_id = step.snapshot.clone();
            client
                .call(&DeleteSnapshotRequest {
                    snapshot_id,
                    secrets,
                })
                .await?;
            Value::Null
        }
        Call::ControllerExpandVolume => {
            let request = ControllerExpandVolumeRequest {
                volume_id,
                capacity_range: range(step),
                secrets,
                volume_capability: capability(step),
            };
            let answer = client.call(&request).await?;
            json!({"bytes": answer.capacity_bytes, "node": answer.node_expansion_required})
        }
        _ => {
            let answer = client.call(&ControllerGetCapabilitiesRequest {}).await?;
            words(
                answer
                    .capabilities
                    .iter()
                    .map(|it| format!("{:?}", it.r#type)),
            )
        }
    })
}

async fn of_node(client: &Client, step: &Step, contexts: &Contexts) -> Result<Value, Error> {
    let volume_id = step.volume.clone();
    let (staging_target_path, target_path) = (step.staging.clone(), step.target.clone());
    Ok(match step.call {
        Call::NodeGetInfo => {
            let answer = client.call(&NodeGetInfoRequest {}).await?;
            json!({"node": answer.node_id, "volumes": answer.max_volumes_per_node,
                "topology": answer.accessible_topology.map(|it| it.segments)})
        }
        Call::NodeStageVolume => {
            let request = NodeStageVolumeRequest {
                volume_id,
                publish_context: contexts.publish.clone(),
                staging_target_path,
                volume_capability: capability(step),
                volume_context: contexts.volume.clone(),
                ..NodeStageVolumeRequest::default()
            };
            client.call(&request).await?;
            Value::Null
        }
        Call::NodeUnstageVolume => {
            let request = NodeUnstageVolumeRequest {
                volume_id,
                staging_target_path,
            };
            client.call(&request).await?;
            Value::Null
        }
        Call::NodePublishVolume => {
            let request = NodePublishVolumeRequest {
                volume_id,
                publish_context: contexts.publish.clone(),
                staging_target_path,
                target_path,
                volume_capability: capability(step),
                readonly: step.read_only,
                volume_context: contexts.volume.clone(),
                ..NodePublishVolumeRequest::default()
            };
            client.call(&request).await?;
            Value::Null
        }
        Call::NodeUnpublishVolume => {
            let request = NodeUnpublishVolumeRequest {
                volume_id,
                target_path,
            };
            client.call(&request).await?;
            Value::Null
        }
        Call::NodeGetVolumeStats => {
            let request = NodeGetVolumeStatsRequest {
                volume_id,
                volume_path: target_path,
                staging_target_path,
            };
            let answer = client.call(&request).await?;
            let usage = answer.usage.iter();
            usage
                .map(|it| json!({"unit": it.unit().as_str_name(), "total": it.total}))
                .collect()
        }
        Call::NodeExpandVolume => {
            let request = NodeExpandVolumeRequest {
                volume_id,
                volume_path: target_path,
                capacity_range: range(step),
                staging_target_path,
                volume_capability: capability(step),
                ..NodeExpandVolumeRequest::default()
            };
            json!({"bytes": client.call(&request).await?.capacity_bytes})
        }
        _ => {
            let answer = client.call(&NodeGetCapabilitiesRequest {}).await?;
            words(
                answer
                    .capabilities
                    .iter()
                    .map(|it| format!("{:?}", it.r#type)),
            )
        }
    })
}

fn create(step: &Step) -> CreateVolumeRequest {
    let snapshot = |id: &String| {
        let snapshot_id = id.clone();
        Source::Snapshot(SnapshotSource { snapshot_id })
    };
    let volume = |id: &String| {
        let volume_id = id.clone();
        Source::Volume(VolumeSource { volume_id })
    };
    let source = step.from_snapshot.as_ref().map(snapshot);
    let source = source.or_else(|| step.from_volume.as_ref().map(volume));
    let zone = |zone: &String| Topology {
        segments: [(context::ZONE.to_owned(), zone.clone())].into(),
    };
    let zones: Vec<Topology> = step.in_zones.iter().map(zone).collect();
    CreateVolumeRequest {
        name: step.name.clone(),
        capacity_range: range(step),
        volume_capabilities: capability(step).into_iter().collect(),
        parameters: step.parameters.clone(),
        secrets: step.secrets.clone(),
        volume_content_source: source.map(|it| VolumeContentSource { r#type: Some(it) }),
        accessibility_requirements: (!zones.is_empty()).then(|| TopologyRequirement {
            requisite: zones.clone(),
            preferred: zones,
        }),
        ..CreateVolumeRequest::default()
    }
}

fn range(step: &Step) -> Option<CapacityRange> {
    let required = step.bytes.or(step.gib.map(|gib| gib << 30));
    if required.is_none() && step.limit.is_none() {
        return None;
    }
    Some(CapacityRange {
        required_bytes: required.unwrap_or_default(),
        limit_bytes: step.limit.unwrap_or_default(),
    })
}

fn capability(step: &Step) -> Option<VolumeCapability> {
    let mode = match step.mode.as_deref() {
        Some("none") => return None,
        Some(mode) => Mode::from_str_name(mode).unwrap_or(Mode::Unknown),
        None => Mode::SingleNodeWriter,
    };
    let mount = MountVolume {
        fs_type: step.file_system.clone(),
        mount_flags: step.flags.clone(),
        ..MountVolume::default()
    };
    Some(VolumeCapability {
        access_mode: Some(AccessMode { mode: mode as i32 }),
        access_type: Some(match step.block {
            true => AccessType::Block(BlockVolume {}),
            false => AccessType::Mount(mount),
        }),
    })
}

async fn volumes(client: &Client, step: &Step) -> Result<Value, Error> {
    let mut pages = Pages::new(step);
    loop {
        let request = ListVolumesRequest {
            max_entries: step.max,
            starting_token: pages.token.clone(),
        };
        let answer = client.call(&request).await?;
        let entries = answer.entries.into_iter().map(|it| {
            let nodes = it.status.map(|it| it.published_node_ids);
            entry(it.volume.as_ref(), nodes.unwrap_or_default())
        });
        if let Some(list) = pages.add(entries.collect(), answer.next_token) {
            return Ok(list);
        }
    }
}

async fn snapshots(client: &Client, step: &Step) -> Result<Value, Error> {
    let mut pages = Pages::new(step);
    loop {
        let request = ListSnapshotsRequest {
            max_entries: step.max,
            starting_token: pages.token.clone(),
            source_volume_id: step.volume.clone(),
            snapshot_id: step.snapshot.clone(),
            secrets: step.secrets.clone(),
        };
        let answer = client.call(&request).await?;
        let entries = answer.entries.into_iter().filter_map(|it| it.snapshot);
        let entries = entries.map(|it| snapshot(&it)).collect();
        if let Some(list) = pages.add(entries, answer.next_token) {
            return Ok(list);
        }
    }
}

/// Pages of a list. The server chooses the order, so only the whole list can be compared, not its pages.
struct Pages<'a> {
    step: &'a Step,
    token: String,
    sizes: Vec<usize>,
    entries: Vec<Value>,
}

impl<'a> Pages<'a> {
    fn new(step: &'a Step) -> Self {
        Self {
            step,
            token: step.token.clone(),
            sizes: Vec::new(),
            entries: Vec::new(),
        }
    }

    /// Adds a page; returns the list after the last page.
    fn add(&mut self, entries: Vec<Value>, next: String) -> Option<Value> {
        let is_one = !self.step.pages;
        if is_one && self.step.max > 0 {
            return Some(json!({"entries": entries.len(), "more": !next.is_empty()}));
        }
        self.sizes.push(entries.len());
        self.entries.extend(entries);
        if next.is_empty() || is_one {
            return Some(
                json!({"sizes": self.sizes, "entries": self.entries, "more": !next.is_empty()}),
            );
        }
        if self.sizes.len() == PAGES {
            return Some(json!({"endless": true}));
        }
        self.token = next;
        None
    }
}

fn volume(volume: &Volume) -> Value {
    let topology: Vec<_> = volume
        .accessible_topology
        .iter()
        .map(|it| &it.segments)
        .collect();
    let source = volume
        .content_source
        .as_ref()
        .and_then(|it| it.r#type.as_ref());
    let source = source.map(|it| match it {
        Source::Snapshot(it) => json!({"snapshot": it.snapshot_id}),
        Source::Volume(it) => json!({"volume": it.volume_id}),
    });
    json!({"id": volume.volume_id, "bytes": volume.capacity_bytes, "context": volume.volume_context,
        "topology": topology, "source": source})
}

fn entry(of: Option<&Volume>, nodes: Vec<String>) -> Value {
    json!({"volume": of.map(volume), "nodes": nodes})
}

fn snapshot(snapshot: &Snapshot) -> Value {
    json!({"id": snapshot.snapshot_id, "bytes": snapshot.size_bytes, "volume": snapshot.source_volume_id,
        "ready": snapshot.ready_to_use, "time": snapshot.creation_time.is_some()})
}

/// Words as the fields of an object, for a comparison without order.
fn words(words: impl Iterator<Item = String>) -> Value {
    let named = words.map(|word| {
        let word = word.replace(|c: char| !c.is_ascii_alphanumeric(), " ");
        (word.split_whitespace().collect::<Vec<_>>().join(" "), true)
    });
    json!(named.collect::<BTreeMap<_, _>>())
}
