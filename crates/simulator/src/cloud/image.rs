//! Glance v2.

use http::Method;
use serde_json::{Value, json};

use super::call::{Answer, Call, Reply};
use super::clock::zulu;
use super::document::{Doc, Fields, doc as to_doc, shown};
use super::fault::Fault;
use super::kind::Kind;
use super::query;
use super::route::{Access, Routes};
use super::service::Service;
use super::state::State;

/// Glance's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Image);
    table
        .get("/v2/images", list)
        .get("/v2/images/{id}", |call| {
            let doc = find(call)?;
            Ok(Reply::ok(Value::Object(view(&doc))))
        })
        .post("/v2/images", create)
        .delete("/v2/images/{id}", |call| {
            let doc = find_own(call)?;
            if doc.flag("protected") {
                return Err(Fault::forbidden(format!(
                    "Image {} is protected and cannot be deleted.",
                    doc.text("id")
                )));
            }
            call.state.remove(Kind::Image, doc.text("id"));
            Ok(Reply::empty(204))
        })
        .put("/v2/images/{id}/file", upload)
        .put("/v2/images/{id}/tags/{tag}", |call| tag(call, true))
        .delete("/v2/images/{id}/tags/{tag}", |call| tag(call, false))
        .on(Method::GET, "/v2/schemas/image", Access::Reader, |_| {
            Ok(Reply::ok(json!({"name": "image", "properties": {}})))
        });
}

/// Puts a public, active image.
pub(crate) fn seed(state: &mut State, name: &str, owner: &str) {
    let id = state.new_id();
    let now = zulu(state.now());
    state.put(
        Kind::Image,
        to_doc(json!({"id": id, "name": name, "owner": owner, "status": "active", "visibility": "public",
            "disk_format": "qcow2", "container_format": "bare", "min_disk": 0, "min_ram": 0,
            "size": 1_073_741_824i64, "virtual_size": 10_737_418_240i64, "checksum": "d41d8cd98f00b204e9800998ecf8427e",
            "os_hash_algo": "sha512", "os_hash_value": null, "protected": false, "os_hidden": false,
            "tags": [], "created_at": now, "updated_at": now})),
    );
}

