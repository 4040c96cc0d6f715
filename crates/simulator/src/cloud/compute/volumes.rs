//! Volumes of a server (os-volume_attachments).

use std::sync::Arc;

use serde_json::{Value, json};

use super::condition::allowed;
use super::servers::find;
use super::volume_flow;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::volume;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/servers/{server_id}/os-volume_attachments", |call| {
            let doc = find(call)?;
            let all: Vec<Value> = doc
                .list("_volumes")
                .iter()
                .map(|one| view(call, &doc, one))
                .collect();
            Ok(Reply::ok(json!({"volumeAttachments": all})))
        })
        .post("/v2.1/servers/{server_id}/os-volume_attachments", attach)
        .get(
            "/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}",
            |call| {
                let doc = find(call)?;
                let one = attachment_of(call, &doc)?;
                Ok(Reply::ok(
                    json!({"volumeAttachment": view(call, &doc, &one)}),
                ))
            },
        )
        .delete(
            "/v2.1/servers/{server_id}/os-volume_attachments/{volume_id}",
            detach,
        );
}

/// States of a server in which its volumes can be changed.
const CHANGEABLE: [&str; 4] = ["ACTIVE", "PAUSED", "SHUTOFF", "SOFT_DELETED"];
/// Fields of a request body, each with the microversion that introduced the field.
const FIELDS: [(&str, u32); 4] = [
    ("volumeId", 1),
    ("device", 1),
    ("tag", 49),
    ("delete_on_termination", 79),
];
/// First microversion that attaches a volume to several servers.
const MULTIATTACH: u32 = 60;

fn attach(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let id = doc.text("id").to_owned();
    let given = call.wrapped("volumeAttachment")?;
    check_body(call, &given)?;
    let volume_id = given.text("volumeId").to_owned();
    check_server(call, &doc, "attach_volume")?;
    let volume = call
        .accessible(Kind::Volume, &volume_id)
        .ok_or_else(|| Fault::missing(format!("Volume {volume_id} could not be found.")))?;
    check_new(call, &volume, &id)?;
    let device = device(call, &doc, given.text("device"))?;
    check_volume(call, &volume, &doc)?;
    let entry = to_doc(
        json!({"id": volume_id, "device": device, "tag": given.text("tag"),
        "delete_on_termination": given.flag("delete_on_termination")}),
    );
    let entry = volume_flow::begin_attach(call, &id, entry);
    let mut out = view(call, &doc, &Value::Object(entry));
    // The answer to the request has neither, at any version, and the volume's id at every one.
    out["id"] = json!(volume_id);
    for later in ["attachment_id", "bdm_uuid"] {
        if let Some(out) = out.as_object_mut() {
            out.remove(later);
        }
    }
    Ok(Reply::ok(json!({"volumeAttachment": out})))
}

fn check_body(call: &Call<'_>, given: &Doc) -> Result<(), Fault> {
    let known = |name: &String| {
        let mut fields = FIELDS.iter();
        fields.any(|(field, since)| field == name && *since <= call.version)
    };
    if let Some(unknown) = given.keys().find(|name| !known(name)) {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute volumeAttachment. Value: {}. Additional properties are not allowed \
             ('{unknown}' was unexpected)",
            Value::Object(given.clone())
        )));
    }
    let volume = given.text("volumeId");
    if volume.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute volumeAttachment. 'volumeId' is a required property",
        ));
    }
    if uuid::Uuid::try_parse(volume).is_err() {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute volumeId. Value: {volume}. '{volume}' is not a 'uuid'"
        )));
    }
    Ok(())
}

fn check_server(call: &Call<'_>, doc: &Doc, action: &str) -> Result<(), Fault> {
    if doc.flag("_locked") && !call.who.admin() {
        return Err(Fault::conflict(format!(
            "Instance {} is locked",
            doc.text("id")
        )));
    }
    allowed(doc, action, &CHANGEABLE)
}

/// Returns a [`Fault`] by Nova's own rule: a volume listed with a server is attached to no other, and not twice to the
/// same one.
fn check_new(call: &Call<'_>, volume: &Doc, server: &str) -> Result<(), Fault> {
    let id = volume.text("id");
    let has = |other: &&Arc<Doc>| other.list("_volumes").iter().any(|entry| entry["id"] == id);
    let servers = call.state.all(Kind::Server).filter(has);
    let servers: Vec<&str> = servers.map(|other| other.text("id")).collect();
    if !servers.is_empty() && !volume.flag("multiattach") {
        return Err(Fault::bad(format!(
            "Invalid volume: volume {id} is already attached to instances: {}",
            servers.join(" ")
        )));
    }
    match servers.contains(&server) {
        true => Err(Fault::bad(format!(
            "Invalid volume: volume {id} already attached"
        ))),
        false => Ok(()),
    }
}

