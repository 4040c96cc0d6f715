//! Backups of volumes, and their restoration.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{body, create, messages};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::quota;
use crate::cloud::route::{Access, Table};
use crate::cloud::service::Service;
use crate::cloud::settings::{Settings, VolumeTrouble};
use crate::cloud::state::State;

/// First microversion in which a backup has its own zone.
const WITH_ZONE: u32 = 51;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/backups", |call| list(call, false))
        .get("/v3/{project}/backups/detail", |call| list(call, true))
        .post("/v3/{project}/backups", create)
        .get("/v3/{project}/backups/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"backup": view(call, &doc)})))
        })
        .put("/v3/{project}/backups/{id}", update)
        .delete("/v3/{project}/backups/{id}", delete)
        .post("/v3/{project}/backups/{id}/restore", restore)
        .on(
            Method::POST,
            "/v3/{project}/backups/{id}/action",
            Access::Admin,
            reset,
        );
}

/// Applies a due transition.
pub(crate) fn transition(state: &mut State, settings: &Settings, action: &str, id: &str) {
    let Some(backup) = state.get(Kind::Backup, id) else {
        return;
    };
    let trouble = |trouble| {
        let name = backup.text("name");
        settings.volume_trouble(name, &[trouble]).is_some()
    };
    match action {
        "created" => {
            let failed = trouble(VolumeTrouble::BackupFails);
            if failed {
                messages::write(state, &backup, messages::NO_BACKUP);
            }
            state.edit(Kind::Backup, id, |doc| {
                doc.set("status", if failed { "error" } else { "available" });
                if failed {
                    doc.set("fail_reason", "Backup driver reported an error");
                }
            });
            state.edit(Kind::Snapshot, backup.text("snapshot_id"), |doc| {
                if doc.text("status") == "backing-up" {
                    doc.set("status", "available");
                }
            });
            let before = backup.text("_volume_status").to_owned();
            state.edit(Kind::Volume, backup.text("volume_id"), |doc| {
                if doc.text("status") == "backing-up" {
                    doc.set("status", before);
                }
            });
        }
        "restored" => {
            state.edit(Kind::Backup, id, |doc| doc.set("status", "available"));
            state.edit(Kind::Volume, backup.text("_restored_to"), |doc| {
                doc.set("status", "available");
            });
        }
        "gone" if trouble(VolumeTrouble::BackupDeleteFails) => {
            messages::write(state, &backup, messages::BACKUP_STAYS);
            state.edit(Kind::Backup, id, |doc| doc.set("status", "error_deleting"));
        }
        "gone" => {
            state.remove(Kind::Backup, id);
        }
        _ => tracing::warn!(action, "unknown backup transition dropped"),
    }
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    super::filters::check(call, &["name", "status", "volume_id"])?;
    let visible: Vec<Arc<Doc>> = if call.everyone() {
        call.state.all(Kind::Backup).cloned().collect()
    } else {
        call.state
            .by(Kind::Backup, "project_id", &call.who.project_id)
    };
    let is = |doc: &Doc, field: &str| {
        call.query
            .get(field)
            .is_none_or(|wanted| doc.text(field) == wanted)
    };
    let mut found = visible;
    found.retain(|doc| is(doc, "name") && is(doc, "volume_id") && is(doc, "status"));
    found.sort_by(|a, b| b.text("created_at").cmp(a.text("created_at")));
    query::sort(&mut found, &query::sort_keys(&call.query));
    let page = super::page(call, found, "backups", true)?;
    let views = page.docs.iter().map(|doc| match detail {
        true => Value::Object(view(call, doc)),
        false => Value::Object(brief(call, doc)),
    });
    Ok(page.reply("backups", views.collect()))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("backup")?;
    let wanted = given.text("volume_id");
    let volume = call
        .accessible(Kind::Volume, wanted)
        .ok_or_else(|| Fault::missing(format!("Volume {wanted} could not be found.")))?;
    let status = volume.text("status");
    let snapshot = source_snapshot(call, &given, &volume)?;
    if snapshot.is_none() {
        if !matches!(status, "available" | "in-use") {
            return Err(Fault::bad(format!(
                "Invalid volume: Volume to be backed up must be available or in-use, but the current status is \"{status}\"."
            )));
        }
        if status == "in-use" && !given.get("force").is_some_and(body::is_true) {
            return Err(Fault::bad(
                "Invalid volume: Backing up an in-use volume must use the force flag.",
            ));
        }
    }
    let zone = match given.text("availability_zone") {
        zone if !zone.is_empty() && call.version >= WITH_ZONE => zone,
        _ => volume.text("availability_zone"),
    };
    if !call.settings.volume_zones.iter().any(|known| known == zone) {
        return Err(Fault::bad(format!(
            "Availability zone '{zone}' is invalid."
        )));
    }
    let parent = if given.flag("incremental") {
        Some(latest(call, &volume).ok_or_else(|| {
            Fault::bad("Invalid backup: No backups available to do an incremental backup.")
        })?)
    } else {
        None
    };
    let size = volume.number("size");
    within_quota(call, size)?;
    let id = call.state.new_id();
    let now = naive_micros(call.now());
    let doc = to_doc(json!({"id": id, "project_id": volume.text("project_id"),
        "user_id": call.who.user_id, "name": given.get("name").cloned().unwrap_or_default(),
        "description": given.get("description").cloned().unwrap_or_default(),
        "volume_id": volume.text("id"), "size": size, "object_count": 0, "status": "creating",
        "container": given.get("container").cloned().unwrap_or_default(), "fail_reason": null,
        "availability_zone": zone, "is_incremental": parent.is_some(),
        "snapshot_id": given.get("snapshot_id").cloned().unwrap_or_default(), "data_timestamp": snapshot.as_ref().map_or(now.as_str(), |doc| doc.text("created_at")),
        "metadata": given.get("metadata").cloned().unwrap_or_else(|| json!({})), "created_at": now,
        "updated_at": null, "_parent": parent.map(|doc| doc.text("id").to_owned()),
        "_volume_status": status, "_bootable": volume.text("bootable") == "true",
        "_image_metadata": volume.get("volume_image_metadata").cloned().unwrap_or_default()}));
    call.state.put(Kind::Backup, doc.clone());
    // A backup of a snapshot leaves its volume alone.
    let (kind, source) = match &snapshot {
        Some(snapshot) => (Kind::Snapshot, snapshot.text("id")),
        None => (Kind::Volume, wanted),
    };
    call.state
        .edit(kind, source, |doc| doc.set("status", "backing-up"));
    schedule(call, "created", &id);
    Ok(Reply::with(202, json!({"backup": brief(call, &doc)})))
}

