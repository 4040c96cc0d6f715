//! Glance v2.

mod data;
mod members;
mod patch;

use http::Method;
use serde_json::{Value, json};

use super::attribute::python_list;
use super::call::{Answer, Call, Reply};
use super::clock::zulu;
use super::document::{Doc, Fields, doc as to_doc, public_fields};
use super::fault::Fault;
use super::identity::hashed;
use super::kind::Kind;
use super::query;
use super::route::{Access, Routes};
use super::service::Service;
use super::state::State;

/// Registers Glance's operations.
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
            let doc = find_writable(call)?;
            if doc.flag("protected") {
                return Err(Fault::forbidden(format!(
                    "Image {} is protected and cannot be deleted.",
                    doc.text("id")
                )));
            }
            members::forget(call, doc.text("id"));
            call.state.remove(Kind::Image, doc.text("id"));
            Ok(Reply::empty(204))
        })
        .on(
            Method::PATCH,
            "/v2/images/{id}",
            Access::Member,
            patch::apply,
        )
        .put("/v2/images/{id}/file", data::upload)
        .get("/v2/images/{id}/file", data::download)
        .post("/v2/images/{id}/actions/deactivate", |call| {
            activate(call, false)
        })
        .post("/v2/images/{id}/actions/reactivate", |call| {
            activate(call, true)
        })
        .put("/v2/images/{id}/tags/{tag}", |call| tag(call, true))
        .delete("/v2/images/{id}/tags/{tag}", |call| tag(call, false))
        .on(Method::GET, "/v2/schemas/image", Access::Reader, |_| {
            Ok(Reply::ok(json!({"name": "image", "properties": {}})))
        });
    members::routes(&mut table);
}

/// Creates a public, active image.
pub(crate) fn seed(state: &mut State, name: &str, owner: &str) {
    let id = state.new_id();
    let now = zulu(state.now());
    state.put(
        Kind::Image,
        to_doc(json!({"id": id, "name": name, "owner": owner, "status": "active", "visibility": "public",
            "disk_format": "qcow2", "container_format": "bare", "min_disk": 0, "min_ram": 0,
            "size": 1_073_741_824i64, "virtual_size": 10_737_418_240i64, "checksum": "d41d8cd98f00b204e9800998ecf8427e",
            "os_hash_algo": "sha512", "os_hash_value": hashed(name), "os_distro": "linux", "protected": false, "os_hidden": false,
            "tags": tags(name), "created_at": now, "updated_at": now})),
    );
}

/// Returns the tags of an image: the distribution, and `kubernetes` if the name says so.
fn tags(name: &str) -> Vec<&str> {
    let distribution = name.split('-').next().unwrap_or(name);
    let kubernetes = name.contains("kube").then_some("kubernetes");
    std::iter::once(distribution).chain(kubernetes).collect()
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
        .filter(|doc| listed(call, doc))
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
                    .all(|tag| doc.texts("tags").any(|existing| existing == tag))
                && call
                    .query
                    .get("visibility")
                    .is_none_or(|wanted| wanted == "all" || wanted == doc.text("visibility"))
        })
        .cloned()
        .collect();
    let mut keys = query::sort_keys(&call.query);
    if let Some((key, _)) = keys
        .iter()
        .find(|(key, _)| !SORTABLE.contains(&key.as_str()))
    {
        return Err(Fault::bad(format!(
            "Invalid sort key: {key}. It must be one of the following: {}.",
            SORTABLE.join(", ")
        )));
    }
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

/// Sort keys of images.
const SORTABLE: [&str; 8] = [
    "created_at",
    "updated_at",
    "name",
    "status",
    "container_format",
    "disk_format",
    "size",
    "id",
];

/// Glance's default lists of formats.
const FORMATS: [(&str, &[&str]); 2] = [
    (
        "disk_format",
        &[
            "ami", "ari", "aki", "vhd", "vhdx", "vmdk", "raw", "qcow2", "vdi", "iso", "ploop",
        ],
    ),
    (
        "container_format",
        &[
            "ami",
            "ari",
            "aki",
            "bare",
            "ovf",
            "ova",
            "docker",
            "compressed",
        ],
    ),
];

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
    for (field, known) in FORMATS {
        if doc.given(field) && !known.contains(&doc.text(field)) {
            let value = doc.text(field);
            return Err(Fault::bad(format!(
                "Provided object does not match schema 'image': '{value}' is not one of {}",
                python_list(known)
            )));
        }
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

fn tag(call: &mut Call<'_>, add: bool) -> Answer {
    let doc = find_writable(call)?;
    let tag = call.parameter("tag").to_owned();
    let mut tags: Vec<String> = doc.texts("tags").map(str::to_owned).collect();
    if !add && !tags.contains(&tag) {
        return Err(Fault::missing("Could not find tag"));
    }
    tags.retain(|existing| *existing != tag);
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

fn find_writable(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let doc = find(call)?;
    if call.owns_image(&doc) {
        return Ok(doc);
    }
    Err(Fault::forbidden(
        "You are not authorized to complete this action.",
    ))
}

impl Call<'_> {
    /// True if the caller is the owner of the image or an administrator.
    fn owns_image(&self, doc: &Doc) -> bool {
        self.who.admin() || doc.text("owner") == self.who.project_id
    }
}

/// True if an image can be read by id: members need not have accepted the image.
fn visible(call: &Call<'_>, doc: &Doc) -> bool {
    matches!(doc.text("visibility"), "public" | "community")
        || call.owns_image(doc)
        || doc.text("visibility") == "shared" && members::status(call, doc.text("id")).is_some()
}

/// True if an image is in lists: by default, shared images of other projects only after acceptance.
fn listed(call: &Call<'_>, doc: &Doc) -> bool {
    if !visible(call, doc) {
        return false;
    }
    if call.owns_image(doc) || doc.text("visibility") != "shared" {
        return true;
    }
    let wanted = call.query.get("member_status").unwrap_or("accepted");
    wanted == "all" || members::status(call, doc.text("id")).is_some_and(|status| status == wanted)
}

fn activate(call: &mut Call<'_>, active: bool) -> Answer {
    let doc = find_writable(call)?;
    let (from, to) = if active {
        ("deactivated", "active")
    } else {
        ("active", "deactivated")
    };
    if !matches!(doc.text("status"), "active" | "deactivated") {
        return Err(Fault::forbidden(format!(
            "Image status transition from {} to {to} is not allowed, it must be {from}",
            doc.text("status")
        )));
    }
    call.state
        .edit(Kind::Image, doc.text("id"), |doc| doc.set("status", to));
    Ok(Reply::empty(204))
}

/// Decodes the body as an object. Decoded here, since Glance's PUT may also have data.
fn body(call: &Call<'_>) -> Result<Doc, Fault> {
    match serde_json::from_slice(&call.raw_body) {
        Ok(Value::Object(map)) => Ok(map),
        _ => Err(Fault::bad("Malformed JSON in request body.")),
    }
}

fn view(doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    let id = doc.text("id");
    out.set("self", format!("/v2/images/{id}"));
    out.set("file", format!("/v2/images/{id}/file"));
    out.set("schema", "/v2/schemas/image");
    if doc.given("size") {
        out.set("stores", "file");
    }
    out
}
