//! Snapshots.

use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::route::Table;

/// The operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/snapshots", |call| list(call, false))
        .get("/v3/{project}/snapshots/detail", |call| list(call, true))
        .post("/v3/{project}/snapshots", create)
        .get("/v3/{project}/snapshots/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"snapshot": view(&doc, true)})))
        })
        .delete("/v3/{project}/snapshots/{id}", |call| {
            let doc = find(call)?;
            call.state.remove(Kind::Snapshot, doc.text("id"));
            Ok(Reply::empty(202))
        });
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.accessible(Kind::Snapshot, id)
        .ok_or_else(|| Fault::missing(format!("Snapshot {id} could not be found.")))
}

/// The project has another field here, which is returned with the progress and not at creation.
fn view(doc: &Doc, detail: bool) -> Doc {
    let mut out = public_fields(doc);
    out.remove("volume_size");
    let project = out.remove("project_id").unwrap_or_default();
    if detail {
        out.set("os-extended-snapshot-attributes:project_id", project);
    } else {
        out.remove("os-extended-snapshot-attributes:progress");
    }
    out
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    let visible = call
        .state
        .by(Kind::Snapshot, "project_id", &call.who.project_id);
    let is = |doc: &Doc, field: &str| {
        call.query
            .get(field)
            .is_none_or(|wanted| doc.text(field) == wanted)
    };
    let found: Vec<Value> = visible
        .iter()
        .filter(|doc| is(doc, "name") && is(doc, "volume_id") && is(doc, "status"))
        .map(|doc| Value::Object(view(doc, detail)))
        .collect();
    Ok(Reply::ok(json!({"snapshots": found})))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("snapshot")?;
    if !given.given("volume_id") {
        return Err(Fault::bad(
            "Invalid input for field/attribute snapshot. 'volume_id' is a required property",
        ));
    }
    let volume = given.text("volume_id");
    let volume = call
        .accessible(Kind::Volume, volume)
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
        "description": given.get("description").cloned().unwrap_or_default(), "status": "creating",
        "volume_id": volume.text("id"), "size": volume.number("size"),
        "volume_size": volume.number("size"), "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})),
        "created_at": naive_micros(call.now()), "updated_at": null,
        "os-extended-snapshot-attributes:progress": "100%"}),
    );
    call.state.put(Kind::Snapshot, doc.clone());
    let delay = call.settings.latency.transition(Transition::Volume);
    let id = doc.text("id");
    call.state.schedule(delay, "snapshotted", Kind::Volume, id);
    Ok(Reply::with(202, json!({"snapshot": view(&doc, false)})))
}
