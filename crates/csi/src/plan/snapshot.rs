//! CreateSnapshot: a snapshot, or a backup of one.

use grpc::Code;
use openstack::volume::{Backup, BackupCreate, Snapshot, SnapshotCreate};
use openstack::{Kind, View};

use super::{Past, Step, Write, refuse, wait};
use crate::Options;
use crate::mark;
use crate::request::{Form, NewSnapshot};

/// What a call answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub id: String,
    /// GiB.
    pub size: i64,
    pub volume: String,
    pub created_at: String,
    pub ready: bool,
    /// The snapshot of a group that it is part of; empty for none.
    pub group: String,
}

/// The next step.
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

/// Whether something of that name is ours, or nobody else's.
fn ours<'a, T>(
    named: &'a [std::sync::Arc<T>],
    metadata: impl Fn(&T) -> &std::collections::BTreeMap<String, String>,
    options: &Options,
) -> Result<Option<&'a T>, ()> {
    match named.iter().find(|it| options.owns(metadata(it))) {
        Some(found) => Ok(Some(found)),
        None if named.is_empty() => Ok(None),
        None => Err(()),
    }
}

fn snapshot(wanted: &NewSnapshot, options: &Options, view: &View, past: &Past) -> Step<Taken> {
    let named = view.snapshots.named(&wanted.name);
    let Ok(found) = ours(named, |it: &Snapshot| &it.metadata, options) else {
        return taken_by_other(wanted);
    };
    let Some(found) = found else {
        return take(wanted, view, past);
    };
    if let Some(refused) = another_volume(wanted, &found.volume_id) {
        return refused;
    }
    match found.status.as_str() {
        "available" | "backing-up" => Step::Answer(of_snapshot(found, true)),
        "error" | "error_deleting" => Step::Write(Write::DeleteSnapshot {
            id: found.id.clone(),
        }),
        "deleting" => waiting_for_snapshot(found),
        _ if past.written.is_none() => Step::Answer(of_snapshot(found, false)),
        _ => waiting_for_snapshot(found),
    }
}

fn waiting_for_snapshot(found: &Snapshot) -> Step<Taken> {
    let why = format!("snapshot {} is {}", found.id, found.status);
    wait(Kind::Snapshots, &found.id, why)
}

/// Creates the snapshot, unless this call has deleted one that failed.
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
    let Ok(found) = ours(named, |it: &Backup| &it.metadata, options) else {
        return taken_by_other(wanted);
    };
    let snapshots = view.snapshots.named(&wanted.name);
    let Ok(snapshot) = ours(snapshots, |it: &Snapshot| &it.metadata, options) else {
        return taken_by_other(wanted);
    };
    let Some(found) = found else {
        return begin_backup(wanted, snapshot, view, past);
    };
    if let Some(refused) = another_volume(wanted, &found.volume_id) {
        return refused;
    }
    match (found.status.as_str(), snapshot) {
        // Nobody asks again after a backup that is ready, so that the snapshot goes first.
        ("available", Some(left)) => match left.status.as_str() {
            "available" | "error" | "error_deleting" => Step::Write(Write::DeleteSnapshot {
                id: left.id.clone(),
            }),
            _ => waiting_for_snapshot(left),
        },
        ("available" | "restoring", _) => Step::Answer(of_backup(found, true)),
        ("error" | "error_deleting", _) => Step::Write(Write::DeleteBackup {
            id: found.id.clone(),
        }),
        ("deleting", _) => {
            let why = format!("backup {} is deleting", found.id);
            wait(Kind::Backups, &found.id, why)
        }
        // It may take hours: the caller asks again.
        _ => Step::Answer(of_backup(found, false)),
    }
}

/// The steps before there is a backup: a snapshot, then the backup of it.
fn begin_backup(
    wanted: &NewSnapshot,
    snapshot: Option<&Snapshot>,
    view: &View,
    past: &Past,
) -> Step<Taken> {
    if matches!(past.written, Some(Write::DeleteBackup { .. })) {
        let reason = past.reason.as_deref().unwrap_or("it says no reason");
        let message = format!("Cinder could not make the backup, which was deleted: {reason}");
        return refuse(Code::Aborted, message);
    }
    let Some(snapshot) = snapshot else {
        return take(wanted, view, past);
    };
    if let Some(refused) = another_volume(wanted, &snapshot.volume_id) {
        return refused;
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
        "error" | "error_deleting" => Step::Write(Write::DeleteSnapshot {
            id: snapshot.id.clone(),
        }),
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

/// The answer for a snapshot.
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

/// The answer for a backup.
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
