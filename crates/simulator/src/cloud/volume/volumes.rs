//! Volumes.

use std::cmp::Reverse;

use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::query;
use crate::cloud::quota;
use crate::cloud::route::Table;
use crate::cloud::service::Service;

/// The operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/volumes", |call| list(call, false))
        .get("/v3/{project}/volumes/detail", |call| list(call, true))
        .post("/v3/{project}/volumes", |call| {
            let given = call.wrapped("volume")?;
            let doc = create(call, &given)?;
            Ok(Reply::with(202, json!({"volume": brief(call, &doc)})))
        })
        .get("/v3/{project}/volumes/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"volume": view(call, &doc)})))
        })
        .put("/v3/{project}/volumes/{id}", update)
        .delete("/v3/{project}/volumes/{id}", delete)
        .post("/v3/{project}/volumes/{id}/action", act);
}

/// The one volume service.
const SERVICE: &str = "6a1d1f1e-0000-4000-8000-000000000001";

/// The path's volume, if the caller may see it.
pub(crate) fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.accessible(Kind::Volume, id)
        .ok_or_else(|| Fault::missing(format!("Volume {id} could not be found.")))
}

/// Creates a volume for a new server.
pub(crate) fn create_for_server(call: &mut Call<'_>, given: Value) -> Result<String, Fault> {
    let doc = create(call, &to_doc(given))?;
    let id = doc.text("id").to_owned();
    call.state
        .edit(Kind::Volume, &id, |doc| doc.set("status", "reserved"));
    Ok(id)
}

/// Creates a volume to which a backup is restored.
pub(crate) fn create_for_backup(call: &mut Call<'_>, given: Value) -> Result<String, Fault> {
    let doc = create(call, &to_doc(given))?;
    Ok(doc.text("id").to_owned())
}

fn create(call: &mut Call<'_>, given: &Doc) -> Result<Doc, Fault> {
    let project = call.who.project_id.clone();
    let snapshot = given.text("snapshot_id");
    let snapshot =
        if snapshot.is_empty() {
            None
        } else {
            let found = call.accessible(Kind::Snapshot, snapshot);
            Some(found.ok_or_else(|| {
                Fault::missing(format!("Snapshot {snapshot} could not be found."))
            })?)
        };
    let size = match given.get("size") {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(value) => value.as_i64().unwrap_or(0),
        None => 0,
    };
    let size = if size == 0 {
        snapshot.as_ref().map_or(0, |doc| doc.number("volume_size"))
    } else {
        size
    };
    if size < 1 {
        return Err(Fault::bad(
            "Invalid input received: Volume size 'None' must be an integer and greater than 0",
        ));
    }
    let kind = super::volume_types::resolve(call, given.text("volume_type"))?;
    let zone = given.text("availability_zone");
    let zones = &call.settings.zones;
    if !zone.is_empty() && !zones.iter().any(|known| known == zone) {
        return Err(Fault::bad(format!(
            "Availability zone '{zone}' is invalid."
        )));
    }
    let zone = if zone.is_empty() {
        zones.first().map_or("nova", String::as_str)
    } else {
        zone
    }
    .to_owned();
    let image = given.text("imageRef");
    let image = if image.is_empty() {
        None
    } else {
        let found = call.state.get(Kind::Image, image);
        Some(found.ok_or_else(|| {
            Fault::bad("Invalid image identifier or unable to access requested image.")
        })?)
    };
    within_quota(call, &project, size)?;
    let id = call.state.new_id();
    let metadata = image.as_ref().map(|image| {
        let mut metadata = json!({"image_id": image.text("id"), "image_name": image.text("name"), "min_disk": "0", "min_ram": "0",
            "disk_format": "qcow2", "container_format": "bare", "size": image.number("size").to_string()});
        for name in ["checksum", "os_distro"] {
            if image.given(name) {
                metadata[name] = json!(image.text(name));
            }
        }
        metadata
    });
    let mut doc = to_doc(json!({
        "id": id, "project_id": project, "user_id": call.who.user_id, "name": given.text("name"),
        "description": given.get("description").cloned().unwrap_or_default(), "size": size,
        "status": "creating", "availability_zone": zone, "volume_type": kind.text("name"),
        "multiattach": kind.get("extra_specs").and_then(|specs| specs.get("multiattach")).and_then(Value::as_str) == Some("<is> True"),
        "snapshot_id": snapshot.as_ref().map(|doc| doc.text("id")), "source_volid": null,
        "bootable": if image.is_some() { "true" } else { "false" }, "encrypted": false,
        "replication_status": null, "consistencygroup_id": null, "attachments": [],
        "metadata": given.get("metadata").filter(|it| !it.is_null()).cloned().unwrap_or_else(|| json!({})),
        "created_at": naive_micros(call.now()), "updated_at": null,
    }));
    if let Some(metadata) = metadata {
        doc.set("volume_image_metadata", metadata);
    }
    call.state.put(Kind::Volume, doc.clone());
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, "created", Kind::Volume, &id);
    Ok(doc)
}

fn within_quota(call: &Call<'_>, project: &str, size: i64) -> Result<(), Fault> {
    let wanted = [("volumes", 1), ("gigabytes", size)];
    let exceeded = quota::exceeded(call, Service::Volume, project, &wanted);
    match exceeded.first() {
        None => Ok(()),
        Some(one) if one.name == "volumes" => Err(Fault::new(
            413,
            "VolumeLimitExceeded",
            format!(
                "VolumeLimitExceeded: Maximum number of volumes allowed ({}) exceeded for quota 'volumes'.",
                one.limit
            ),
        )),
        Some(one) => Err(Fault::new(
            413,
            "VolumeSizeExceedsAvailableQuota",
            format!(
                "VolumeSizeExceedsAvailableQuota: Requested volume or snapshot exceeds allowed gigabytes \
             quota. Requested {}G, quota is {}G and {}G has been consumed.",
                one.requested, one.limit, one.used
            ),
        )),
    }
}

