//! Cinder's attachments (microversion 3.27): those that Nova creates, and those with which a client reserves the
//! volume, sets the connector, and completes the attachment.

use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

/// The operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/attachments", |call| list(call, false))
        .get("/v3/{project}/attachments/detail", |call| list(call, true))
        .post("/v3/{project}/attachments", reserve)
        .get("/v3/{project}/attachments/{id}", |call| {
            let (_, one) = find(call)?;
            Ok(Reply::ok(json!({"attachment": view(&one, true)})))
        })
        .put("/v3/{project}/attachments/{id}", connect)
        .post("/v3/{project}/attachments/{id}/action", complete)
        .delete("/v3/{project}/attachments/{id}", release);
}

/// The field of a volume with incomplete attachments, which is not returned.
const RESERVED: &str = "_reserved";

/// The attachments of a volume as `id`, `status`, `instance`, `volume_id` and so on.
fn of(volume: &Doc) -> impl Iterator<Item = Doc> {
    let attached = volume.list("attachments").iter().map(|one| {
        json!({"id": one["attachment_id"], "status": "attached", "instance": one["server_id"],
            "volume_id": one["volume_id"], "attached_at": one["attached_at"], "detached_at": "",
            "attach_mode": "rw", "connection_info": connection(one["attachment_id"].as_str().unwrap_or_default())})
    });
    let attached: Vec<Value> = attached.collect();
    let reserved = volume.list(RESERVED).iter().cloned();
    attached.into_iter().chain(reserved).map(to_doc)
}

fn connection(id: &str) -> Value {
    json!({"attachment_id": id, "driver_volume_type": "fake", "access_mode": "rw", "cacheable": false,
        "encrypted": false, "qos_specs": null})
}

fn view(one: &Doc, detail: bool) -> Doc {
    let mut out = one.clone();
    out.remove("device");
    if !detail {
        out.retain(|name, _| matches!(name.as_str(), "id" | "status" | "instance" | "volume_id"));
    }
    out
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    since_27(call)?;
    let project = call.who.project_id.clone();
    let volumes = match call.everyone() {
        true => call.state.all(Kind::Volume).cloned().collect(),
        false => call.state.by(Kind::Volume, "project_id", &project),
    };
    let is = |one: &Doc, field: &str, name: &str| {
        let wanted = call.query.get(name);
        wanted.is_none_or(|wanted| one.text(field) == wanted)
    };
    let all: Vec<Doc> = volumes
        .iter()
        .flat_map(|volume| of(volume))
        .filter(|one| {
            is(one, "volume_id", "volume_id")
                && is(one, "instance", "instance_id")
                && is(one, "status", "status")
                && is(one, "id", "attachment_id")
        })
        .map(|one| view(&one, detail))
        .collect();
    Ok(Reply::ok(json!({"attachments": all})))
}

fn reserve(call: &mut Call<'_>) -> Answer {
    since_27(call)?;
    let given = call.wrapped("attachment")?;
    for name in ["volume_uuid", "instance_uuid"] {
        match given.get(name) {
            Some(Value::String(_)) => {}
            None => {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute attachment. '{name}' is a required property"
                )));
            }
            Some(other) => {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute {name}. Value: {other}. {other} is not of type 'string'"
                )));
            }
        }
    }
    let id = given.text("volume_uuid").to_owned();
    let volume = call
        .accessible(Kind::Volume, &id)
        .ok_or_else(|| Fault::missing(format!("Volume {id} could not be found.")))?;
    let free = volume.text("status") == "available";
    let shared = volume.flag("multiattach") && volume.text("status") == "in-use";
    // In Cinder, an instance may reserve the same volume twice.
    let again = of(&volume).any(|one| one.text("instance") == given.text("instance_uuid"));
    if !free && !shared && !again {
        return Err(Fault::bad(format!(
            "Invalid volume: Volume {id} status must be available or downloading to reserve, but the current status is {}.",
            volume.text("status")
        )));
    }
    let one = to_doc(json!({"id": call.state.new_id(), "status": "reserved",
        "instance": given.text("instance_uuid"), "volume_id": id,
        "attached_at": "", "detached_at": "", "attach_mode": "null", "connection_info": {}}));
    call.state.edit(Kind::Volume, &id, |doc| {
        let mut all = doc.list(RESERVED).to_vec();
        all.push(Value::Object(one.clone()));
        doc.set(RESERVED, all);
        if free {
            doc.set("status", "reserved");
        }
    });
    Ok(Reply::ok(json!({"attachment": view(&one, true)})))
}

