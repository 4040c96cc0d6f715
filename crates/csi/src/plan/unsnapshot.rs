//! [`DeleteSnapshot`](csi_spec::DeleteSnapshotRequest): of a snapshot or a backup.

use grpc::Code;
use openstack::{Kind, View};

use super::{Past, Step, Write, refuse, wait};

/// Next step.
pub(crate) fn plan(id: &str, view: &View, past: &Past) -> Step<()> {
    let is_kept = past.written.is_some();
    let kept = |what: &str| {
        let message = format!("Cinder has kept {what} {id}");
        refuse(Code::FailedPrecondition, message)
    };
    let waiting =
        |kind: Kind, what: &str, status: &str| wait(kind, id, format!("{what} {id} is {status}"));
    if let Some(found) = view.snapshots.get(id) {
        if !found.group_snapshot_id.is_empty() {
            let message = format!(
                "snapshot {id} is part of group snapshot {}: delete that one",
                found.group_snapshot_id
            );
            return refuse(Code::FailedPrecondition, message);
        }
        return match found.status.as_str() {
            "available" | "error_deleting" if is_kept => kept("snapshot"),
            "available" | "error" | "error_deleting" => {
                Step::Write(Write::DeleteSnapshot { id: id.to_owned() })
            }
            status => waiting(Kind::Snapshots, "snapshot", status),
        };
    }
    // The id was a snapshot's, so backups do not matter, even if the cloud hides them.
    if matches!(past.written, Some(Write::DeleteSnapshot { .. })) {
        return Step::Answer(());
    }
    if !view.backups.is_read() {
        return Step::Look(&[Kind::Backups]);
    }
    let Some(found) = view.backups.get(id) else {
        return Step::Answer(());
    };
    match found.status.as_str() {
        "available" | "error_deleting" if is_kept => kept("backup"),
        "available" | "error" | "error_deleting" => {
            Step::Write(Write::DeleteBackup { id: id.to_owned() })
        }
        status => waiting(Kind::Backups, "backup", status),
    }
}
