//! ControllerPublishVolume.

use grpc::Code;
use openstack::View;

use super::{Past, Step, Write, refuse, wait_for};
use crate::request::Uses;

/// The next step; the answer is the device that Nova names.
pub(crate) fn plan(id: &str, node: &str, uses: Uses, view: &View, past: &Past) -> Step<String> {
    let Some(volume) = view.volumes.get(id) else {
        let message = format!("volume {} does not exist", id.escape_debug());
        return refuse(Code::NotFound, message);
    };
    let status = volume.status.as_str();
    let here = volume.attachments.iter().find(|it| it.server_id == node);
    if let Some(here) = here {
        return match status {
            "in-use" => Step::Answer(here.device.clone()),
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
        // Nova has taken the request, and given it up.
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