fn list(call: &mut Call<'_>, detail: bool) -> Answer {
    let limit = call
        .query
        .limit()
        .map_err(|_| Fault::bad("limit param must be an integer"))?;
    let mut found: Vec<_> = if call.everyone() {
        call.state.all(Kind::Volume).cloned().collect()
    } else {
        call.state
            .by(Kind::Volume, "project_id", &call.who.project_id)
    };
    found.retain(|doc| {
        [
            "name",
            "status",
            "id",
            "bootable",
            "availability_zone",
            "volume_type",
        ]
        .iter()
        .all(|field| {
            let wanted: Vec<&str> = call.query.all(field).collect();
            wanted.is_empty() || query::matches(doc.get(*field), &wanted)
        }) && metadata_matches(call, doc)
    });
    found.sort_by_cached_key(|doc| {
        (
            Reverse(doc.text("created_at").to_owned()),
            Reverse(doc.text("id").to_owned()),
        )
    });
    query::sort(&mut found, &query::sort_keys(&call.query));
    let marker = call.query.get("marker");
    let page = query::page(found, marker, limit, false).ok_or_else(|| {
        Fault::missing(format!(
            "Volume {} could not be found.",
            marker.unwrap_or_default()
        ))
    })?;
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
    let mut body = json!({"volumes": views});
    if let Some(next) = &page.next {
        let href = format!(
            "{}{}?{}",
            call.root(),
            call.path,
            call.query.with_marker(next, false)
        );
        body["volumes_links"] = json!([{"rel": "next", "href": href}]);
    }
    Ok(Reply::ok(body))
}

/// `metadata={'key': 'value'}`: a Python dictionary, or JSON.
fn metadata_matches(call: &Call<'_>, doc: &Doc) -> bool {
    let Some(text) = call.query.get("metadata") else {
        return true;
    };
    let Ok(Value::Object(wanted)) = serde_json::from_str(&text.replace('\'', "\"")) else {
        return true;
    };
    let metadata = doc
        .get("metadata")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    wanted
        .iter()
        .all(|(key, value)| metadata.get(key) == Some(value))
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("volume")?;
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

fn delete(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let id = doc.text("id");
    let deletable = matches!(doc.text("status"), "available" | "error" | "error_deleting");
    if doc.text("status") == "deleting" {
        return Ok(Reply::empty(202));
    }
    if !deletable || !call.state.by(Kind::Snapshot, "volume_id", id).is_empty() {
        return Err(Fault::bad(
            "Invalid volume: Volume status must be available or error or error_restoring or \
             error_extending or error_managing and must not be migrating, attached, belong to a \
             group, have snapshots, awaiting a transfer, or be disassociated from snapshots after \
             volume transfer.",
        ));
    }
    call.state
        .edit(Kind::Volume, id, |doc| doc.set("status", "deleting"));
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, "gone", Kind::Volume, id);
    Ok(Reply::empty(202))
}

fn act(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let body = call.body.as_object().cloned().unwrap_or_default();
    let Some((action, argument)) = body.into_iter().next() else {
        return Err(Fault::bad("Malformed request body"));
    };
    match action.as_str() {
        "os-extend" => {
            let size = argument
                .get("new_size")
                .and_then(Value::as_i64)
                .unwrap_or(0);
            if size <= doc.number("size") {
                return Err(Fault::bad(format!(
                    "Invalid input received: New size for extend must be greater than current size. \
                     (current: {}, extended: {size}).",
                    doc.number("size")
                )));
            }
            call.state
                .edit(Kind::Volume, doc.text("id"), |doc| doc.set("size", size));
            Ok(Reply::empty_of(202, "application/json"))
        }
        "os-set_bootable" => {
            let flag = argument
                .get("bootable")
                .and_then(Value::as_bool)
                .unwrap_or(false);
            call.state.edit(Kind::Volume, doc.text("id"), |doc| {
                doc.set("bootable", flag.to_string())
            });
            Ok(Reply::empty_of(200, "application/json"))
        }
        _ => Err(Fault::bad(format!("There is no such action: {action}"))),
    }
}

fn links(call: &Call<'_>, doc: &Doc) -> Value {
    let (root, project, id) = (call.root(), doc.text("project_id"), doc.text("id"));
    json!([{"rel": "self", "href": format!("{root}/v3/{project}/volumes/{id}")},
        {"rel": "bookmark", "href": format!("{root}/{project}/volumes/{id}")}])
}

/// In answers to a creation or update, extensions add no fields.
fn brief(call: &Call<'_>, doc: &Doc) -> Value {
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
    if call.who.admin() {
        out.set("os-vol-host-attr:host", "simulated@fake#pool");
        out.set("migration_status", Value::Null);
        out.set("os-vol-mig-status-attr:migstat", Value::Null);
        out.set("os-vol-mig-status-attr:name_id", Value::Null);
    }
    if call.version >= 13 {
        out.set("group_id", Value::Null);
    }
    if call.version >= 21 {
        out.set("provider_id", Value::Null);
    }
    if call.version >= 48 {
        out.set("shared_targets", false);
        out.set("service_uuid", SERVICE);
    }
    if call.version >= 63 {
        let kind = super::volume_types::resolve(call, doc.text("volume_type"));
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
