//! [`DeleteVolume`](csi_spec::DeleteVolumeRequest).

use grpc::Code;
use openstack::{Kind, View};

use super::{Past, Step, Write, group_unsnapshot, grouping, refuse, wait_for};
use crate::Options;

/// Next [`Step`]. A volume named by a PV is deleted, whoever created it.
pub(crate) fn plan(id: &str, options: &Options, view: &View, past: &Past) -> Step<()> {
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
    if past.is_refused() && !past.looked {
        return Step::Look(&[Kind::VolumeGroups, Kind::GroupSnapshots]);
    }
    if past.is_refused()
        && past.written.is_none()
        && let Some(step) = group_unsnapshot::leave(id, options, view)
    {
        return step;
    }
    // The volume is leaving a group.
    if let Some(Write::ChangeGroup { group, .. }) = &past.written
        && let Some(group) = view.volume_groups.get(group)
        && let Err(step) = grouping::idle(group)
    {
        return *step;
    }
    match volume.status.as_str() {
        "error_deleting" if matches!(past.written, Some(Write::DeleteVolume { .. })) => {
            refuse(Code::Aborted, format!("Cinder cannot delete volume {id}"))
        }
        "available" | "error" | "error_deleting" | "error_restoring" | "error_extending"
        | "error_managing" | "in-use" => Step::Write(Write::DeleteVolume { id: id.to_owned() }),
        _ => wait_for(volume),
    }
}
