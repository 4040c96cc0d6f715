//! Messages of CSI, built from observed objects.

use std::collections::BTreeMap;

use csi_spec::list_volumes_response::{Entry, VolumeStatus};
use csi_spec::{Snapshot, Volume as Answer, VolumeGroupSnapshot, context};
use openstack::volume::Volume;

use crate::plan::attach::Attached;
use crate::plan::group_snapshot::Together;
use crate::plan::snapshot::Taken;
use crate::{Options, size, time, zone};

/// [`Volume`] of a list. Without topology the volume is accessible everywhere.
pub(crate) fn volume(volume: &Volume, options: &Options) -> Answer {
    let zones = match options.with_topology && !options.ignore_volume_az {
        true => options.zones.of_nova(&volume.availability_zone),
        false => Vec::new(),
    };
    Answer {
        capacity_bytes: size::bytes(volume.size),
        volume_id: volume.id.clone(),
        accessible_topology: zones.iter().map(|it| zone::topology(it)).collect(),
        ..Answer::default()
    }
}

/// Ids of the servers with an attachment of the volume, each once.
pub(crate) fn nodes(volume: &Volume) -> Vec<String> {
    let mut nodes: Vec<String> = Vec::new();
    for attachment in &volume.attachments {
        if !nodes.contains(&attachment.server_id) {
            nodes.push(attachment.server_id.clone());
        }
    }
    nodes
}

/// Entry of a [`csi_spec::ListVolumesResponse`].
pub(crate) fn entry(one: &Volume, options: &Options) -> Entry {
    Entry {
        volume: Some(volume(one, options)),
        status: Some(VolumeStatus {
            published_node_ids: nodes(one),
        }),
    }
}

/// Publish context of an [`Attached`] volume for the node: device name, size in bytes, first attachment.
pub(crate) fn publish_context(volume: &Volume, attached: &Attached) -> BTreeMap<String, String> {
    let size = size::bytes(volume.size).to_string();
    let mut pairs = BTreeMap::from([
        (context::DEVICE.to_owned(), attached.device.clone()),
        (context::SIZE.to_owned(), size),
    ]);
    if attached.first {
        pairs.insert(context::FIRST_ATTACH.to_owned(), "true".to_owned());
    }
    pairs
}

/// Message for a [`Taken`] snapshot or backup.
pub(crate) fn snapshot(taken: &Taken) -> Snapshot {
    Snapshot {
        size_bytes: size::bytes(taken.size),
        snapshot_id: taken.id.clone(),
        source_volume_id: taken.volume.clone(),
        creation_time: time::read(&taken.created_at),
        ready_to_use: taken.ready,
        group_snapshot_id: taken.group.clone(),
        ..Snapshot::default()
    }
}

/// Message for a group snapshot, [`Together`].
pub(crate) fn group_snapshot(taken: &Together) -> VolumeGroupSnapshot {
    VolumeGroupSnapshot {
        group_snapshot_id: taken.id.clone(),
        snapshots: taken.parts.iter().map(snapshot).collect(),
        creation_time: time::read(&taken.created_at),
        ready_to_use: taken.parts.iter().all(|it| it.ready),
    }
}
