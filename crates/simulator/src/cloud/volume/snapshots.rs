//! Snapshots.

use std::cmp::Reverse;
use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{body, messages, quotas};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};
use crate::cloud::settings::{Settings, VolumeTrouble};
use crate::cloud::state::State;

/// Filters for members, as in Cinder's default configuration.
const FILTERS: [&str; 6] = [
    "name",
    "status",
    "volume_id",
    "metadata",
    "availability_zone",
    "consumes_quota",
];
/// First microversion without `force` for volumes in use.
const IN_USE: u32 = 66;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/snapshots", |call| list(call, false))
        .get("/v3/{project}/snapshots/detail", |call| list(call, true))
        .post("/v3/{project}/snapshots", create)
        .get("/v3/{project}/snapshots/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"snapshot": view(call, &doc, true)})))
        })
        .put("/v3/{project}/snapshots/{id}", update)
        .delete("/v3/{project}/snapshots/{id}", |call| {
            let doc = find(call)?;
            delete(call, &doc, false)
        })
        .on(
            Method::POST,
            "/v3/{project}/snapshots/{id}/action",
            Access::Admin,
            act,
        );
}

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, settings: &Settings, action: &str, id: &str) {
    let Some(doc) = state.get(Kind::Snapshot, id) else {
        return;
    };
    match action {
        "created" => created(state, settings, &doc),
        "gone" => gone(state, settings, &doc),
        _ => tracing::warn!(action, "unknown snapshot transition dropped"),
    }
}

/// Sets the status of a snapshot as an administrator or a failure would.
pub(crate) fn set_status(state: &mut State, id: &str, status: &str) {
    let now = naive_micros(state.now());
    state.edit(Kind::Snapshot, id, |doc| {
        doc.set("status", status);
        doc.set("updated_at", now);
    });
}

fn created(state: &mut State, settings: &Settings, doc: &Doc) {
    if doc.text("status") != "creating" {
        return;
    }
    let trouble = settings.volume_trouble(doc.text("name"), &[VolumeTrouble::SnapshotFails]);
    let status = match trouble {
        Some(_) => "error",
        None => "available",
    };
    if trouble.is_some() {
        messages::write(state, doc, messages::NO_SNAPSHOT);
    }
    set_status(state, doc.text("id"), status);
}

/// Deletes a snapshot. A snapshot with dependent volumes becomes available again: the driver finds that out after the
/// request was accepted.
fn gone(state: &mut State, settings: &Settings, doc: &Doc) {
    let id = doc.text("id");
    let depends = |volume: &Arc<Doc>| volume.text("snapshot_id") == id;
    let busy = settings.changeable.read().snapshots_have_dependants;
    if busy && state.all(Kind::Volume).any(depends) {
        messages::write(state, doc, messages::SNAPSHOT_IS_BUSY);
        return set_status(state, id, "available");
    }
    let trouble = settings.volume_trouble(doc.text("name"), &[VolumeTrouble::SnapshotDeleteFails]);
    if trouble.is_some() {
        messages::write(state, doc, messages::SNAPSHOT_STAYS);
        return set_status(state, id, "error_deleting");
    }
    state.remove(Kind::Snapshot, id);
}

fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.accessible(Kind::Snapshot, id)
        .ok_or_else(|| Fault::missing(format!("Snapshot {id} could not be found.")))
}

/// Returns the view of a snapshot. The project is in another field here, returned with the progress and not at
/// creation.
fn view(call: &Call<'_>, doc: &Doc, detail: bool) -> Doc {
    let mut out = public_fields(doc);
    out.remove("volume_size");
    let project = out.remove("project_id").unwrap_or_default();
    if detail {
        out.set("os-extended-snapshot-attributes:project_id", project);
    } else {
        out.remove("os-extended-snapshot-attributes:progress");
    }
    if call.version >= 14 {
        let group = doc.get("_group_snapshot").cloned().unwrap_or_default();
        out.set("group_snapshot_id", group);
    }
    if call.version >= 41 {
        out.set("user_id", doc.get("_user").cloned().unwrap_or_default());
    }
    if call.version >= 65 {
        out.set("consumes_quota", true);
    }
    out
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    let mut found: Vec<_> = if call.everyone() {
        call.state.all(Kind::Snapshot).cloned().collect()
    } else {
        call.state
            .by(Kind::Snapshot, "project_id", &call.who.project_id)
    };
    let known = ["name", "volume_id", "status"];
    super::filters::check(call, &FILTERS)?;
    found.retain(|doc| {
        known
            .iter()
            .all(|field| super::matches(call, doc, field, field))
            && super::matches(call, doc, "availability_zone", "_zone")
            && super::metadata_matches(call, doc)
    });
    found.sort_by_cached_key(|doc| {
        let newest = |field: &str| Reverse(doc.text(field).to_owned());
        (newest("created_at"), newest("id"))
    });
    query::sort(&mut found, &query::sort_keys(&call.query));
    let page = super::page(call, found, "snapshots", true)?;
    let view = |doc: &Arc<Doc>| Value::Object(view(call, doc, detail));
    let views: Vec<Value> = page.docs.iter().map(view).collect();
    Ok(page.reply("snapshots", views))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("snapshot")?;
    let fields = [
        "name",
        "display_name",
        "description",
        "volume_id",
        "force",
        "metadata",
    ];
    body::strict("snapshot", &given, &fields)?;
    body::texts(&given, &["name", "description"])?;
    body::metadata(&given)?;
    if !given.given("volume_id") {
        return Err(Fault::bad(
            "Invalid input for field/attribute snapshot. 'volume_id' is a required property",
        ));
    }
    let force = body::boolean(&given, "force")?;
    let volume = given.text("volume_id");
    let volume = call
        .accessible(Kind::Volume, volume)
        .ok_or_else(|| Fault::missing(format!("Volume {volume} could not be found.")))?;
    let without_force = call.version >= IN_USE;
    if without_force && force == Some(false) {
        return Err(Fault::bad(
            "Since microversion 3.66 the 'force' flag is invalid for this request.  For backward compatability, \
             however, when the 'force' flag is passed with a value evaluating to True, it is silently ignored.",
        ));
    }
    let in_use = without_force || force == Some(true);
    check_volume(&volume, in_use)?;
    quotas::check_snapshot(call, &volume)?;
    let id = add(call, &volume, &given, None);
    let doc = call.state.get(Kind::Snapshot, &id).unwrap_or_default();
    Ok(Reply::with(
        202,
        json!({"snapshot": view(call, &doc, false)}),
    ))
}

