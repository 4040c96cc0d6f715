//! DeleteVolume.

use grpc::Code;
use openstack::View;

use super::{Past, Step, Write, refuse, wait_for};

/// The next step: a volume that a PV names is deleted, whoever made it.
pub(crate) fn plan(id: &str, view: &View, past: &Past) -> Step<()> {
    let Some(volume) = view.volumes.get(id) else {
        return Step::Answer(());
    };
    if let Some(attachment) = volume.attachments.first() {
        let message = format!(
            "volume {id} is attached to server {}: detach it first",
            attachment.server_id
        );
        return refuse(Code::FailedPrecondition, message);
    }
    match volume.status.as_str() {
        "error_deleting" if past.written.is_some() => {
            refuse(Code::Aborted, format!("Cinder cannot delete volume {id}"))
        }
        "available" | "error" | "error_deleting" | "error_restoring" | "error_extending"
        | "error_managing" | "in-use" => Step::Write(Write::DeleteVolume { id: id.to_owned() }),
        _ => wait_for(volume),
    }
}
