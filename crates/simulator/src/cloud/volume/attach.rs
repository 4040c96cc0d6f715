//! Attachments of a volume, created and deleted by Nova and by clients of Cinder, and the resulting status of the
//! volume.
//!
//! A volume stores its attachments in the form of Cinder's API. Its field `attachments` has only the complete ones.

use serde_json::{Value, json};

use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::state::State;

/// Field of a volume with its attachments.
const STORED: &str = "_attachments";
/// Fields of the complete and the incomplete attachments in stores of earlier versions.
const OLDER: [&str; 2] = ["attachments", "_reserved"];

/// Returns the [`Doc`]s of the attachments of a volume: `id`, `status`, `instance`, `volume_id`, `connection_info`,
/// `device` and so on.
pub(crate) fn all(volume: &Doc) -> Vec<Doc> {
    let stored = volume.list(STORED).iter().cloned();
    let complete = volume.list(OLDER[0]).iter().map(|one| {
        let id = one["attachment_id"].as_str().unwrap_or_default();
        json!({"id": id, "status": "attached", "instance": one["server_id"], "volume_id": one["volume_id"],
            "attached_at": one["attached_at"], "detached_at": "", "attach_mode": "rw",
            "connection_info": connection(id), "device": one["device"]})
    });
    let incomplete = volume.list(OLDER[1]).iter().cloned();
    stored
        .chain(complete)
        .chain(incomplete)
        .map(to_doc)
        .collect()
}

/// Returns the field `attachments` of a volume's view.
pub(crate) fn complete_ones(volume: &Doc, for_admin: bool) -> Vec<Value> {
    let view = |one: Doc| {
        let host = one.get("host").filter(|_| for_admin).cloned();
        json!({"id": one["volume_id"], "attachment_id": one["id"], "volume_id": one["volume_id"],
            "server_id": one["instance"], "host_name": host, "device": one.get("device"),
            "attached_at": one["attached_at"]})
    };
    let complete = all(volume).into_iter();
    complete
        .filter(|one| one.text("status") == "attached")
        .map(view)
        .collect()
}

/// Returns the [`Doc`] of the attachment of a volume to a server.
pub(crate) fn of_server(volume: &Doc, server: &str) -> Option<Doc> {
    all(volume)
        .into_iter()
        .find(|one| one.text("instance") == server)
}

/// Returns the [`Fault`] for a volume that cannot be reserved for a server; `None` if it can.
pub(crate) fn refusal(volume: &Doc, server: &str) -> Option<Fault> {
    let (id, status) = (volume.text("id"), volume.text("status"));
    if status.contains("error") {
        return Some(Fault::bad(format!(
            "Invalid volume: Volume attachments can not be created if the volume is in an error state. The Volume \
             {id} currently has a status of: {status} "
        )));
    }
    let multiattach = volume.flag("multiattach");
    let free = matches!(status, "available" | "downloading");
    let shared = multiattach && status == "in-use";
    // In Cinder, an instance may reserve the same volume twice.
    let again = matches!(status, "in-use" | "reserved") && of_server(volume, server).is_some();
    if free || shared || again {
        return None;
    }
    let wanted = match multiattach {
        true => "available or in-use or downloading",
        false => "available or downloading",
    };
    Some(Fault::bad(format!(
        "Invalid volume: Volume {id} status must be {wanted} to reserve, but the current status is {status}."
    )))
}

/// Returns a [`Fault`] for a volume that cannot be detached.
pub(crate) fn check_detaching(volume: &Doc) -> Result<(), Fault> {
    let attached = all(volume)
        .iter()
        .any(|one| one.text("status") == "attached");
    match volume.text("status") == "in-use" && attached {
        true => Ok(()),
        false => Err(Fault::bad(
            "Invalid volume: Unable to detach volume. Volume status must be 'in-use' and attach_status must be \
             'attached' to detach.",
        )),
    }
}