/// Returns a [`Fault`] for a volume that allows no snapshot now.
pub(super) fn check_volume(volume: &Doc, in_use: bool) -> Result<(), Fault> {
    let (id, status) = (volume.text("id"), volume.text("status"));
    let why = match status {
        _ if volume.flag("_unscheduled") => {
            "The snapshot cannot be created because volume has not been scheduled to any host."
                .to_owned()
        }
        "error" => "The snapshot cannot be created when the volume is in error status.".to_owned(),
        "maintenance" => {
            "The snapshot cannot be created when the volume is in maintenance mode.".to_owned()
        }
        "available" => return Ok(()),
        "in-use" if in_use => return Ok(()),
        _ => {
            let wanted = if in_use {
                "available, in-use"
            } else {
                "available"
            };
            format!("Volume {id} status must be {wanted}, but current status is: {status}.")
        }
    };
    Err(Fault::bad(format!("Invalid volume: {why}")))
}

/// Adds a snapshot of a volume with the status `creating`; returns the id.
pub(super) fn add(call: &mut Call<'_>, volume: &Doc, given: &Doc, group: Option<&str>) -> String {
    let id = call.state.new_id();
    let metadata = given.get("metadata").filter(|it| !it.is_null());
    let doc = to_doc(
        json!({"id": id, "project_id": call.who.project_id, "name": body::trimmed(given, "name"),
        "description": given.get("description").cloned().unwrap_or_default(), "status": "creating",
        "volume_id": volume.text("id"), "size": volume.number("size"),
        "volume_size": volume.number("size"), "metadata": metadata.cloned().unwrap_or_else(|| json!({})),
        "created_at": naive_micros(call.now()), "updated_at": null,
        "os-extended-snapshot-attributes:progress": "100%",
        "_user": call.who.user_id, "_zone": volume.text("availability_zone"), "_host": volume.text("_host"),
        "_volume_type": volume.text("volume_type"), "_bootable": volume.text("bootable") == "true",
        "_image_metadata": volume.get("volume_image_metadata").cloned().unwrap_or_default(),
        "_group_snapshot": group}),
    );
    call.state.put(Kind::Snapshot, doc);
    schedule(call, "created", &id);
    id
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("snapshot")?;
    let known = ["name", "description", "display_name", "display_description"];
    body::strict("snapshot", &given, &known)?;
    body::texts(&given, &known)?;
    let now = naive_micros(call.now());
    let id = doc.text("id");
    call.state.edit(Kind::Snapshot, id, |doc| {
        for field in ["name", "description"] {
            if let Some(value) = given.get(field) {
                doc.set(field, value.clone());
            }
        }
        doc.set("updated_at", now);
    });
    let doc = find(call)?;
    Ok(Reply::ok(json!({"snapshot": view(call, &doc, false)})))
}

fn delete(call: &mut Call<'_>, doc: &Doc, force: bool) -> Answer {
    let idle = matches!(doc.text("status"), "available" | "error");
    if !(idle || force) || doc.given("_group_snapshot") {
        let status = match force {
            true => "",
            false => "status must be available or error and ",
        };
        return Err(Fault::bad(format!(
            "Invalid snapshot: Snapshot {status}must not be part of a group."
        )));
    }
    begin_delete(call, doc.text("id"));
    Ok(Reply::empty(202))
}

/// Starts the deletion of a snapshot, after the checks.
pub(super) fn begin_delete(call: &mut Call<'_>, id: &str) {
    set_status(call.state, id, "deleting");
    schedule(call, "gone", id);
}

/// `os-reset_status` and `os-force_delete`, for administrators.
fn act(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let body = call.body.as_object().cloned().unwrap_or_default();
    if body.contains_key("os-force_delete") {
        return delete(call, &doc, true);
    }
    let status = call.wrapped("os-reset_status")?.text("status").to_owned();
    let known = [
        "available",
        "creating",
        "deleting",
        "error",
        "error_deleting",
    ];
    if !known.contains(&status.as_str()) {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute status. Value: {status}. '{status}' is not one of {}",
            crate::cloud::attribute::python_list(&known)
        )));
    }
    set_status(call.state, doc.text("id"), &status);
    Ok(Reply::empty_of(202, "application/json"))
}

fn schedule(call: &mut Call<'_>, action: &str, id: &str) {
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, action, Kind::Snapshot, id);
}