/// PUT: sets the connector. Cinder answers with the state from before it asked its back end.
fn connect(call: &mut Call<'_>) -> Answer {
    let (volume, one) = find(call)?;
    let given = call.wrapped("attachment")?;
    let connector = given.object("connector");
    if connector.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute attachment. 'connector' is a required property",
        ));
    }
    let now = naive_micros(call.now());
    let info = connection(one.text("id"));
    call.state.edit(Kind::Volume, &volume, |doc| {
        let mut all = doc.list(RESERVED).to_vec();
        if let Some(pending) = all.iter_mut().find(|other| other["id"] == one.text("id")) {
            pending["status"] = json!("attaching");
            pending["attach_mode"] = json!("rw");
            pending["attached_at"] = json!(now);
            pending["connection_info"] = info.clone();
            pending["device"] = connector
                .get("mountpoint")
                .cloned()
                .unwrap_or_else(|| json!("na"));
            doc.set(RESERVED, all);
            doc.set("status", "attaching");
        }
    });
    let mut before = one;
    before.set("connection_info", info);
    Ok(Reply::ok(json!({"attachment": view(&before, true)})))
}

/// POST of `os-complete`: the volume is in use.
fn complete(call: &mut Call<'_>) -> Answer {
    if !call
        .body
        .as_object()
        .is_some_and(|body| body.contains_key("os-complete"))
    {
        return Err(Fault::bad("There is no such action"));
    }
    let (volume, one) = find(call)?;
    if call.version < 44 {
        return Err(not_served(call));
    }
    let now = naive_micros(call.now());
    call.state.edit(Kind::Volume, &volume, |doc| {
        let mut waiting = doc.list(RESERVED).to_vec();
        let Some(index) = waiting
            .iter()
            .position(|other| other["id"] == one.text("id"))
        else {
            return;
        };
        waiting.remove(index);
        doc.set(RESERVED, waiting);
        let mut all = doc.list("attachments").to_vec();
        all.push(
            json!({"id": volume, "attachment_id": one.text("id"), "volume_id": volume,
            "server_id": one["instance"], "host_name": null, "device": one.text("device"),
            "attached_at": now}),
        );
        doc.set("attachments", all);
        doc.set("status", "in-use");
    });
    Ok(Reply {
        headers: vec![("content-type", "application/json".to_owned())],
        ..Reply::empty(204)
    })
}

/// Whether Nova has created an attachment: Cinder asks it before it deletes one.
fn created_by_nova(call: &Call<'_>, volume: &str, one: &Doc) -> bool {
    let server = call.state.get(Kind::Server, one.text("instance"));
    let has_volume = |server: &Doc| {
        server
            .list("_volumes")
            .iter()
            .any(|attached| attached["id"] == volume)
    };
    one.text("status") == "attached" && server.is_some_and(|server| has_volume(&server))
}

fn release(call: &mut Call<'_>) -> Answer {
    let (volume, one) = find(call)?;
    if created_by_nova(call, &volume, &one) {
        return Err(Fault::conflict(format!(
            "Detach volume from instance {} using the Compute API",
            one.text("instance")
        )));
    }
    call.state.edit(Kind::Volume, &volume, |doc| {
        let left: Vec<Value> = doc
            .list(RESERVED)
            .iter()
            .filter(|other| other["id"] != one.text("id"))
            .cloned()
            .collect();
        let mut attached = doc.list("attachments").to_vec();
        attached.retain(|other| other["attachment_id"] != one.text("id"));
        if matches!(doc.text("status"), "reserved" | "attaching" | "in-use") {
            doc.set("status", status_with(!attached.is_empty(), &left));
        }
        doc.set(RESERVED, left);
        doc.set("attachments", attached);
    });
    let left: Vec<Doc> = call
        .state
        .get(Kind::Volume, &volume)
        .iter()
        .flat_map(|volume| of(volume))
        .map(|one| view(&one, false))
        .collect();
    Ok(Reply::ok(json!({"attachments": left})))
}

/// The status of a volume with the remaining attachments.
fn status_with(attached: bool, reserved: &[Value]) -> &'static str {
    if attached {
        return "in-use";
    }
    ["attaching", "reserved"]
        .into_iter()
        .find(|status| reserved.iter().any(|one| one["status"] == *status))
        .unwrap_or("available")
}

/// The path's attachment with its volume's id.
fn find(call: &Call<'_>) -> Result<(String, Doc), Fault> {
    since_27(call)?;
    let id = call.parameter("id");
    let volumes = call
        .state
        .all(Kind::Volume)
        .filter(|doc| call.may_access(doc));
    volumes
        .flat_map(|volume| of(volume).map(|one| (volume.text("id").to_owned(), one)))
        .find(|(_, one)| one.text("id") == id)
        .ok_or_else(|| {
            Fault::missing(format!(
                "Volume attachment could not be found with filter: attachment_id = {id}."
            ))
        })
}

fn since_27(call: &Call<'_>) -> Result<(), Fault> {
    if call.version >= 27 {
        return Ok(());
    }
    Err(not_served(call))
}

fn not_served(call: &Call<'_>) -> Fault {
    Fault::missing(format!(
        "API version 3.{} is not supported on this method.",
        call.version
    ))
}
