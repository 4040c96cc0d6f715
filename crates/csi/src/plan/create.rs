//! [`CreateVolume`](csi_spec::CreateVolumeRequest).

use std::collections::BTreeMap;

use csi_spec::{Topology, Volume as Answer, VolumeContentSource, context};
use grpc::{Code, Status};
use openstack::Kind;
use openstack::View;
use openstack::volume::{Volume, VolumeCreate};

use super::{Past, Step, Write, double, refuse, wait_for};
use crate::Options;
use crate::mark;
use crate::owner::{CLUSTER_UID, without_uid};
use crate::request::{NewVolume, Source};
use crate::size;
use crate::zone;

/// Next [`Step`]; the answer is the id of the volume.
pub(crate) fn plan(
    wanted: &NewVolume,
    options: &Options,
    view: &View,
    past: &Past,
) -> Step<String> {
    let named = view.volumes.named(&wanted.name);
    let ours = double::in_order(named, |it: &Volume| options.owns(&it.metadata));
    if let Some(double) = double::find(&ours, is_double) {
        // No later call would find the duplicate.
        if double.status == "creating" {
            return wait_for(double);
        }
        let id = double.id.clone();
        return Step::Write(Write::DeleteVolume { id });
    }
    if let Some(first) = ours.first() {
        return existing(wanted, first, view, past);
    }
    if let Some(other) = named.first() {
        return refuse(Code::AlreadyExists, not_ours(other, options));
    }
    if let Some(Write::DeleteFailedVolume { id }) = &past.written {
        let reason = past.reason.as_deref().unwrap_or("it says no reason");
        let message = format!("Cinder could not create the volume ({id} was deleted): {reason}");
        return refuse(Code::ResourceExhausted, message);
    }
    match creation(wanted, view) {
        Ok(step) => step,
        Err(status) => Step::Refuse(status),
    }
}

/// True if a volume is an unused duplicate of the first, from the same request.
fn is_double(first: &Volume, it: &Volume) -> bool {
    let is_unused =
        matches!(it.status.as_str(), "available" | "creating") && it.attachments.is_empty();
    // One of the two replicas may not have known the uid of the cluster yet.
    // The first volume may have grown since.
    let same = it.size <= first.size
        && it.volume_type == first.volume_type
        && without_uid(&it.metadata).eq(without_uid(&first.metadata));
    let source = (&it.snapshot_id, &it.source_volid) == (&first.snapshot_id, &first.source_volid);
    is_unused && same && source && first.status != "error"
}

fn existing(wanted: &NewVolume, volume: &Volume, view: &View, past: &Past) -> Step<String> {
    let id = volume.id.clone();
    match volume.status.as_str() {
        "error" | "error_restoring" => return Step::Write(Write::DeleteFailedVolume { id }),
        "error_deleting" => return Step::Write(Write::DeleteVolume { id }),
        // The volume is as requested; its present use does not matter.
        "available" | "in-use" | "attaching" | "detaching" | "reserved" | "extending"
        | "retyping" | "backing-up" | "uploading" => {}
        // A volume that was intact and may have data: an administrator has to decide. Not final, since the volume
        // exists.
        status if status.starts_with("error") => {
            return refuse(Code::Unavailable, format!("volume {id} is {status}"));
        }
        _ => return wait_for(volume),
    }
    let is_other = |it: &String| *it != volume.volume_type;
    // The request may have the id of the type.
    if wanted.volume_type.as_ref().is_some_and(is_other) && !past.looked {
        return Step::Look(&[Kind::VolumeTypes]);
    }
    // A volume does not name the backup that it was restored from.
    let is_restored = matches!(wanted.source, Some(Source::Snapshot(_)));
    if is_restored && volume.snapshot_id.is_empty() && !view.backups.is_read() {
        return Step::Look(&[Kind::Backups]);
    }
    match difference(wanted, volume, view) {
        Some(difference) => {
            let message = format!(
                "volume {id} has the name {} already, and {difference}",
                wanted.name
            );
            refuse(Code::AlreadyExists, message)
        }
        None => Step::Answer(id),
    }
}