/// Returns the [`Doc`] of the snapshot to back up in place of the volume.
fn source_snapshot(call: &Call<'_>, given: &Doc, volume: &Doc) -> Result<Option<Arc<Doc>>, Fault> {
    let wanted = given.text("snapshot_id");
    if wanted.is_empty() {
        return Ok(None);
    }
    let snapshot = call
        .accessible(Kind::Snapshot, wanted)
        .ok_or_else(|| Fault::missing(format!("Snapshot {wanted} could not be found.")))?;
    let (of, id) = (snapshot.text("volume_id"), volume.text("id"));
    if of != id {
        return Err(Fault::bad(format!(
            "Invalid volume: Volume {id} does not match with snapshot.volume_id {of}."
        )));
    }
    match snapshot.text("status") {
        "available" => Ok(Some(snapshot)),
        status => Err(Fault::bad(format!(
            "Invalid snapshot: Snapshot to be backed up must be available, but the current status is \"{status}\"."
        ))),
    }
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("backup")?;
    let id = doc.text("id").to_owned();
    call.state.edit(Kind::Backup, &id, |doc| {
        for field in ["name", "description", "metadata"] {
            if let Some(value) = given.get(field) {
                doc.set(field, value.clone());
            }
        }
    });
    let doc = find(call)?;
    Ok(Reply::ok(json!({"backup": brief(call, &doc)})))
}

fn delete(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let id = doc.text("id");
    if !matches!(doc.text("status"), "available" | "error") {
        return Err(Fault::bad(
            "Invalid backup: Backup status must be available or error",
        ));
    }
    if has_dependents(call.state, &doc) {
        return Err(Fault::bad(
            "Invalid backup: Incremental backups exist for this backup.",
        ));
    }
    call.state
        .edit(Kind::Backup, id, |doc| doc.set("status", "deleting"));
    schedule(call, "gone", id);
    Ok(Reply::empty(202))
}

