//! DeleteSnapshot: of a snapshot or a backup.

use grpc::Code;
use openstack::{Kind, View};

use super::{Past, Step, Write, refuse, wait};

/// The next step.
pub(crate) fn plan(id: &str, view: &View, past: &Past) -> Step<()> {
    let reason = past.reason.as_deref().unwrap_or("it says no reason");
    let stuck = |what: &str| {
        refuse(
            Code::Aborted,
            format!("Cinder cannot delete {what} {id}: {reason}"),
        )
    };
    let waiting =
        |kind: Kind, what: &str, status: &str| wait(kind, id, format!("{what} {id} is {status}"));
    if let Some(found) = view.snapshots.get(id) {
        return match found.status.as_str() {
            "error_deleting" if past.written.is_some() => stuck("snapshot"),
            "available" | "error" | "error_deleting" => {
                Step::Write(Write::DeleteSnapshot { id: id.to_owned() })
            }
            status => waiting(Kind::Snapshots, "snapshot", status),
        };
    }
    if !view.backups.is_read() {
        return Step::Look(&[Kind::Backups]);
    }
    let Some(found) = view.backups.get(id) else {
        return Step::Answer(());
    };
    match found.status.as_str() {
        "error_deleting" if past.written.is_some() => stuck("backup"),
        "available" | "error" | "error_deleting" => {
            Step::Write(Write::DeleteBackup { id: id.to_owned() })
        }
        status => waiting(Kind::Backups, "backup", status),
    }
}
