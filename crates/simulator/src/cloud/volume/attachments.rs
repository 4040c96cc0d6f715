//! Cinder's attachments (microversion 3.27): created by Nova, or by a client that reserves the volume, sets the
//! connector, and completes the attachment.

use std::sync::Arc;

use serde_json::{Value, json};

use super::attach;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

/// Registers the operations.
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

fn view(one: &Doc, detail: bool) -> Doc {
    let mut out = one.clone();
    out.remove("device");
    out.remove("host");
    if !detail {
        out.retain(|name, _| matches!(name.as_str(), "id" | "status" | "instance" | "volume_id"));
    }
    out
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    super::since(call, 27)?;
    super::filters::check(
        call,
        &["volume_id", "status", "instance_id", "attach_status"],
    )?;
    let project = call.who.project_id.clone();
    let volumes = match call.everyone() {
        true => call.state.all(Kind::Volume).cloned().collect(),
        false => call.state.by(Kind::Volume, "project_id", &project),
    };
    let is = |one: &Doc, field: &str, name: &str| {
        let wanted = call.query.get(name);
        wanted.is_none_or(|wanted| one.text(field) == wanted)
    };
    let mut all: Vec<Arc<Doc>> = volumes
        .iter()
        .flat_map(|volume| attach::all(volume))
        .filter(|one| {
            is(one, "volume_id", "volume_id")
                && is(one, "instance", "instance_id")
                && is(one, "status", "status")
                && is(one, "status", "attach_status")
                && is(one, "id", "attachment_id")
        })
        .map(Arc::new)
        .collect();
    all.sort_by(|a, b| a.text("id").cmp(b.text("id")));
    // Unlike others, this list has pages and no link to the next one.
    let page = super::page(call, all, "attachments", true)?;
    let views: Vec<Doc> = page.docs.iter().map(|one| view(one, detail)).collect();
    Ok(Reply::ok(json!({"attachments": views})))
}

fn reserve(call: &mut Call<'_>) -> Answer {
    super::since(call, 27)?;
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
    let server = given.text("instance_uuid");
    let volume = call
        .accessible(Kind::Volume, &id)
        .ok_or_else(|| Fault::missing(format!("Volume {id} could not be found.")))?;
    if let Some(refusal) = attach::refusal(&volume, server) {
        return Err(refusal);
    }
    let attachment = attach::reserve(call.state, &id, server);
    let connector = given.object("connector");
    if !connector.is_empty() {
        attach::connect(call.state, &id, &attachment, &connector);
    }
    let one = stored(call, &id, &attachment)?;
    Ok(Reply::ok(json!({"attachment": view(&one, true)})))
}

/// PUT: sets the connector. Cinder's answer has the state from before the request to its back end.
fn connect(call: &mut Call<'_>) -> Answer {
    let (volume, mut before) = find(call)?;
    let given = call.wrapped("attachment")?;
    let connector = given.object("connector");
    if connector.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute attachment. 'connector' is a required property",
        ));
    }
    let status = call.state.get(Kind::Volume, &volume).unwrap_or_default();
    let status = status.text("status");
    if status.contains("error") {
        return Err(Fault::bad(format!(
            "Invalid volume: Volume attachments can not be updated if the volume is in an error state. The Volume \
             {volume} currently has a status of: {status} "
        )));
    }
    let id = before.text("id").to_owned();
    attach::connect(call.state, &volume, &id, &connector);
    let after = stored(call, &volume, &id)?;
    before.set(
        "connection_info",
        Value::Object(after.object("connection_info")),
    );
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
    super::since(call, 44)?;
    attach::complete(call.state, &volume, one.text("id"));
    Ok(Reply {
        headers: vec![("content-type", "application/json".to_owned())],
        ..Reply::empty(204)
    })
}

/// True if Nova uses an attachment: Cinder asks Nova before anybody else may delete one. An attachment is unused
/// without a connection, or if Nova does not know server or volume, or has another attachment for them.
fn used_by_nova(call: &Call<'_>, volume: &str, one: &Doc) -> bool {
    let Some(server) = call.state.get(Kind::Server, one.text("instance")) else {
        return false;
    };
    let attached = server.list("_volumes").iter();
    let mut attached = attached.filter(|attached| attached["id"] == volume);
    let connected = !one.object("connection_info").is_empty();
    connected
        && call.may_access(&server)
        && attached.any(|attached| {
            // Stores of earlier versions do not have the attachment.
            let known = attached["attachment"].as_str();
            known.is_none_or(|known| known == one.text("id"))
        })
}

/// Returns a [`Fault`] for the removal of an attachment in use by Nova.
pub(super) fn check_release(call: &Call<'_>, volume: &str, one: &Doc) -> Result<(), Fault> {
    match used_by_nova(call, volume, one) {
        false => Ok(()),
        true => Err(Fault::conflict(format!(
            "Detach volume from instance {} using the Compute API",
            one.text("instance")
        ))),
    }
}

fn release(call: &mut Call<'_>) -> Answer {
    let (volume, one) = find(call)?;
    check_release(call, &volume, &one)?;
    attach::release(call.state, &volume, one.text("id"));
    let volume = call.state.get(Kind::Volume, &volume).unwrap_or_default();
    let left = attach::all(&volume);
    let left: Vec<Doc> = left.iter().map(|one| view(one, false)).collect();
    Ok(Reply::ok(json!({"attachments": left})))
}

/// Returns the volume's id and the [`Doc`] of the attachment in the path.
fn find(call: &Call<'_>) -> Result<(String, Doc), Fault> {
    super::since(call, 27)?;
    let id = call.parameter("id");
    let volumes = call
        .state
        .all(Kind::Volume)
        .filter(|doc| call.may_access(doc));
    volumes
        .flat_map(|volume| {
            let attachments = attach::all(volume).into_iter();
            attachments.map(|one| (volume.text("id").to_owned(), one))
        })
        .find(|(_, one)| one.text("id") == id)
        .ok_or_else(|| missing(id))
}

fn stored(call: &Call<'_>, volume: &str, id: &str) -> Result<Doc, Fault> {
    let volume = call.state.get(Kind::Volume, volume).unwrap_or_default();
    let mut attachments = attach::all(&volume).into_iter();
    attachments
        .find(|one| one.text("id") == id)
        .ok_or_else(|| missing(id))
}

fn missing(id: &str) -> Fault {
    Fault::missing(format!(
        "Volume attachment could not be found with filter: attachment_id = {id}."
    ))
}