/// Difference between a volume and the request; `None` if it matches.
fn difference(wanted: &NewVolume, volume: &Volume, view: &View) -> Option<String> {
    if !wanted.range.accepts(volume.size) {
        return Some(format!("another size: {} GiB", volume.size));
    }
    if let Some(wanted) = &wanted.volume_type
        && *wanted != volume.volume_type
        && view
            .volume_types
            .get(wanted)
            .is_none_or(|it| it.name != volume.volume_type)
    {
        return Some(format!("another type: {}", volume.volume_type));
    }
    let is_there = |it: &String| zone::is_zone(it, &volume.availability_zone);
    if !wanted.zones.is_empty() && !wanted.zones.iter().any(is_there) {
        return Some(format!("is in another zone: {}", volume.availability_zone));
    }
    let source = match &wanted.source {
        Some(Source::Volume(id)) => *id == volume.source_volid,
        Some(Source::Snapshot(id)) if volume.snapshot_id.is_empty() => {
            volume.source_volid.is_empty() && view.backups.get(id).is_some()
        }
        Some(Source::Snapshot(id)) => *id == volume.snapshot_id,
        None => volume.snapshot_id.is_empty() && volume.source_volid.is_empty(),
    };
    if !source {
        return Some("another source".to_owned());
    }
    // Cinder does not change the encryption of a type in use, so a named type tells if the volume is encrypted.
    let is_encrypted = wanted
        .source
        .as_ref()
        .and_then(|it| source_encrypted(it, view));
    is_encrypted
        .filter(|it| wanted.volume_type.is_none() && *it != volume.encrypted)
        .map(|it| match it {
            true => "is not encrypted, as its source is".to_owned(),
            false => "is encrypted, as its source is not".to_owned(),
        })
}

/// True if the data of a source are encrypted; Cinder copies the encryption with the type. `None` if the view cannot
/// tell.
fn source_encrypted(source: &Source, view: &View) -> Option<bool> {
    let volume = match source {
        Source::Volume(id) => view.volumes.get(id),
        Source::Snapshot(id) => view.volumes.get(&view.snapshots.get(id)?.volume_id),
    };
    volume.map(|it| it.encrypted)
}

fn not_ours(other: &Volume, options: &Options) -> String {
    let cluster = other.metadata.get(mark::CLUSTER);
    let named = |name: &str, uid: Option<&str>| match uid {
        Some(uid) => format!("of cluster {name} with the uid {uid}"),
        None => format!("of cluster {name}"),
    };
    let uid = other.metadata.get(CLUSTER_UID).map(String::as_str);
    let whose = cluster.map_or("nobody's".to_owned(), |it| named(it, uid));
    // Only the uids distinguish two clusters with the same name.
    let asking = named(&options.cluster, uid.and(options.cluster_uid.get()));
    format!(
        "volume {} has the name {} and is {whose}, not {asking}: rename it, or delete the claim",
        other.id, other.name
    )
}

fn creation(wanted: &NewVolume, view: &View) -> Result<Step<String>, Status> {
    if wanted.uses.several_nodes {
        check_multiattach(wanted, view)?;
    }
    let (mut snapshot_id, mut source_volume_id, mut backup_id, mut least) =
        (None, None, None, None);
    match &wanted.source {
        None => {}
        Some(Source::Volume(id)) => {
            let volume = view.volumes.get(id).ok_or_else(|| missing("volume", id))?;
            if !matches!(volume.status.as_str(), "available" | "in-use") {
                return Err(not_yet("volume", id, &volume.status));
            }
            (source_volume_id, least) = (Some(id.clone()), Some(volume.size));
        }
        Some(Source::Snapshot(id)) if !view.snapshots.is_read() => {
            let _ = id;
            return Ok(Step::Look(&[Kind::Snapshots]));
        }
        Some(Source::Snapshot(id)) => match view.snapshots.get(id) {
            Some(it) if it.status == "available" => {
                (snapshot_id, least) = (Some(id.clone()), Some(it.size));
            }
            Some(it) => return Err(not_yet("snapshot", id, &it.status)),
            None if !view.backups.is_read() => return Ok(Step::Look(&[Kind::Backups])),
            None => {
                let backup = view
                    .backups
                    .get(id)
                    .ok_or_else(|| missing("snapshot or backup", id))?;
                if backup.status != "available" {
                    return Err(not_yet("backup", id, &backup.status));
                }
                (backup_id, least) = (Some(id.clone()), Some(backup.size));
            }
        },
    }
    if !wanted.zones.is_empty() && !view.volume_zones.is_read() {
        return Ok(Step::Look(&[Kind::VolumeZones]));
    }
    Ok(Step::Write(Write::CreateVolume(VolumeCreate {
        name: wanted.name.clone(),
        size: wanted.range.size(least)?,
        description: Some(mark::DESCRIPTION.to_owned()),
        volume_type: wanted.volume_type.clone(),
        availability_zone: place(wanted, view)?,
        image_id: None,
        snapshot_id,
        source_volume_id,
        backup_id,
        metadata: wanted.metadata.clone(),
        scheduler_hints: wanted.hints.resolved(view)?,
    })))
}