fn restore(call: &mut Call<'_>) -> Answer {
    let backup = find(call)?;
    let given = call.wrapped("restore")?;
    let (id, size) = (backup.text("id"), backup.number("size"));
    if backup.text("status") != "available" {
        return Err(Fault::bad(
            "Invalid backup: Backup status must be available",
        ));
    }
    let volume = match given.text("volume_id") {
        "" => {
            let name = match given.text("name") {
                "" => format!("restore_backup_{id}"),
                name => name.to_owned(),
            };
            create::create_for_backup(call, json!({"name": name, "size": size}))?
        }
        existing => {
            let volume = call
                .accessible(Kind::Volume, existing)
                .ok_or_else(|| Fault::missing(format!("Volume {existing} could not be found.")))?;
            if volume.text("status") != "available" {
                return Err(Fault::bad(
                    "Invalid volume: Volume to be restored to must be available",
                ));
            }
            if volume.number("size") < size {
                return Err(Fault::bad(format!(
                    "Invalid volume: volume size {} is too small to restore backup of size {size}.",
                    volume.number("size")
                )));
            }
            existing.to_owned()
        }
    };
    call.state.edit(Kind::Volume, &volume, |doc| {
        doc.set("status", "restoring-backup")
    });
    call.state.edit(Kind::Backup, id, |doc| {
        doc.set("status", "restoring");
        doc.set("_restored_to", volume.clone());
    });
    schedule(call, "restored", id);
    let name = call.state.get(Kind::Volume, &volume).unwrap_or_default();
    Ok(Reply::with(
        202,
        json!({"restore": {"backup_id": id, "volume_id": volume, "volume_name": name.text("name")}}),
    ))
}

/// `os-reset_status`, for administrators.
fn reset(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let status = call.wrapped("os-reset_status")?.text("status").to_owned();
    if !matches!(status.as_str(), "available" | "error") {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute status. Value: {status}."
        )));
    }
    call.state.edit(Kind::Backup, doc.text("id"), |doc| {
        doc.set("status", status)
    });
    Ok(Reply::empty(202))
}

/// Returns the [`Doc`] of the last finished backup of the volume, the base of an incremental one.
fn latest(call: &Call<'_>, volume: &Doc) -> Option<Arc<Doc>> {
    let all = call.state.by(Kind::Backup, "volume_id", volume.text("id"));
    all.into_iter()
        .filter(|doc| doc.text("status") == "available")
        .max_by(|a, b| a.text("created_at").cmp(b.text("created_at")))
}

fn has_dependents(state: &State, doc: &Doc) -> bool {
    let all = state.by(Kind::Backup, "volume_id", doc.text("volume_id"));
    all.iter()
        .any(|other| other.text("_parent") == doc.text("id"))
}

fn within_quota(call: &Call<'_>, size: i64) -> Result<(), Fault> {
    let wanted = [("backups", 1), ("backup_gigabytes", size)];
    let exceeded = quota::exceeded(call, Service::Volume, &call.who.project_id, &wanted);
    match exceeded.first() {
        None => Ok(()),
        Some(one) if one.name == "backups" => Err(Fault::new(
            413,
            "BackupLimitExceeded",
            format!(
                "BackupLimitExceeded: Maximum number of backups allowed ({}) exceeded",
                one.limit
            ),
        )),
        Some(one) => Err(Fault::new(
            413,
            "VolumeBackupSizeExceedsAvailableQuota",
            format!(
                "VolumeBackupSizeExceedsAvailableQuota: Requested backup exceeds allowed Backup gigabytes \
                 quota. Requested {}G, quota is {}G and {}G has been consumed.",
                one.requested, one.limit, one.used
            ),
        )),
    }
}

fn schedule(call: &mut Call<'_>, action: &'static str, id: &str) {
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, action, Kind::Backup, id);
}

fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.accessible(Kind::Backup, id)
        .ok_or_else(|| Fault::missing(format!("Backup {id} could not be found.")))
}

/// Returns a [`Doc`] of the fields in the answer to a creation and in short lists.
fn brief(call: &Call<'_>, doc: &Doc) -> Doc {
    to_doc(json!({"id": doc.text("id"), "name": doc.get("name"), "links": links(call, doc)}))
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    out.set("has_dependent_backups", has_dependents(call.state, doc));
    out.set("links", links(call, doc));
    let project = out.remove("project_id").unwrap_or_default();
    if call.version >= 18 {
        out.set("os-backup-project-attr:project_id", project);
    }
    if call.version < 43 {
        out.remove("metadata");
    }
    if call.version < 56 {
        out.remove("user_id");
    }
    out
}

fn links(call: &Call<'_>, doc: &Doc) -> Value {
    let path = format!("{}/backups/{}", call.who.project_id, doc.text("id"));
    json!([{"rel": "self", "href": format!("{}/v3/{path}", call.root())},
        {"rel": "bookmark", "href": format!("{}/{path}", call.root())}])
}
