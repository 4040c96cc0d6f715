//! What is wrong with volumes, as Cinder and Nova show it.

use csi_spec::VolumeHealthErrorType as Status;
use csi_spec::volume_health::VolumeHealthEntry as Entry;
use openstack::View;
use openstack::volume::Volume;

/// What is known to be wrong with a volume; nothing of most. The servers of the view are read.
pub(crate) fn of(volume: &Volume, view: &View) -> Vec<Entry> {
    let entries = [in_error(volume), lost(volume, view)];
    entries.into_iter().flatten().collect()
}

/// True if Cinder may have a message about what is wrong.
pub(crate) fn is_in_error(volume: &Volume) -> bool {
    volume.status.starts_with("error")
}

/// A status of Cinder's in which something has failed.
fn in_error(volume: &Volume) -> Option<Entry> {
    let is_attached = !volume.attachments.is_empty();
    // A server that has the volume goes on to use it.
    let usable = match is_attached {
        true => Status::Degraded,
        false => Status::Inaccessible,
    };
    let (status, reason) = match volume.status.as_str() {
        "error" => (Status::Inaccessible, "VolumeInError"),
        "error_extending" => (usable, "ExtensionFailed"),
        "error_backing-up" => (Status::Degraded, "BackupFailed"),
        "error_restoring" => (Status::Inaccessible, "RestoreFailed"),
        "error_deleting" | "error_managing_deleting" => (Status::Inaccessible, "DeletionFailed"),
        "error_detaching" => (usable, "DetachmentFailed"),
        "error_managing" => (Status::Inaccessible, "ManagementFailed"),
        "maintenance" => (usable, "InMaintenance"),
        status if status.starts_with("error") => (usable, "VolumeInError"),
        _ => return None,
    };
    let message = format!("Cinder says that the volume is {}", volume.status);
    Some(entry(status, reason, message))
}

/// Attachments of servers that Nova does not have: no other server gets the volume before they are deleted.
fn lost(volume: &Volume, view: &View) -> Option<Entry> {
    let servers = volume.attachments.iter().map(|it| it.server_id.as_str());
    let lost: Vec<&str> = servers
        .filter(|id| view.servers.get(id).is_none())
        .collect();
    (!lost.is_empty()).then(|| {
        let message = format!(
            "the volume is attached to server {}, which Nova does not have: ControllerUnpublishVolume deletes the attachment",
            lost.join(", ")
        );
        entry(Status::Inaccessible, "AttachmentLost", message)
    })
}

fn entry(status: Status, reason: &str, message: String) -> Entry {
    Entry {
        status: status.into(),
        reason: reason.to_owned(),
        message,
    }
}
