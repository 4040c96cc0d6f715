//! [`ControllerPublishVolume`](csi_spec::ControllerPublishVolumeRequest).

use grpc::Code;
use openstack::View;
use openstack::volume::{Volume, VolumeAttachment};

use super::{Past, Step, Write, refuse, wait_for};
use crate::mark;
use crate::request::Uses;

/// Volume and server of the request, and [`Uses`] of the volume.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub volume: String,
    pub node: String,
    pub uses: Uses,
    /// True if the node wants to know whether this is the volume's first attachment.
    pub notes_first: bool,
}

/// Existing attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attached {
    /// Device name by Nova.
    pub device: String,
    /// True for the volume's first attachment.
    pub first: bool,
}

/// Next [`Step`]; the answer is the attachment.
pub(crate) fn plan(wanted: &Wanted, view: &View, past: &Past) -> Step<Attached> {
    let (id, node, uses) = (wanted.volume.as_str(), wanted.node.as_str(), wanted.uses);
    let Some(volume) = view.volumes.get(id) else {
        let message = format!("volume {} does not exist", id.escape_debug());
        return refuse(Code::NotFound, message);
    };
    let status = volume.status.as_str();
    let here = volume.attachments.iter().find(|it| it.server_id == node);
    if let Some(here) = here {
        return match status {
            "in-use" => attached(wanted, volume, here),
            _ => wait_for(volume),
        };
    }
    if let Some(other) = volume.attachments.first()
        && !(volume.multiattach && uses.several_nodes)
        && !matches!(status, "detaching")
    {
        let why = match volume.multiattach {
            true => "and the access mode is for one node",
            false => "and its type has no multiattach",
        };
        let message = format!(
            "volume {id} is attached to server {}, {why}",
            other.server_id
        );
        return refuse(Code::FailedPrecondition, message);
    }
    match status {
        "available" | "in-use" if past.written.is_none() => Step::Write(Write::Attach {
            server: node.to_owned(),
            volume: id.to_owned(),
        }),
        "reserved" if past.is_empty() => Step::Write(Write::Release {
            server: node.to_owned(),
            volume: id.to_owned(),
        }),
        // Nova accepted the request, and gave up.
        "available" => refuse(
            Code::Aborted,
            format!("Nova could not attach volume {id} to server {node}: see the server's actions"),
        ),
        status if status.starts_with("error") || status == "maintenance" => {
            refuse(Code::FailedPrecondition, format!("volume {id} is {status}"))
        }
        _ => wait_for(volume),
    }
}

/// Answer for an attachment. The first attachment is recorded in the volume's metadata, to give each call the same
/// answer.
fn attached(wanted: &Wanted, volume: &Volume, here: &VolumeAttachment) -> Step<Attached> {
    let first = volume.metadata.get(mark::FIRST_ATTACHMENT);
    match first {
        None if wanted.notes_first && !here.attachment_id.is_empty() => {
            Step::Write(Write::NoteFirstAttachment {
                volume: volume.id.clone(),
                attachment: here.attachment_id.clone(),
            })
        }
        first => Step::Answer(Attached {
            device: here.device.clone(),
            first: first.is_some_and(|it| *it == here.attachment_id),
        }),
    }
}