fn list(call: &mut Call<'_>) -> Answer {
    let limit = call
        .query
        .limit()
        .map_err(|_| Fault::bad("limit param must be an integer"))?;
    let limit = limit.unwrap_or(25).min(1000);
    let reserved = [
        "limit",
        "marker",
        "sort",
        "sort_key",
        "sort_dir",
        "tag",
        "visibility",
        "member_status",
    ];
    let mut found: Vec<_> = call
        .state
        .all(Kind::Image)
        .filter(|doc| visible(call, doc))
        .filter(|doc| {
            call.query
                .names()
                .iter()
                .filter(|name| !reserved.contains(name))
                .all(|name| {
                    call.query
                        .all(name)
                        .any(|wanted| match wanted.strip_prefix("in:") {
                            Some(list) => list.split(',').any(|one| {
                                query::matches(doc.get(*name), &[one.trim_matches('"')])
                            }),
                            None => query::matches(doc.get(*name), &[wanted]),
                        })
                })
                && call
                    .query
                    .all("tag")
                    .all(|tag| doc.texts("tags").any(|own| own == tag))
                && call
                    .query
                    .get("visibility")
                    .is_none_or(|wanted| wanted == "all" || wanted == doc.text("visibility"))
        })
        .cloned()
        .collect();
    let mut keys = query::sort_keys(&call.query);
    if keys.is_empty() {
        keys = vec![("created_at".to_owned(), true)];
    }
    query::sort(&mut found, &keys);
    let marker = call.query.get("marker");
    let page = query::page(found, marker, Some(limit), false)
        .ok_or_else(|| Fault::bad(format!("Invalid marker: {}", marker.unwrap_or_default())))?;
    let images: Vec<Doc> = page.docs.iter().map(|doc| view(doc)).collect();
    let mut body = json!({"images": images, "schema": "/v2/schemas/images", "first": "/v2/images"});
    if let Some(next) = &page.next {
        body["next"] = json!(format!(
            "/v2/images?{}",
            call.query.with_marker(next, false)
        ));
    }
    Ok(Reply::ok(body))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.body.as_object().cloned().unwrap_or_default();
    let id = match given.text("id") {
        "" => call.state.new_id(),
        id => id.to_owned(),
    };
    if call.state.get(Kind::Image, &id).is_some() {
        return Err(Fault::conflict(format!("Image ID {id} already exists!")));
    }
    let now = zulu(call.now());
    let mut doc = to_doc(
        json!({"name": null, "visibility": "shared", "disk_format": null,
        "container_format": null, "min_disk": 0, "min_ram": 0, "protected": false, "os_hidden": false,
        "tags": [], "size": null, "virtual_size": null, "checksum": null, "os_hash_algo": null,
        "os_hash_value": null}),
    );
    for (name, value) in given {
        if name.starts_with('_')
            || matches!(
                name.as_str(),
                "status" | "size" | "created_at" | "updated_at" | "schema" | "self" | "file"
            )
        {
            return Err(Fault::forbidden(format!(
                "Attribute '{name}' is read-only."
            )));
        }
        doc.insert(name, value);
    }
    if doc.text("visibility") == "public" && !call.who.admin() {
        return Err(Fault::forbidden(
            "You are not authorized to complete publicize_image action.",
        ));
    }
    doc.set("id", id.clone());
    doc.set("owner", call.who.project_id.clone());
    doc.set("status", "queued");
    doc.set("created_at", now.clone());
    doc.set("updated_at", now);
    call.state.put(Kind::Image, doc.clone());
    let location = format!("{}/v2/images/{id}", call.root());
    Ok(Reply::with(201, Value::Object(view(&doc))).header("location", location))
}

/// The data itself is not kept, only its length.
fn upload(call: &mut Call<'_>) -> Answer {
    let doc = find_own(call)?;
    if doc.text("status") != "queued" {
        return Err(Fault::conflict(format!(
            "Image status transition from {} to saving is not allowed",
            doc.text("status")
        )));
    }
    let (size, now) = (call.raw_body.len(), zulu(call.now()));
    call.state.edit(Kind::Image, doc.text("id"), |doc| {
        doc.set("status", "active");
        doc.set("size", size);
        doc.set("updated_at", now);
    });
    Ok(Reply::empty(204))
}

fn tag(call: &mut Call<'_>, add: bool) -> Answer {
    let doc = find_own(call)?;
    let tag = call.parameter("tag").to_owned();
    let mut tags: Vec<String> = doc.texts("tags").map(str::to_owned).collect();
    if !add && !tags.contains(&tag) {
        return Err(Fault::missing("Could not find tag"));
    }
    tags.retain(|own| *own != tag);
    if add {
        tags.push(tag);
    }
    call.state
        .edit(Kind::Image, doc.text("id"), |doc| doc.set("tags", tags));
    Ok(Reply::empty(204))
}

fn find(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let id = call.parameter("id");
    call.state
        .get(Kind::Image, id)
        .filter(|doc| visible(call, doc))
        .ok_or_else(|| Fault::missing(format!("No image found with ID {id}")))
}

fn find_own(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let doc = find(call)?;
    if call.who.admin() || doc.text("owner") == call.who.project_id {
        return Ok(doc);
    }
    Err(Fault::forbidden(
        "You are not authorized to complete this action.",
    ))
}

fn visible(call: &Call<'_>, doc: &Doc) -> bool {
    matches!(doc.text("visibility"), "public" | "community")
        || call.who.admin()
        || doc.text("owner") == call.who.project_id
}

fn view(doc: &Doc) -> Doc {
    let mut out = shown(doc);
    let id = doc.text("id");
    out.set("self", format!("/v2/images/{id}"));
    out.set("file", format!("/v2/images/{id}/file"));
    out.set("schema", "/v2/schemas/image");
    out
}
