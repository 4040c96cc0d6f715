//! Health of volumes, as Cinder and Nova report it.

use csi_spec::VolumeHealthErrorType as Status;
use csi_spec::volume_health::VolumeHealthEntry as Entry;
use openstack::View;
use openstack::volume::Volume;

/// Findings about a volume, usually none. The [`View`] must have servers.
pub(crate) fn of(volume: &Volume, view: &View) -> Vec<Entry> {
    let entries = [in_error(volume), lost(volume, view)];
    entries.into_iter().flatten().collect()
}

/// True if Cinder may have a message about the cause.
pub(crate) fn is_in_error(volume: &Volume) -> bool {
    volume.status.starts_with("error")
}

/// Finding for a status of Cinder after a failure.
fn in_error(volume: &Volume) -> Option<Entry> {
    let is_attached = !volume.attachments.is_empty();
    // A server with the volume keeps using it.
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

/// Finding for attachments of servers that Nova lacks: these block any other attachment until deleted.
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
