//! Volumes: list, get, update and delete.

use std::cmp::Reverse;

use serde_json::{Value, json};

use super::{actions, attach, body, create, filters, snapshots, volume_types};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::route::Table;
use crate::cloud::settings::Settings;
use crate::cloud::state::State;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/volumes", |call| list(call, false))
        .get("/v3/{project}/volumes/detail", |call| list(call, true))
        .post("/v3/{project}/volumes", create::post)
        .get("/v3/{project}/volumes/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"volume": view(call, &doc)})))
        })
        .put("/v3/{project}/volumes/{id}", update)
        .delete("/v3/{project}/volumes/{id}", |call| {
            let doc = find(call)?;
            let asked = |name: &str| call.query.get(name).and_then(query::truth) == Some(true);
            let (cascade, force) = (asked("cascade"), call.version >= 23 && asked("force"));
            if force && !call.who.admin() {
                return Err(super::not_allowed("volume:force_delete"));
            }
            delete(call, &doc, cascade, force)
        })
        .post("/v3/{project}/volumes/{id}/action", actions::act);
}

/// The one volume service.
const SERVICE: &str = "6a1d1f1e-0000-4000-8000-000000000001";

/// Returns the [`Doc`] of the volume in the path, if visible to the caller.
pub(crate) fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.accessible(Kind::Volume, id)
        .ok_or_else(|| Fault::missing(format!("Volume {id} could not be found.")))
}

/// Filters for members, as in Cinder's default configuration.
const FILTERS: [&str; 11] = [
    "name",
    "status",
    "metadata",
    "bootable",
    "migration_status",
    "availability_zone",
    "group_id",
    "size",
    "created_at",
    "updated_at",
    "consumes_quota",
];
/// Version with filters by time.
const BY_TIME: u32 = 60;

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    filters::check(call, &FILTERS)?;
    let mut found: Vec<_> = if call.everyone() {
        call.state.all(Kind::Volume).cloned().collect()
    } else {
        call.state
            .by(Kind::Volume, "project_id", &call.who.project_id)
    };
    let fields = [
        "name",
        "status",
        "id",
        "bootable",
        "availability_zone",
        "volume_type",
        "size",
    ];
    found.retain(|doc| {
        fields
            .iter()
            .all(|field| super::matches(call, doc, field, field))
            && (call.version < 10 || super::matches(call, doc, "group_id", "_group"))
            && super::metadata_matches(call, doc)
    });
    if call.version >= BY_TIME {
        let mut kept = Vec::new();
        for doc in found {
            if filters::time_matches(call, &doc, "created_at")?
                && filters::time_matches(call, &doc, "updated_at")?
            {
                kept.push(doc);
            }
        }
        found = kept;
    }
    found.sort_by_cached_key(|doc| {
        (
            Reverse(doc.text("created_at").to_owned()),
            Reverse(doc.text("id").to_owned()),
        )
    });
    query::sort(&mut found, &query::sort_keys(&call.query));
    let page = super::page(call, found, "volumes", true)?;
    let views: Vec<Value> = page
        .docs
        .iter()
        .map(|doc| {
            if detail {
                view(call, doc)
            } else {
                json!({"id": doc.text("id"), "name": doc.text("name"), "links": links(call, doc)})
            }
        })
        .collect();
    Ok(page.reply("volumes", views))
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("volume")?;
    let known = [
        "name",
        "description",
        "display_name",
        "display_description",
        "metadata",
    ];
    body::strict("volume", &given, &known)?;
    body::texts(&given, &known[..4])?;
    body::metadata(&given)?;
    if call.version >= 53 && given.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute volume. Value: {}. {} is not valid under any of the given schemas",
        ));
    }
    let now = naive_micros(call.now());
    call.state.edit(Kind::Volume, doc.text("id"), |doc| {
        for field in ["name", "description", "metadata"] {
            if let Some(value) = given.get(field) {
                doc.set(field, value.clone());
            }
        }
        doc.set("updated_at", now);
    });
    let doc = find(call)?;
    Ok(Reply::ok(json!({"volume": brief(call, &doc)})))
}