/// Returns the name of the device: the next free one. The guest may use another name.
fn device(call: &Call<'_>, server: &Doc, wanted: &str) -> Result<String, Fault> {
    let used: Vec<&str> = server
        .list("_volumes")
        .iter()
        .filter_map(|one| one["device"].as_str())
        .collect();
    let root = match used.contains(&"/dev/vda") {
        true => 0,
        false => 1,
    };
    let most = call.settings.changeable.read().max_disk_devices_to_attach;
    let disks = i64::try_from(used.len() + root).unwrap_or(i64::MAX);
    if most >= 0 && disks >= most {
        return Err(Fault::forbidden(format!(
            "The maximum allowed number of disk devices ({most}) to attach to a single instance has been exceeded."
        )));
    }
    if !wanted.is_empty() {
        let name = wanted.strip_prefix("/dev/");
        let fits = name.is_some_and(|name| {
            name.starts_with(|c: char| c.is_ascii_lowercase())
                && name
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        });
        if !fits {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute device. Value: {wanted}. '{wanted}' does not match \
                 '(^/dev/x{{0,1}}[a-z]{{0,1}}d{{0,1}})([a-z]+)[0-9]*$'"
            )));
        }
        if used.contains(&wanted) {
            return Err(Fault::conflict(format!(
                "The supplied device path ({wanted}) is in use."
            )));
        }
        return Ok(wanted.to_owned());
    }
    let free = (1..)
        .map(letters)
        .map(|letters| format!("/dev/vd{letters}"));
    let mut free = free.filter(|name| !used.contains(&name.as_str()));
    Ok(free.next().unwrap_or_default())
}

/// Returns `b` for 1, `z` for 25, `aa` for 26.
pub(super) fn letters(index: u32) -> String {
    let letter = |index: u32| char::from(b'a' + u8::try_from(index % 26).unwrap_or(0));
    match index / 26 {
        0 => letter(index).to_string(),
        rest => format!("{}{}", letters(rest - 1), letter(index)),
    }
}

/// Returns a [`Fault`] for a volume that Nova refuses, then for one that Cinder refuses.
fn check_volume(call: &Call<'_>, volume: &Doc, server: &Doc) -> Result<(), Fault> {
    let id = volume.text("id");
    let (volume_zone, zone) = (volume.text("availability_zone"), server.text("_zone"));
    if !call.settings.changeable.read().cross_az_attach && volume_zone != zone {
        return Err(Fault::bad(format!(
            "Invalid volume: Instance {} and volume {id} are not in the same availability_zone. Instance is in {zone}. \
             Volume is in {volume_zone}",
            server.text("id")
        )));
    }
    if volume.flag("multiattach") && call.version < MULTIATTACH {
        return Err(Fault::bad(
            "Multiattach volumes are only supported starting with compute API version 2.60.",
        ));
    }
    match volume::refusal(volume, server.text("id")) {
        None => Ok(()),
        Some(refusal) => Err(Fault::bad(format!(
            "Invalid input received: {} (HTTP 400)",
            refusal.message
        ))),
    }
}

fn detach(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let id = call.parameter("volume_id").to_owned();
    let volume = call
        .accessible(Kind::Volume, &id)
        .ok_or_else(|| Fault::missing(format!("Volume {id} could not be found.")))?;
    let entry = attachment_of(call, &doc)?;
    if entry["device"] == "/dev/vda" {
        return Err(Fault::bad("Cannot detach a root device volume"));
    }
    check_server(call, &doc, "detach_volume")?;
    if let Err(refusal) = volume::check_detaching(&volume) {
        return Err(Fault::bad(format!(
            "Invalid volume: Invalid input received: {} (HTTP 400)",
            refusal.message
        )));
    }
    volume_flow::begin_detach(call, doc.text("id"), &id);
    Ok(Reply::empty(202))
}

fn attachment_of(call: &Call<'_>, doc: &Doc) -> Result<Value, Fault> {
    let id = call.parameter("volume_id");
    let found = doc
        .list("_volumes")
        .iter()
        .find(|one| one["id"] == id)
        .cloned();
    found.ok_or_else(|| {
        Fault::missing(format!(
            "Instance {} is not attached to volume {id}",
            doc.text("id")
        ))
    })
}

fn view(call: &Call<'_>, server: &Doc, one: &Value) -> Value {
    let mut out =
        json!({"volumeId": one["id"], "serverId": server.text("id"), "device": one["device"]});
    if call.version < 89 {
        out["id"] = one["id"].clone();
    }
    if call.version >= 70 {
        out["tag"] = match one["tag"].as_str() {
            None | Some("") => Value::Null,
            Some(tag) => json!(tag),
        };
    }
    if call.version >= 89 {
        let volume = one["id"].as_str().unwrap_or_default();
        let volume = call.state.get(Kind::Volume, volume).unwrap_or_default();
        let entry = to_doc(one.clone());
        let attachment = volume_flow::attachment_of(&volume, server.text("id"), &entry);
        out["attachment_id"] = match attachment.as_str() {
            "" => Value::Null,
            id => json!(id),
        };
        out["bdm_uuid"] = match entry.get("bdm") {
            Some(id) => id.clone(),
            None => out["attachment_id"].clone(),
        };
    }
    if call.version >= 79 {
        out["delete_on_termination"] = one["delete_on_termination"].clone();
    }
    out
}
