//! Volumes of a server (os-volume_attachments).

use serde_json::{Value, json};

use super::servers::{change, find};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;
use crate::cloud::volume;

/// The operations.
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

fn attach(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let id = doc.text("id").to_owned();
    let given = call.wrapped("volumeAttachment")?;
    let volume_id = given.text("volumeId").to_owned();
    if volume_id.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute volumeAttachment. 'volumeId' is a required property",
        ));
    }
    let found = call
        .accessible(Kind::Volume, &volume_id)
        .ok_or_else(|| Fault::missing(format!("Volume {volume_id} could not be found.")))?;
    let here = doc
        .list("_volumes")
        .iter()
        .any(|one| one["id"] == volume_id);
    if found.flag("multiattach") && call.version < 60 {
        return Err(Fault::bad(
            "Multiattach volumes are only supported starting with compute API version 2.60.",
        ));
    }
    let shared = found.flag("multiattach") && found.text("status") == "in-use" && !here;
    if found.text("status") != "available" && !shared {
        return Err(Fault::bad(format!(
            "Invalid volume: volume '{volume_id}' status must be 'available'. Currently in '{}'",
            found.text("status")
        )));
    }
    let used: Vec<&str> = doc
        .list("_volumes")
        .iter()
        .filter_map(|one| one["device"].as_str())
        .collect();
    let free = ('b'..='z')
        .map(|letter| format!("/dev/vd{letter}"))
        .find(|name| !used.contains(&name.as_str()));
    let device = match given.text("device") {
        "" => free.unwrap_or_else(|| "/dev/vdz".to_owned()),
        device => device.to_owned(),
    };
    let one = json!({"id": volume_id, "device": device, "tag": given.text("tag"),
        "delete_on_termination": given.flag("delete_on_termination")});
    volume::attach(call.state, &volume_id, &id, &device);
    change(call, &id, |doc| {
        let mut all = doc.list("_volumes").to_vec();
        all.push(one.clone());
        doc.set("_volumes", all);
    });
    Ok(Reply::ok(
        json!({"volumeAttachment": view(call, &doc, &one)}),
    ))
}

fn detach(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let one = attachment_of(call, &doc)?;
    let volume_id = one["id"].as_str().unwrap_or_default().to_owned();
    volume::detach(call.state, &volume_id, doc.text("id"));
    change(call, doc.text("id"), |doc| {
        let left: Vec<Value> = doc
            .list("_volumes")
            .iter()
            .filter(|one| one["id"] != volume_id)
            .cloned()
            .collect();
        doc.set("_volumes", left);
    });
    Ok(Reply::empty(202))
}

fn attachment_of(call: &Call<'_>, doc: &Doc) -> Result<Value, Fault> {
    let id = call.parameter("volume_id");
    let found = doc
        .list("_volumes")
        .iter()
        .find(|one| one["id"] == id)
        .cloned();
    found.ok_or_else(|| Fault::missing(format!("volume_id not found: {id}")))
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
        let volume = call
            .state
            .get(Kind::Volume, one["id"].as_str().unwrap_or_default());
        let attachment = volume.as_ref().and_then(|volume| {
            volume
                .list("attachments")
                .iter()
                .find(|attachment| attachment["server_id"] == server.text("id"))
        });
        out["attachment_id"] = attachment.map_or(Value::Null, |attachment| {
            attachment["attachment_id"].clone()
        });
        out["bdm_uuid"] = out["attachment_id"].clone();
    }
    if call.version >= 79 {
        out["delete_on_termination"] = one["delete_on_termination"].clone();
    }
    out
}
