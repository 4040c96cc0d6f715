//! [`CreateSnapshot`](csi_spec::CreateSnapshotRequest): of a snapshot, or of a backup by way of a snapshot.

use std::collections::BTreeMap;
use std::sync::Arc;

use grpc::Code;
use openstack::volume::{Backup, BackupCreate, Snapshot, SnapshotCreate};
use openstack::{ErrorKind, Kind, View};

use super::double::{self, Twin};
use super::{Past, Step, Write, refuse, wait};
use crate::Options;
use crate::mark;
use crate::owner::without_uid;
use crate::request::{Form, NewSnapshot};

/// Snapshot or backup for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub id: String,
    /// Size in GiB.
    pub size: i64,
    pub volume: String,
    pub created_at: String,
    pub ready: bool,
    /// Id of the group snapshot with this snapshot; empty for none.
    pub group: String,
}

/// Next step; the answer is the snapshot or backup.
pub(crate) fn plan(
    wanted: &NewSnapshot,
    options: &Options,
    view: &View,
    past: &Past,
) -> Step<Taken> {
    match wanted.form {
        Form::Snapshot => snapshot(wanted, options, view, past),
        Form::Backup => backup(wanted, options, view, past),
    }
}

/// Our objects with the name, oldest first; an error if only others have the name.
fn ours<'a, T: Twin>(
    named: &'a [Arc<T>],
    metadata: impl Fn(&T) -> &BTreeMap<String, String>,
    options: &Options,
) -> Result<Vec<&'a T>, ()> {
    let ours = double::in_order(named, |it| options.owns(metadata(it)));
    match ours.is_empty() && !named.is_empty() {
        true => Err(()),
        false => Ok(ours),
    }
}

/// Step for a duplicate snapshot of the same request.
fn without_double(ours: &[&Snapshot]) -> Option<Step<Taken>> {
    let is_double = |first: &Snapshot, it: &Snapshot| {
        matches!(it.status.as_str(), "available" | "creating" | "error")
            && it.volume_id == first.volume_id
            && without_uid(&it.metadata).eq(without_uid(&first.metadata))
            && first.status != "error"
    };
    let double = double::find(ours, is_double)?;
    // No later call would find the duplicate.
    Some(match double.status.as_str() {
        "creating" => waiting_for_snapshot(double),
        _ => delete_snapshot(double),
    })
}

/// Step for a duplicate backup. A backup may take hours, so this step comes after the first one is ready.
fn without_double_backup(ours: &[&Backup]) -> Option<Step<Taken>> {
    let is_double = |first: &Backup, it: &Backup| {
        matches!(it.status.as_str(), "available" | "creating" | "error")
            && it.volume_id == first.volume_id
            && without_uid(&it.metadata).eq(without_uid(&first.metadata))
    };
    let double = double::find(ours, is_double)?;
    Some(match double.status.as_str() {
        "creating" => waiting_for_backup(double),
        _ => delete_backup(double),
    })
}

fn snapshot(wanted: &NewSnapshot, options: &Options, view: &View, past: &Past) -> Step<Taken> {
    let named = view.snapshots.named(&wanted.name);
    let Ok(ours) = ours(named, |it: &Snapshot| &it.metadata, options) else {
        return taken_by_other(wanted);
    };
    let Some(found) = ours.first() else {
        return take(wanted, view, past);
    };
    if let Some(refused) = another_volume(wanted, &found.volume_id) {
        return refused;
    }
    if let Some(step) = without_double(&ours) {
        return step;
    }
    match found.status.as_str() {
        "available" | "backing-up" => Step::Answer(of_snapshot(found, true)),
        "error" | "error_deleting" => delete_snapshot(found),
        "deleting" => waiting_for_snapshot(found),
        _ if past.written.is_none() => Step::Answer(of_snapshot(found, false)),
        _ => waiting_for_snapshot(found),
    }
}

fn delete_snapshot(found: &Snapshot) -> Step<Taken> {
    Step::Write(Write::DeleteSnapshot {
        id: found.id.clone(),
    })
}

fn delete_backup(found: &Backup) -> Step<Taken> {
    Step::Write(Write::DeleteBackup {
        id: found.id.clone(),
    })
}

fn waiting_for_backup(found: &Backup) -> Step<Taken> {
    let why = format!("backup {} is {}", found.id, found.status);
    wait(Kind::Backups, &found.id, why)
}

fn waiting_for_snapshot(found: &Snapshot) -> Step<Taken> {
    let why = format!("snapshot {} is {}", found.id, found.status);
    wait(Kind::Snapshots, &found.id, why)
}

