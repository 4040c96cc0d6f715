//! POST /volumes/{id}/action

use serde_json::Value;

use super::volumes::find;
use super::{attach, attachments, body, hosts, quotas, volume_types, volumes};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;

/// First microversion in which a volume grows while in use.
const GROWS_IN_USE: u32 = 42;

/// Performs the action in the body.
pub(super) fn act(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let body = call.body.as_object().cloned().unwrap_or_default();
    let Some((action, argument)) = body.into_iter().next() else {
        return Err(Fault::bad("Malformed request body"));
    };
    body::only(&call.body, &action, &[])?;
    let argument = argument.as_object().cloned().unwrap_or_default();
    match action.as_str() {
        "os-extend" => extend(call, &doc, &argument),
        "os-retype" => retype(call, &doc, &argument),
        "os-set_bootable" => set_bootable(call, &doc, &argument),
        "os-reserve" => reserve(call, &doc),
        "os-unreserve" => unreserve(call, &doc),
        "os-begin_detaching" => {
            begin_detaching(call, &doc)?;
            accepted()
        }
        "os-roll_detaching" => {
            if doc.text("status") == "detaching" {
                set_status(call, &doc, "in-use");
            }
            accepted()
        }
        "os-detach" => detach(call, &doc, &argument),
        "os-force_detach" => {
            admin(call, "force_detach")?;
            detach(call, &doc, &argument)
        }
        "os-force_delete" => {
            admin(call, "force_delete")?;
            volumes::delete(call, &doc, false, true)
        }
        "os-reset_status" => {
            admin(call, "reset_status")?;
            reset_status(call, &doc, &argument)
        }
        _ => Err(Fault::bad(format!("There is no such action: {action}"))),
    }
}

fn accepted() -> Answer {
    Ok(Reply::empty_of(202, "application/json"))
}

fn admin(call: &Call<'_>, action: &str) -> Result<(), Fault> {
    match call.who.admin() {
        true => Ok(()),
        false => Err(super::not_allowed(&format!(
            "volume_extension:volume_admin_actions:{action}"
        ))),
    }
}

fn set_status(call: &mut Call<'_>, doc: &Doc, status: &str) {
    call.state.edit(Kind::Volume, doc.text("id"), |doc| {
        doc.set("status", status)
    });
}

fn schedule(call: &mut Call<'_>, action: &str, id: &str) {
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, action, Kind::Volume, id);
}

fn extend(call: &mut Call<'_>, doc: &Doc, argument: &Doc) -> Answer {
    body::strict("os-extend", argument, &["new_size"])?;
    let wanted = argument.get("new_size").ok_or_else(|| {
        Fault::bad("Invalid input for field/attribute os-extend. 'new_size' is a required property")
    })?;
    let (id, size) = (doc.text("id"), body::size("new_size", wanted)?);
    let (before, status) = (doc.number("size"), doc.text("status"));
    if size <= before {
        return Err(Fault::bad(format!(
            "Invalid input received: New size for extend must be greater than current size. (current: {before}, \
             extended: {size})."
        )));
    }
    let in_use = call.version >= GROWS_IN_USE && status == "in-use";
    if status != "available" && !in_use {
        return Err(Fault::bad(format!(
            "Invalid volume: Volume {id} status must be '{{'status': 'available'}}' to extend, currently {status}."
        )));
    }
    quotas::check_growth(call, doc, size)?;
    call.state.edit(Kind::Volume, id, |doc| {
        doc.set("_before", status);
        doc.set("_grows", size - before);
        doc.set("status", "extending");
    });
    schedule(call, "extended", id);
    accepted()
}

fn retype(call: &mut Call<'_>, doc: &Doc, argument: &Doc) -> Answer {
    body::strict("os-retype", argument, &["new_type", "migration_policy"])?;
    let Some(Value::String(wanted)) = argument.get("new_type") else {
        return Err(Fault::bad(
            "Invalid input for field/attribute os-retype. 'new_type' is a required property",
        ));
    };
    let policy = match argument.get("migration_policy") {
        None | Some(Value::Null) => "never",
        Some(Value::String(policy)) if matches!(policy.as_str(), "on-demand" | "never") => policy,
        Some(other) => {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute migration_policy. Value: {other}. {other} is not one of \
                 ['on-demand', 'never']"
            )));
        }
    };
    let wanted = volume_types::resolve(call, wanted)?;
    let before = volume_types::any(call, doc.text("volume_type"))?;
    let (id, status) = (doc.text("id"), doc.text("status"));
    let shared = volume_types::is_multiattach(&wanted);
    if shared != doc.flag("multiattach") && status != "available" {
        return Err(Fault::bad(format!(
            "Invalid input received: Invalid volume_type passed, retypes affecting multiattach are only allowed on \
             available volumes, the specified volume however currently has a status of: {status}."
        )));
    }
    if shared && wanted.given("_encryption") {
        return Err(Fault::bad(
            "Invalid input received: Retype requested both encryption and multi-attach, which is not supported.",
        ));
    }
    quotas::check_type(call, doc, wanted.text("name"))?;
    let same = before.text("id") == wanted.text("id");
    if same || doc.given("_group") || !matches!(status, "available" | "in-use") {
        return Err(Fault::bad(
            "Invalid volume: Retype needs volume to be in available or in-use state, not be part of an active migration \
             or a consistency group, requested type has to be different that the one from the volume, and for in-use \
             volumes front-end qos specs cannot change.",
        ));
    }
    let moves = !volume_types::may_become(&before, &wanted);
    // The manager moves no volume with snapshots, which is found out after the request was accepted.
    let is_kept = moves && call.state.count_by(Kind::Snapshot, "volume_id", id) > 0;
    let host = moves.then(|| {
        let wanted = hosts::HostFilter {
            zone: doc.text("availability_zone"),
            back_end: &volume_types::back_end(&wanted),
            hints: &hosts::Hints::default(),
            beside: None,
        };
        hosts::place(call, id, &wanted)
    });
    call.state.edit(Kind::Volume, id, |doc| {
        doc.set("_before", status);
        doc.set("status", "retyping");
        doc.set("multiattach", shared);
        // The scheduler finds no back end for a type of another one, unless the volume may move there.
        if !is_kept && (!moves || policy == "on-demand") {
            doc.set("_becomes", wanted.text("name"));
            if let Some(host) = host {
                doc.set("_moves_to", host);
            }
        }
    });
    schedule(call, "retyped", id);
    accepted()
}