/// Accepts the deletion of a volume; `cascade` includes the snapshots, `force` ignores the status.
pub(super) fn delete(call: &mut Call<'_>, doc: &Doc, cascade: bool, force: bool) -> Answer {
    let id = doc.text("id");
    let snapshots = call.state.by(Kind::Snapshot, "volume_id", id);
    let deletable = |snapshot: &Doc| {
        matches!(snapshot.text("status"), "available" | "error" | "deleting")
            && !snapshot.given("_group_snapshot")
    };
    let may_go = match cascade {
        true => force || snapshots.iter().all(|snapshot| deletable(snapshot)),
        false => snapshots.is_empty(),
    };
    let attached = attach::all(doc);
    let attached = attached.iter().any(|one| one.text("status") == "attached");
    let idle = matches!(
        doc.text("status"),
        "available" | "error" | "error_restoring" | "error_extending" | "error_managing"
    );
    if !(idle || force) || attached || doc.given("_group") || !may_go {
        let status = match force {
            true => "",
            false => {
                "status must be available or error or error_restoring or error_extending or error_managing and "
            }
        };
        return Err(Fault::bad(format!(
            "Invalid volume: Volume {status}must not be migrating, attached, belong to a group, have snapshots, \
             awaiting a transfer, or be disassociated from snapshots after volume transfer."
        )));
    }
    for snapshot in snapshots {
        snapshots::begin_delete(call, snapshot.text("id"));
    }
    // A volume that no back end has goes at once.
    match doc.flag("_unscheduled") {
        true => remove(call.state, id),
        false => begin_delete(call.state, call.settings, id),
    }
    Ok(Reply::empty(202))
}

/// Removes a volume, and the snapshots deleted together with the volume.
pub(super) fn remove(state: &mut State, id: &str) {
    for snapshot in state.by(Kind::Snapshot, "volume_id", id) {
        state.remove(Kind::Snapshot, snapshot.text("id"));
    }
    state.remove(Kind::Volume, id);
}

/// Starts the deletion of a volume, after the checks.
pub(crate) fn begin_delete(state: &mut State, settings: &Settings, id: &str) {
    let now = naive_micros(state.now());
    state.edit(Kind::Volume, id, |doc| {
        let managing = doc.text("status") == "error_managing";
        let status = match managing {
            true => "error_managing_deleting",
            false => "deleting",
        };
        doc.set("status", status);
        doc.set("updated_at", now);
    });
    let delay = settings.latency.transition(Transition::Volume);
    state.schedule(delay, "gone", Kind::Volume, id);
}

fn links(call: &Call<'_>, doc: &Doc) -> Value {
    let (root, project, id) = (call.root(), doc.text("project_id"), doc.text("id"));
    json!([{"rel": "self", "href": format!("{root}/v3/{project}/volumes/{id}")},
        {"rel": "bookmark", "href": format!("{root}/{project}/volumes/{id}")}])
}

/// In answers to a creation or update, extensions add no fields.
pub(super) fn brief(call: &Call<'_>, doc: &Doc) -> Value {
    let mut out = view(call, doc);
    if let Some(fields) = out.as_object_mut() {
        fields.retain(|name, _| !name.starts_with("os-vol-") && name != "volume_image_metadata");
    }
    out
}

fn view(call: &Call<'_>, doc: &Doc) -> Value {
    let mut out = public_fields(doc);
    let project = out.remove("project_id").unwrap_or_default();
    out.set("os-vol-tenant-attr:tenant_id", project);
    let links = links(call, doc);
    out.set("links", links);
    out.set("attachments", attach::complete_ones(doc, call.who.admin()));
    if call.who.admin() {
        let host = match doc.text("_host") {
            "" => Value::Null,
            host => json!(format!("{host}@fake#pool")),
        };
        out.set("os-vol-host-attr:host", host);
        out.set("migration_status", Value::Null);
        out.set("os-vol-mig-status-attr:migstat", Value::Null);
        out.set("os-vol-mig-status-attr:name_id", Value::Null);
    }
    if call.version >= 13 {
        out.set("group_id", doc.get("_group").cloned().unwrap_or_default());
    }
    if call.version >= 21 {
        out.set("provider_id", Value::Null);
    }
    if call.version >= 48 {
        out.set("shared_targets", false);
        out.set("service_uuid", SERVICE);
    }
    if call.version >= 64 && doc.given("_encryption_key") {
        out.set("encryption_key_id", doc["_encryption_key"].clone());
    }
    if call.version >= 63 {
        let kind = volume_types::any(call, doc.text("volume_type"));
        out.set(
            "volume_type_id",
            kind.map_or(Value::Null, |kind| json!(kind.text("id"))),
        );
    }
    if call.version >= 65 {
        out.set("consumes_quota", true);
    }
    if !call.who.admin() || call.version < 21 {
        out.remove("provider_id");
    }
    Value::Object(out)
}