/// Creates the snapshot, unless this call has deleted a failed one.
fn take(wanted: &NewSnapshot, view: &View, past: &Past) -> Step<Taken> {
    if matches!(past.written, Some(Write::DeleteSnapshot { .. })) {
        let reason = past.reason.as_deref().unwrap_or("it says no reason");
        let message = format!("Cinder could not take the snapshot, which was deleted: {reason}");
        return refuse(Code::Aborted, message);
    }
    let Some(volume) = view.volumes.get(&wanted.volume) else {
        return no_volume(wanted);
    };
    let attached = !volume.attachments.is_empty();
    if let Some((Write::CreateSnapshot(_), error)) = &past.refused
        && error.kind() == ErrorKind::Invalid
        && attached
        && !wanted.force
    {
        let message = format!(
            "{}; volume {} is in use: detach it, or name `force-create: \"true\"` in the VolumeSnapshotClass",
            error.cause(&format!("create snapshot {}", wanted.name)),
            volume.id
        );
        return refuse(Code::FailedPrecondition, message);
    }
    Step::Write(Write::CreateSnapshot(SnapshotCreate {
        name: wanted.name.clone(),
        volume_id: wanted.volume.clone(),
        description: mark::DESCRIPTION.to_owned(),
        force: attached && (wanted.force || wanted.form == Form::Backup),
        metadata: wanted.metadata.clone(),
    }))
}

fn backup(wanted: &NewSnapshot, options: &Options, view: &View, past: &Past) -> Step<Taken> {
    let named = view.backups.named(&wanted.name);
    let Ok(backups) = ours(named, |it: &Backup| &it.metadata, options) else {
        return taken_by_other(wanted);
    };
    let snapshots = view.snapshots.named(&wanted.name);
    let Ok(snapshots) = ours(snapshots, |it: &Snapshot| &it.metadata, options) else {
        return taken_by_other(wanted);
    };
    let Some(found) = backups.first() else {
        return begin_backup(wanted, &snapshots, view, past);
    };
    if let Some(refused) = another_volume(wanted, &found.volume_id) {
        return refused;
    }
    if matches!(past.written, Some(Write::CreateBackup(_))) && !past.looked {
        return Step::Reread(Kind::Backups);
    }
    match found.status.as_str() {
        "available" => match without_double_backup(&backups) {
            Some(step) => step,
            None => finished(found, &snapshots),
        },
        "restoring" => Step::Answer(of_backup(found, true)),
        "error" | "error_deleting" => delete_backup(found),
        "deleting" => waiting_for_backup(found),
        // A backup may take hours: the caller asks again.
        _ => Step::Answer(of_backup(found, false)),
    }
}

/// Answer for a ready backup. The caller does not ask again, so the snapshot below the backup is deleted first.
fn finished(found: &Backup, snapshots: &[&Snapshot]) -> Step<Taken> {
    match snapshots.first() {
        None => Step::Answer(of_backup(found, true)),
        Some(left) => match left.status.as_str() {
            "available" | "error" | "error_deleting" => delete_snapshot(left),
            _ => waiting_for_snapshot(left),
        },
    }
}

/// Steps before the backup: a snapshot, then a backup of the snapshot.
fn begin_backup(
    wanted: &NewSnapshot,
    snapshots: &[&Snapshot],
    view: &View,
    past: &Past,
) -> Step<Taken> {
    if matches!(past.written, Some(Write::DeleteBackup { .. })) {
        let reason = past.reason.as_deref().unwrap_or("it says no reason");
        let message = format!("Cinder could not make the backup, which was deleted: {reason}");
        return refuse(Code::Aborted, message);
    }
    let Some(snapshot) = snapshots.first() else {
        return take(wanted, view, past);
    };
    if let Some(refused) = another_volume(wanted, &snapshot.volume_id) {
        return refused;
    }
    if let Some(step) = without_double(snapshots) {
        return step;
    }
    match snapshot.status.as_str() {
        "available" => Step::Write(Write::CreateBackup(BackupCreate {
            name: wanted.name.clone(),
            volume_id: wanted.volume.clone(),
            snapshot_id: Some(snapshot.id.clone()),
            description: mark::DESCRIPTION.to_owned(),
            force: true,
            availability_zone: wanted.zone.clone(),
            metadata: wanted.metadata.clone(),
        })),
        "error" | "error_deleting" => delete_snapshot(snapshot),
        _ => waiting_for_snapshot(snapshot),
    }
}

fn taken_by_other(wanted: &NewSnapshot) -> Step<Taken> {
    let message = format!(
        "there is a snapshot or backup {} that is not this cluster's: rename it",
        wanted.name
    );
    refuse(Code::AlreadyExists, message)
}

fn another_volume(wanted: &NewSnapshot, volume: &str) -> Option<Step<Taken>> {
    (wanted.volume != volume).then(|| {
        let message = format!(
            "there is a snapshot {} of another volume, {volume}",
            wanted.name
        );
        refuse(Code::AlreadyExists, message)
    })
}

fn no_volume(wanted: &NewSnapshot) -> Step<Taken> {
    let id = wanted.volume.escape_debug();
    refuse(Code::NotFound, format!("volume {id} does not exist"))
}

/// Answer for a snapshot.
pub(crate) fn of_snapshot(it: &Snapshot, ready: bool) -> Taken {
    Taken {
        id: it.id.clone(),
        size: it.size,
        volume: it.volume_id.clone(),
        created_at: it.created_at.clone(),
        ready,
        group: it.group_snapshot_id.clone(),
    }
}

/// Answer for a backup.
pub(crate) fn of_backup(it: &Backup, ready: bool) -> Taken {
    Taken {
        id: it.id.clone(),
        size: it.size,
        volume: it.volume_id.clone(),
        created_at: it.created_at.clone(),
        ready,
        group: String::new(),
    }
}
