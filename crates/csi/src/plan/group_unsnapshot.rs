//! [`DeleteVolumeGroupSnapshot`](csi_spec::DeleteVolumeGroupSnapshotRequest), and removal of volumes from the driver's
//! groups.

use grpc::Code;
use openstack::volume::VolumeGroup;
use openstack::{Error, ErrorKind, Kind, View};

use super::{Past, Step, Write, grouping, refuse, wait};
use crate::Options;

/// Next step. With the last snapshot of one of our groups, first its volumes leave and then the group is deleted.
pub(crate) fn plan(
    id: &str,
    snapshots: &[String],
    options: &Options,
    view: &View,
    past: &Past,
) -> Step<()> {
    let Some(found) = view.group_snapshots.get(id) else {
        return dissolve(options, view, past);
    };
    let of_other = |id: &&String| {
        let part = view.snapshots.get(id);
        part.is_some_and(|part| part.group_snapshot_id != found.id)
    };
    if let Some(other) = snapshots.iter().find(of_other) {
        let message = format!("snapshot {other} is not part of group snapshot {id}");
        return refuse(Code::InvalidArgument, message);
    }
    match found.status.as_str() {
        "available" | "error" | "error_deleting" if past.written.is_some() => refuse(
            Code::FailedPrecondition,
            format!("Cinder has kept group snapshot {id}"),
        ),
        "available" | "error" | "error_deleting" => {
            Step::Write(Write::DeleteGroupSnapshot { id: id.to_owned() })
        }
        status => {
            let why = format!("group snapshot {id} is {status}");
            wait(Kind::GroupSnapshots, id, why)
        }
    }
}

/// Empties and deletes our groups without a snapshot. Groups of another cluster with the same name are left alone,
/// since that cluster may be about to take a snapshot. A group that Cinder refuses to delete stays: the group snapshot
/// is gone, and the group serves the next snapshot of its volumes.
fn dissolve(options: &Options, view: &View, past: &Past) -> Step<()> {
    let busy = |error: &Error| matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Busy);
    if past.refused.as_ref().is_some_and(|(_, error)| !busy(error)) {
        return Step::Answer(());
    }
    let is_idle = |it: &&VolumeGroup| {
        let is_ours = grouping::is_of_cluster(it, options);
        is_ours && view.group_snapshots.of_parent(&it.id).is_empty()
    };
    let groups = view.volume_groups.iter().map(|it| &**it);
    for group in groups.filter(is_idle) {
        match group.status.as_str() {
            "available" | "error" if group.volumes.is_empty() => {
                let id = group.id.clone();
                return Step::Write(Write::DeleteGroup { id });
            }
            "available" => return grouping::change(&group.id, Vec::new(), group.volumes.clone()),
            "updating" | "deleting" => {
                let why = format!("volume group {} is {}", group.id, group.status);
                return wait(Kind::VolumeGroups, &group.id, why);
            }
            _ => {}
        }
    }
    Step::Answer(())
}

/// Step for a volume that Cinder refuses to delete or change, perhaps because of its group; `None` if the volume is in
/// no group.
pub(super) fn leave<T>(volume: &str, options: &Options, view: &View) -> Option<Step<T>> {
    let mut groups = view.volume_groups.iter();
    let group = groups.find(|it| it.volumes.iter().any(|id| id == volume))?;
    if let Err(step) = grouping::idle(group) {
        return Some(*step);
    }
    Some(match grouping::is_ours(group, options) {
        true if !grouping::has_snapshots(&group.id, view) => {
            grouping::change(&group.id, Vec::new(), vec![volume.to_owned()])
        }
        true => refuse(
            Code::FailedPrecondition,
            format!(
                "volume {volume} is in volume group {}, which has group snapshots: delete their VolumeGroupSnapshots first",
                group.id
            ),
        ),
        false => refuse(
            Code::FailedPrecondition,
            format!(
                "volume {volume} is in volume group {} ({}): take it out first",
                group.id, group.name
            ),
        ),
    })
}
