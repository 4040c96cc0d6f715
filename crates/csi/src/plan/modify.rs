//! [`ControllerModifyVolume`](csi_spec::ControllerModifyVolumeRequest).

use grpc::Code;
use openstack::volume::Volume;
use openstack::{Kind, View};

use super::{Past, Step, Write, group_unsnapshot, refuse, wait_for};
use crate::Options;
use crate::attributes::Attributes;

/// Next [`Step`]. The type comes first: if Cinder refuses the retype, nothing has changed.
pub(crate) fn plan(
    id: &str,
    wanted: &Attributes,
    options: &Options,
    view: &View,
    past: &Past,
) -> Step<()> {
    let Some(volume) = view.volumes.get(id) else {
        let message = format!("volume {} does not exist", id.escape_debug());
        return refuse(Code::NotFound, message);
    };
    if volume.status == "retyping" {
        return wait_for(volume);
    }
    if let Some(step) = retype(volume, wanted, options, view, past) {
        return step;
    }
    let has = |(key, value): (&String, &String)| volume.metadata.get(key) == Some(value);
    match wanted.metadata.iter().all(has) {
        true => Step::Answer(()),
        false => Step::Write(Write::SetMetadata {
            volume: id.to_owned(),
            metadata: wanted.metadata.clone(),
        }),
    }
}

/// Step to another type; `None` if the volume has the wanted type, or no type is wanted.
fn retype(
    volume: &Volume,
    wanted: &Attributes,
    options: &Options,
    view: &View,
    past: &Past,
) -> Option<Step<()>> {
    let name = wanted.volume_type.as_ref()?;
    if *name == volume.volume_type {
        return None;
    }
    let types = &view.volume_types;
    let Some(found) = types.get(name).or_else(|| types.named(name).first()) else {
        let message = format!("there is no volume type {}", name.escape_debug());
        return Some(refuse(Code::InvalidArgument, message));
    };
    if found.name == volume.volume_type {
        return None;
    }
    let id = &volume.id;
    if past.is_refused() && !past.looked {
        return Some(Step::Look(&[Kind::VolumeGroups, Kind::GroupSnapshots]));
    }
    if past.is_refused()
        && past.written.is_none()
        && let Some(step) = group_unsnapshot::leave(id, options, view)
    {
        return Some(step);
    }
    Some(match volume.status.as_str() {
        "available" | "in-use" if matches!(past.written, Some(Write::Retype { .. })) => refuse(
            Code::FailedPrecondition,
            given_up(volume, &found.name, wanted),
        ),
        "available" | "in-use" => Step::Write(Write::Retype {
            volume: id.clone(),
            to: found.name.clone(),
            moves: wanted.moves,
        }),
        status if status.starts_with("error") || status == "maintenance" => {
            refuse(Code::FailedPrecondition, format!("volume {id} is {status}"))
        }
        _ => wait_for(volume),
    })
}

/// Message for a retype that Cinder accepted and gave up.
fn given_up(volume: &Volume, to: &str, wanted: &Attributes) -> String {
    let hint = match wanted.moves {
        true => {
            "no back end of that type may have room for it, or it has snapshots, which are not moved"
        }
        false => "a type of another back end needs `migration-policy: on-demand`",
    };
    format!(
        "Cinder has left volume {} with the type {} instead of {to}: {hint}",
        volume.id, volume.volume_type
    )
}