fn set_bootable(call: &mut Call<'_>, doc: &Doc, argument: &Doc) -> Answer {
    let flag = body::boolean(argument, "bootable")?.ok_or_else(|| {
        Fault::bad(
            "Invalid input for field/attribute os-set_bootable. 'bootable' is a required property",
        )
    })?;
    call.state.edit(Kind::Volume, doc.text("id"), |doc| {
        doc.set("bootable", flag.to_string());
    });
    Ok(Reply::empty_of(200, "application/json"))
}

fn reserve(call: &mut Call<'_>, doc: &Doc) -> Answer {
    let (status, shared) = (doc.text("status"), doc.flag("multiattach"));
    if status != "available" && !(shared && status == "in-use") {
        let wanted = if shared {
            "available or in-use"
        } else {
            "available"
        };
        return Err(Fault::bad(format!(
            "Invalid volume: Volume status must be {wanted} to reserve, but the status is {status}."
        )));
    }
    set_status(call, doc, "attaching");
    accepted()
}

/// Undoes `os-reserve`. A volume `reserved` by an attachment is left alone.
fn unreserve(call: &mut Call<'_>, doc: &Doc) -> Answer {
    if doc.text("status") == "attaching" {
        let status = match attach::all(doc).is_empty() {
            true => "available",
            false => "in-use",
        };
        set_status(call, doc, status);
    }
    accepted()
}

fn begin_detaching(call: &mut Call<'_>, doc: &Doc) -> Result<(), Fault> {
    attach::check_detaching(doc)?;
    set_status(call, doc, "detaching");
    Ok(())
}

fn detach(call: &mut Call<'_>, doc: &Doc, argument: &Doc) -> Answer {
    let attachments = attach::all(doc);
    let wanted = argument.text("attachment_id");
    let found = match wanted {
        "" if attachments.len() > 1 => {
            return Err(Fault::bad(
                "Error detaching volume - InvalidVolume: Invalid volume: Detach volume failed: More than one attachment, \
                 but no attachment_id provided.",
            ));
        }
        "" => attachments.first(),
        id => attachments.iter().find(|one| one.text("id") == id),
    };
    let Some(one) = found else {
        // Without an attachment, only the status changes.
        if wanted.is_empty() {
            set_status(call, doc, "available");
            return accepted();
        }
        return Err(Fault::bad(format!(
            "Error detaching volume - VolumeAttachmentNotFound: Volume attachment could not be found with filter: \
             attachment_id = {wanted}."
        )));
    };
    attachments::check_release(call, doc.text("id"), one)?;
    attach::release(call.state, doc.text("id"), one.text("id"));
    accepted()
}

fn reset_status(call: &mut Call<'_>, doc: &Doc, argument: &Doc) -> Answer {
    let fields = ["status", "attach_status", "migration_status"];
    body::strict("os-reset_status", argument, &fields)?;
    body::texts(argument, &fields)?;
    if !fields.iter().any(|field| argument.given(field)) {
        return Err(Fault::bad(
            "Invalid input for field/attribute os-reset_status. Value: {}. {} is not valid under any of the given \
             schemas",
        ));
    }
    let status = argument.text("status").to_ascii_lowercase();
    if status == "deleting" {
        return Err(Fault::bad("Cannot reset-state to deleting"));
    }
    if status == "in-use" && attach::all(doc).is_empty() {
        return Err(Fault::bad(
            "Cannot reset-state to in-use because volume does not have any attachments.",
        ));
    }
    let id = doc.text("id");
    if !status.is_empty() {
        set_status(call, doc, &status);
    }
    if argument
        .text("attach_status")
        .eq_ignore_ascii_case("detached")
    {
        attach::forget(call.state, id);
    }
    accepted()
}
