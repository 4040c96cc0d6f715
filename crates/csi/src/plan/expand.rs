//! [`ControllerExpandVolume`](csi_spec::ControllerExpandVolumeRequest).

use grpc::Code;
use openstack::View;

use super::{Step, Write, refuse, wait_for};
use crate::size::Range;

/// Next [`Step`]; the answer is the size in GiB.
pub(crate) fn plan(id: &str, range: Range, view: &View) -> Step<i64> {
    let Some(volume) = view.volumes.get(id) else {
        let message = format!("volume {} does not exist", id.escape_debug());
        return refuse(Code::NotFound, message);
    };
    let wanted = range.least.unwrap_or(1);
    match volume.status.as_str() {
        "error_extending" => {
            let message = format!("Cinder could not extend volume {id}");
            refuse(Code::FailedPrecondition, message)
        }
        "available" | "in-use" if volume.size >= wanted => match range.check(volume.size) {
            Ok(()) => Step::Answer(volume.size),
            Err(status) => Step::Refuse(status),
        },
        "available" | "in-use" => Step::Write(Write::ExtendVolume {
            id: id.to_owned(),
            size: wanted,
            attached: !volume.attachments.is_empty(),
        }),
        status if status.starts_with("error") => {
            refuse(Code::FailedPrecondition, format!("volume {id} is {status}"))
        }
        _ => wait_for(volume),
    }
}
