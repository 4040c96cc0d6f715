//! [`CreateVolumeGroupSnapshot`](csi_spec::CreateVolumeGroupSnapshotRequest) and
//! [`GetVolumeGroupSnapshot`](csi_spec::GetVolumeGroupSnapshotRequest).

use std::collections::BTreeSet;

use grpc::{Code, Status};
use openstack::volume::{GroupSnapshot, GroupSnapshotCreate, Snapshot};
use openstack::{Kind, View};

use super::snapshot::{Taken, of_snapshot};
use super::{Past, Step, Write, double, grouping, refuse, wait};
use crate::Options;
use crate::mark;
use crate::request::NewGroupSnapshot;

/// Group snapshot for an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Together {
    pub id: String,
    pub created_at: String,
    /// One snapshot of each volume, sorted by volume id.
    pub parts: Vec<Taken>,
}

/// Next step; the answer is the group snapshot.
pub(crate) fn plan(
    wanted: &NewGroupSnapshot,
    options: &Options,
    view: &View,
    past: &Past,
) -> Step<Together> {
    let named = view.group_snapshots.named(&wanted.name);
    let set = |it: &GroupSnapshot| mark::set_of_group_snapshot(&options.cluster, &it.description);
    let ours = double::in_order(named, |it| set(it).is_some());
    let Some(found) = ours.first() else {
        return match named.first() {
            Some(other) => refuse(Code::AlreadyExists, not_ours(wanted, other)),
            None => take(wanted, options, view, past),
        };
    };
    if set(found).as_deref() != Some(&mark::set(&wanted.volumes)) {
        let message = format!(
            "there is a group snapshot {} of other volumes, {}",
            wanted.name, found.id
        );
        return refuse(Code::AlreadyExists, message);
    }
    let is_double = |first: &GroupSnapshot, it: &GroupSnapshot| {
        matches!(it.status.as_str(), "available" | "creating" | "error")
            && set(it) == set(first)
            && first.status != "error"
    };
    match double::find(&ours, is_double) {
        None => existing(wanted, found, view, past),
        Some(double) if double.status == "creating" => waiting(double),
        Some(double) => delete(double),
    }
}

fn delete(found: &GroupSnapshot) -> Step<Together> {
    Step::Write(Write::DeleteGroupSnapshot {
        id: found.id.clone(),
    })
}

fn waiting(found: &GroupSnapshot) -> Step<Together> {
    let why = format!("group snapshot {} is {}", found.id, found.status);
    wait(Kind::GroupSnapshots, &found.id, why)
}

fn not_ours(wanted: &NewGroupSnapshot, other: &GroupSnapshot) -> String {
    format!(
        "there is a group snapshot {} that is not this cluster's, {}: rename it",
        wanted.name, other.id
    )
}

fn existing(
    wanted: &NewGroupSnapshot,
    found: &GroupSnapshot,
    view: &View,
    past: &Past,
) -> Step<Together> {
    match found.status.as_str() {
        "available" => {}
        "error" | "error_deleting" => return delete(found),
        _ => return waiting(found),
    }
    let parts = parts(&found.id, view);
    let volumes: BTreeSet<&str> = parts.iter().map(|it| it.volume_id.as_str()).collect();
    if !volumes
        .into_iter()
        .eq(wanted.volumes.iter().map(String::as_str))
    {
        // The list of snapshots may be older than this call's own write.
        return match past.written.is_some() && !past.looked {
            true => Step::Look(&[Kind::Snapshots]),
            // The group has changed before its snapshot was taken.
            false => delete(found),
        };
    }
    let answer = together(found, &parts);
    let unready = answer.parts.iter().position(|it| !it.ready);
    match unready.and_then(|index| parts.get(index)) {
        None => Step::Answer(answer),
        Some(part) if part.status.starts_with("error") => delete(found),
        Some(part) => {
            let why = format!("snapshot {} is {}", part.id, part.status);
            wait(Kind::Snapshots, &part.id, why)
        }
    }
}

/// Takes the snapshot once the volumes are in one group, unless this call has deleted a failed one.
fn take(wanted: &NewGroupSnapshot, options: &Options, view: &View, past: &Past) -> Step<Together> {
    if matches!(past.written, Some(Write::DeleteGroupSnapshot { .. })) {
        let message = "Cinder could not take a snapshot of exactly these volumes together; it was deleted, and the next \
                       call takes another one";
        return refuse(Code::Aborted, message);
    }
    match grouping::find(wanted, options, view, past) {
        Err(step) => *step,
        Ok(group) => Step::Write(Write::CreateGroupSnapshot(GroupSnapshotCreate {
            group_id: group.id.clone(),
            name: wanted.name.clone(),
            description: mark::of_group_snapshot(&options.cluster, &wanted.volumes),
        })),
    }
}

/// Snapshots in a group snapshot, sorted by volume id.
pub(super) fn parts<'a>(id: &str, view: &'a View) -> Vec<&'a Snapshot> {
    let all = view.snapshots.iter().map(|it| &**it);
    let mut parts: Vec<&Snapshot> = all.filter(|it| it.group_snapshot_id == id).collect();
    parts.sort_by(|a, b| a.volume_id.cmp(&b.volume_id));
    parts
}

fn together(found: &GroupSnapshot, parts: &[&Snapshot]) -> Together {
    let usable =
        |it: &Snapshot| matches!(it.status.as_str(), "available" | "backing-up" | "restoring");
    Together {
        id: found.id.clone(),
        created_at: found.created_at.clone(),
        parts: parts.iter().map(|it| of_snapshot(it, usable(it))).collect(),
    }
}

/// Answer about an existing group snapshot. `snapshots`: ids that the caller expects in the group snapshot.
pub(crate) fn get(id: &str, snapshots: &[String], view: &View) -> Result<Together, Status> {
    let found = view.group_snapshots.get(id);
    let found = found.filter(|it| it.status != "deleting").ok_or_else(|| {
        let message = format!("group snapshot {} does not exist", id.escape_debug());
        Status::new(Code::NotFound, message)
    })?;
    let parts = parts(id, view);
    let strange = snapshots
        .iter()
        .find(|id| parts.iter().all(|part| part.id != **id));
    if let Some(strange) = strange {
        let strange = strange.escape_debug();
        let message = format!("snapshot {strange} is not part of group snapshot {id}");
        return Err(Status::new(Code::InvalidArgument, message));
    }
    let mut answer = together(found, &parts);
    for part in &mut answer.parts {
        part.ready &= found.status == "available";
    }
    Ok(answer)
}