/// First wanted zone that Cinder has. Without this check, a cloud with `allow_availability_zone_fallback` would
/// silently use another zone.
fn place(wanted: &NewVolume, view: &View) -> Result<Option<String>, Status> {
    let there: Vec<&str> = view.volume_zones.iter().map(|it| &*it.0.name).collect();
    // A label may differ from the name of its zone. For a cloud that shows no zones, the wanted name is used.
    let in_cinder = |wanted: &String| match there.is_empty() {
        true => Some(wanted.clone()),
        false => zone::meant(wanted, there.iter().copied()).map(str::to_owned),
    };
    match wanted.zones.iter().find_map(in_cinder) {
        None if !wanted.zones.is_empty() => {
            let message = format!(
                "Cinder has no availability zone {}, it has {}: name one by `availability` in the StorageClass, or set \
                 `zone-map` or `ignore-volume-az` in [BlockStorage] of cloud.conf",
                wanted.zones.join(" or ").escape_debug(),
                there.join(", ").escape_debug()
            );
            // With this code the provisioner tries another node.
            Err(Status::new(Code::ResourceExhausted, message))
        }
        zone => Ok(zone),
    }
}

/// Refuses a volume for several nodes if its type is not `multiattach`.
fn check_multiattach(wanted: &NewVolume, view: &View) -> Result<(), Status> {
    let invalid = |message: String| Err(Status::new(Code::InvalidArgument, message));
    let Some(wanted) = &wanted.volume_type else {
        return invalid(
            "the access mode is for several nodes, and the StorageClass has no `type`: name a type with \
             multiattach = \"<is> True\""
                .to_owned(),
        );
    };
    let mut types = view.volume_types.iter();
    let found = types.find(|it| it.id == *wanted || it.name == *wanted);
    match found {
        None => invalid(format!("there is no volume type {}", wanted.escape_debug())),
        Some(found) if !found.is_multiattach() => invalid(format!(
            "the access mode is for several nodes, and the volume type {} has no multiattach = \"<is> True\"",
            found.name
        )),
        Some(_) => Ok(()),
    }
}

fn missing(what: &str, id: &str) -> Status {
    Status::new(
        Code::NotFound,
        format!("the source, {what} {}, does not exist", id.escape_debug()),
    )
}

/// UNAVAILABLE, not final: the source may become usable later.
fn not_yet(what: &str, id: &str, status: &str) -> Status {
    Status::new(
        Code::Unavailable,
        format!("the source, {what} {id}, is {status}"),
    )
}

/// Volume message of the response.
pub(crate) fn answer(
    volume: &Volume,
    wanted: &NewVolume,
    source: Option<VolumeContentSource>,
    options: &Options,
    view: &View,
) -> Answer {
    let mut pairs = BTreeMap::new();
    // A restored or cloned volume has the content of its source, and counts as empty only if all zeros.
    if let Some(format) = wanted.format.as_ref().filter(|_| source.is_none()) {
        pairs.insert(context::FORMAT.to_owned(), format.clone());
    }
    if source.is_some() {
        pairs.insert(context::RESIZE.to_owned(), "true".to_owned());
    }
    wanted.hints.add_to(&mut pairs, view);
    Answer {
        capacity_bytes: size::bytes(volume.size),
        volume_id: volume.id.clone(),
        volume_context: pairs,
        content_source: source,
        accessible_topology: topology(volume, wanted, options),
    }
}

fn topology(volume: &Volume, wanted: &NewVolume, options: &Options) -> Vec<Topology> {
    if !options.with_topology {
        return Vec::new();
    }
    let zones = match options.ignore_volume_az {
        true => wanted.labels.clone(),
        false => options.zones.of_nova(&volume.availability_zone),
    };
    zones.iter().map(|it| zone::topology(it)).collect()
}
