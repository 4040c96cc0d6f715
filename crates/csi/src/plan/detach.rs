//! [`ControllerUnpublishVolume`](csi_spec::ControllerUnpublishVolumeRequest).

use openstack::View;
use openstack::volume::Volume;

use super::{Past, Step, Write, wait_for};

/// Next [`Step`]. An empty `node` is every node.
pub(crate) fn plan(id: &str, node: &str, view: &View, past: &Past) -> Step<()> {
    let Some(volume) = view.volumes.get(id) else {
        return Step::Answer(());
    };
    let mut attachments = volume.attachments.iter();
    let found = attachments.find(|it| node.is_empty() || it.server_id == node);
    let status = volume.status.as_str();
    match found {
        None if status == "reserved" && past.is_empty() => Step::Write(Write::Release {
            server: node.to_owned(),
            volume: id.to_owned(),
        }),
        None if matches!(status, "detaching" | "attaching" | "reserved") => wait_for(volume),
        None => Step::Answer(()),
        Some(_) if status == "detaching" || is_pending(volume, past) => wait_for(volume),
        // Nova knows no such server, or no such attachment: then Cinder may delete its record.
        Some(found) if past.found_nothing() && !found.attachment_id.is_empty() => {
            Step::Write(Write::DeleteAttachment {
                volume: id.to_owned(),
                attachment: found.attachment_id.clone(),
            })
        }
        Some(found) => Step::Write(Write::Detach {
            server: found.server_id.clone(),
            volume: id.to_owned(),
        }),
    }
}

/// True while the write of this call is not done. With several attachments the next call removes the next.
fn is_pending(volume: &Volume, past: &Past) -> bool {
    let mut attachments = volume.attachments.iter();
    match &past.written {
        None => false,
        Some(Write::Detach { server, .. }) => attachments.any(|it| it.server_id == *server),
        Some(Write::DeleteAttachment { attachment, .. }) => {
            attachments.any(|it| it.attachment_id == *attachment)
        }
        Some(_) => true,
    }
}