/// Reserves a volume for a server; returns the id of the attachment.
pub(crate) fn reserve(state: &mut State, volume: &str, server: &str) -> String {
    let id = state.new_id();
    let one = json!({"id": id, "status": "reserved", "instance": server, "volume_id": volume, "attached_at": "",
        "detached_at": "", "attach_mode": "null", "connection_info": {}});
    change(state, volume, |doc, all| {
        all.push(to_doc(one));
        // A second reservation by the server with the volume leaves the status unchanged.
        if matches!(doc.text("status"), "available" | "downloading")
            || doc.flag("multiattach") && doc.text("status") == "in-use"
        {
            doc.set("status", "reserved");
        }
    });
    id
}

/// Connects the host of a server: the attachment and its volume become `attaching`.
pub(crate) fn connect(state: &mut State, volume: &str, id: &str, connector: &Doc) {
    let now = naive_micros(state.now());
    let device = match connector.text("mountpoint") {
        "" => "na",
        device => device,
    };
    change(state, volume, |doc, all| {
        if let Some(one) = all.iter_mut().find(|one| one.text("id") == id) {
            one.set("status", "attaching");
            one.set("attach_mode", "rw");
            one.set("attached_at", now);
            one.set("connection_info", connection(id));
            one.set("device", device);
            one.set("host", connector.text("host"));
            doc.set("status", "attaching");
        }
    });
}

/// Completes an attachment: the volume is in use.
pub(crate) fn complete(state: &mut State, volume: &str, id: &str) {
    change(state, volume, |doc, all| {
        if let Some(one) = all.iter_mut().find(|one| one.text("id") == id) {
            one.set("status", "attached");
            doc.set("status", "in-use");
        }
    });
}

/// Removes an attachment; the status of the volume follows from the others.
pub(crate) fn release(state: &mut State, volume: &str, id: &str) {
    change(state, volume, |doc, all| {
        all.retain(|one| one.text("id") != id);
        let status = status_with(all);
        doc.set("status", status);
    });
}

/// Removes the connection of an attachment: the state after a detachment by Nova that stopped half way.
pub(crate) fn disconnect(state: &mut State, volume: &str, id: &str) {
    change(state, volume, |doc, all| {
        if let Some(one) = all.iter_mut().find(|one| one.text("id") == id) {
            one.set("status", "reserved");
            one.set("connection_info", json!({}));
            doc.set("status", "reserved");
        }
    });
}

/// Removes every attachment of a volume, and keeps the status.
pub(crate) fn forget(state: &mut State, volume: &str) {
    change(state, volume, |_, all| all.clear());
}

/// Adds a complete attachment to a server under construction.
pub(crate) fn attach(state: &mut State, volume: &str, id: &str, device: &str, host: &str) {
    let connector = to_doc(json!({"mountpoint": device, "host": host}));
    connect(state, volume, id, &connector);
    complete(state, volume, id);
}

fn change(state: &mut State, volume: &str, change: impl FnOnce(&mut Doc, &mut Vec<Doc>)) {
    let now = naive_micros(state.now());
    state.edit(Kind::Volume, volume, |doc| {
        let mut attachments = all(doc);
        change(doc, &mut attachments);
        for older in OLDER {
            doc.remove(older);
        }
        doc.set(STORED, attachments);
        doc.set("updated_at", now);
    });
}

/// Returns the status by Cinder's order of precedence; failed attachments do not count.
fn status_with(all: &[Doc]) -> &'static str {
    let has = |status: &str| all.iter().any(|one| one.text("status") == status);
    let by_attachment = [
        ("attached", "in-use"),
        ("attaching", "attaching"),
        ("detaching", "detaching"),
        ("reserved", "reserved"),
    ];
    by_attachment
        .into_iter()
        .find(|(status, _)| has(status))
        .map_or("available", |(_, status)| status)
}

fn connection(id: &str) -> Value {
    json!({"attachment_id": id, "driver_volume_type": "fake", "access_mode": "rw", "cacheable": false,
        "encrypted": false, "qos_specs": null})
}
