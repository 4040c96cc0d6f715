//! Snapshots of all volumes of a group at once (microversion 3.14).

use std::cmp::Reverse;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, groups, quotas, since, snapshots};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::route::Table;
use crate::cloud::settings::{Settings, VolumeTrouble};
use crate::cloud::state::State;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/group_snapshots", |call| list(call, false))
        .get("/v3/{project}/group_snapshots/detail", |call| {
            list(call, true)
        })
        .post("/v3/{project}/group_snapshots", create)
        .get("/v3/{project}/group_snapshots/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"group_snapshot": view(call, &doc)})))
        })
        .delete("/v3/{project}/group_snapshots/{id}", delete);
}

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, settings: &Settings, action: &str, id: &str) {
    let Some(doc) = state.get(Kind::GroupSnapshot, id) else {
        return;
    };
    match action {
        "created" => {
            let trouble = [VolumeTrouble::SnapshotFails];
            let status = match settings.volume_trouble(doc.text("name"), &trouble) {
                Some(_) => "error",
                None => "available",
            };
            for snapshot in parts(state, id) {
                snapshots::set_status(state, snapshot.text("id"), status);
            }
            state.edit(Kind::GroupSnapshot, id, |doc| doc.set("status", status));
        }
        "gone" => {
            for snapshot in parts(state, id) {
                state.remove(Kind::Snapshot, snapshot.text("id"));
            }
            state.remove(Kind::GroupSnapshot, id);
        }
        _ => tracing::warn!(action, "unknown group snapshot transition dropped"),
    }
}

/// Returns the [`Doc`]s of the snapshots of the volumes.
fn parts(state: &State, id: &str) -> Vec<Arc<Doc>> {
    let snapshots = state.all(Kind::Snapshot);
    snapshots
        .filter(|snapshot| snapshot.text("_group_snapshot") == id)
        .cloned()
        .collect()
}

fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    since(call, groups::SNAPSHOTS)?;
    let id = call.parameter("id");
    call.accessible(Kind::GroupSnapshot, id)
        .ok_or_else(|| Fault::missing(format!("GroupSnapshot {id} could not be found.")))
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = doc.clone();
    if call.version < 58 || !call.who.admin() {
        out.remove("project_id");
    }
    out
}

fn brief(doc: &Doc) -> Value {
    json!({"id": doc.text("id"), "name": doc.get("name"), "group_type_id": doc.get("group_type_id")})
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    since(call, groups::SNAPSHOTS)?;
    super::filters::check(call, &["name", "status", "group_id"])?;
    let mut found: Vec<_> = match call.everyone() {
        true => call.state.all(Kind::GroupSnapshot).cloned().collect(),
        false => call
            .state
            .by(Kind::GroupSnapshot, "project_id", &call.who.project_id),
    };
    found.retain(|doc| {
        let mut fields = ["name", "status", "group_id"].into_iter();
        fields.all(|field| super::matches(call, doc, field, field))
    });
    found.sort_by_key(|doc| Reverse(doc.text("created_at").to_owned()));
    query::sort(&mut found, &query::sort_keys(&call.query));
    let page = super::page(call, found, "group_snapshots", true)?;
    let views = page.docs.iter().map(|doc| match detail {
        true => Value::Object(view(call, doc)),
        false => brief(doc),
    });
    Ok(page.reply("group_snapshots", views.collect()))
}

/// Takes a snapshot of each volume, or none.
fn create(call: &mut Call<'_>) -> Answer {
    since(call, groups::SNAPSHOTS)?;
    let given = call.wrapped("group_snapshot")?;
    let fields = ["group_id", "name", "description"];
    body::strict("group_snapshot", &given, &fields)?;
    body::texts(&given, &fields)?;
    if !given.given("group_id") {
        return Err(Fault::bad(
            "Invalid input for field/attribute group_snapshot. 'group_id' is a required property",
        ));
    }
    let group = groups::by_id(call, given.text("group_id"))?;
    let members = groups::members(call.state, group.text("id"));
    let id = call.state.new_id();
    for volume in &members {
        snapshots::check_volume(volume, true)?;
        quotas::check_snapshot(call, volume)?;
        let part =
            to_doc(json!({"name": given.get("name"), "description": given.get("description")}));
        snapshots::add(call, volume, &part, Some(&id));
    }
    let doc = to_doc(
        json!({"id": id, "project_id": call.who.project_id, "group_id": group.text("id"),
        "group_type_id": group.text("group_type"), "status": "creating", "created_at": naive_micros(call.now()),
        "name": given.get("name"), "description": given.get("description")}),
    );
    call.state.put(Kind::GroupSnapshot, doc.clone());
    schedule(call, "created", &id);
    Ok(Reply::with(202, json!({"group_snapshot": brief(&doc)})))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    if !matches!(doc.text("status"), "available" | "error") {
        return Err(Fault::bad(
            "Invalid GroupSnapshot: GroupSnapshot status must be available or error, and no Group can be currently using \
             it as source for its creation.",
        ));
    }
    let id = doc.text("id");
    for snapshot in parts(call.state, id) {
        snapshots::set_status(call.state, snapshot.text("id"), "deleting");
    }
    call.state
        .edit(Kind::GroupSnapshot, id, |doc| doc.set("status", "deleting"));
    schedule(call, "gone", id);
    Ok(Reply::empty(202))
}

fn schedule(call: &mut Call<'_>, action: &str, id: &str) {
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, action, Kind::GroupSnapshot, id);
}
