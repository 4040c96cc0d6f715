//! Snapshots.

use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, shown};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

/// The operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/snapshots", list)
        .get("/v3/{project}/snapshots/detail", list)
        .post("/v3/{project}/snapshots", create)
        .get("/v3/{project}/snapshots/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"snapshot": shown(&doc)})))
        })
        .delete("/v3/{project}/snapshots/{id}", |call| {
            let doc = find(call)?;
            call.state.remove(Kind::Snapshot, doc.text("id"));
            Ok(Reply::empty(202))
        });
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.own(Kind::Snapshot, id)
        .ok_or_else(|| Fault::missing(format!("Snapshot {id} could not be found.")))
}

fn list(call: &mut Call<'_>) -> Answer {
    let own = call
        .state
        .by(Kind::Snapshot, "project_id", &call.who.project_id);
    let is = |doc: &Doc, field: &str| {
        call.query
            .get(field)
            .is_none_or(|wanted| doc.text(field) == wanted)
    };
    let found: Vec<Value> = own
        .iter()
        .filter(|doc| is(doc, "name") && is(doc, "volume_id") && is(doc, "status"))
        .map(|doc| Value::Object(shown(doc)))
        .collect();
    Ok(Reply::ok(json!({"snapshots": found})))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("snapshot")?;
    let volume = given.text("volume_id");
    let volume = call
        .own(Kind::Volume, volume)
        .ok_or_else(|| Fault::missing(format!("Volume {volume} could not be found.")))?;
    if volume.text("status") != "available" && !given.flag("force") {
        return Err(Fault::bad(format!(
            "Invalid volume: Volume {} status must be available, but current status is: {}.",
            volume.text("id"),
            volume.text("status")
        )));
    }
    let id = call.state.new_id();
    let doc = to_doc(
        json!({"id": id, "project_id": call.who.project_id, "name": given.text("name"),
        "description": given.get("description").cloned().unwrap_or_default(), "status": "available",
        "volume_id": volume.text("id"), "size": volume.number("size"),
        "volume_size": volume.number("size"), "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "created_at": naive_micros(call.now()), "updated_at": null,
        "os-extended-snapshot-attributes:progress": "100%"}),
    );
    call.state.put(Kind::Snapshot, doc.clone());
    Ok(Reply::with(202, json!({"snapshot": shown(&doc)})))
}
