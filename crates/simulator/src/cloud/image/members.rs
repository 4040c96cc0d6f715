//! Members of shared images: other projects with access.

use http::Method;
use serde_json::{Value, json};

use super::{body, find, find_writable};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::zulu;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(super) fn routes(table: &mut Table<'_>) {
    let (many, one) = (
        "/v2/images/{id}/members",
        "/v2/images/{id}/members/{member}",
    );
    table
        .get(many, list)
        .post(many, create)
        .get(one, |call| {
            let doc = member(call)?;
            Ok(Reply::ok(Value::Object(view(&doc))))
        })
        .on(Method::PUT, one, Access::Member, update)
        .delete(one, |call| {
            find_writable(call)?;
            let doc = member(call)?;
            call.state.remove(Kind::ImageMember, doc.text("id"));
            Ok(Reply {
                raw: Some(("", bytes::Bytes::new())),
                ..Reply::empty(204)
            })
        });
}

/// Returns the member status of the project: `pending`, `accepted` or `rejected`.
pub(super) fn status(call: &Call<'_>, image: &str) -> Option<String> {
    let key = key(image, &call.who.project_id);
    let doc = call.state.get(Kind::ImageMember, &key)?;
    Some(doc.text("status").to_owned())
}

/// Deletes the members of an image.
pub(super) fn forget(call: &mut Call<'_>, image: &str) {
    for doc in call.state.by(Kind::ImageMember, "image_id", image) {
        call.state.remove(Kind::ImageMember, doc.text("id"));
    }
}

fn list(call: &mut Call<'_>) -> Answer {
    let image = find(call)?;
    let mine = call.owns_image(&image);
    let members: Vec<Doc> = call
        .state
        .by(Kind::ImageMember, "image_id", image.text("id"))
        .iter()
        .filter(|doc| mine || doc.text("member_id") == call.who.project_id)
        .map(|doc| view(doc))
        .collect();
    Ok(Reply::ok(
        json!({"members": members, "schema": "/v2/schemas/members"}),
    ))
}

fn create(call: &mut Call<'_>) -> Answer {
    let image = find_writable(call)?;
    if image.text("visibility") != "shared" {
        return Err(Fault::forbidden("Only shared images have members."));
    }
    let member = body(call)?.text("member").to_owned();
    if member.is_empty() {
        return Err(Fault::bad("Member to be added not specified"));
    }
    let id = key(image.text("id"), &member);
    if call.state.get(Kind::ImageMember, &id).is_some() {
        return Err(Fault::conflict(format!(
            "Image member {member} already exists for image {}",
            image.text("id")
        )));
    }
    let now = zulu(call.now());
    let doc = to_doc(
        json!({"id": id, "image_id": image.text("id"), "member_id": member,
        "status": "pending", "created_at": now, "updated_at": now}),
    );
    call.state.put(Kind::ImageMember, doc.clone());
    Ok(Reply::ok(Value::Object(view(&doc))))
}

/// Only the member can accept or reject, not the owner.
fn update(call: &mut Call<'_>) -> Answer {
    find(call)?;
    let doc = member(call)?;
    if doc.text("member_id") != call.who.project_id && !call.who.admin() {
        return Err(Fault::forbidden(
            "You are not authorized to complete modify_member action.",
        ));
    }
    let status = body(call)?.text("status").to_owned();
    if !matches!(status.as_str(), "pending" | "accepted" | "rejected") {
        return Err(Fault::bad(
            "Member status must be one of: pending, accepted, rejected",
        ));
    }
    let now = zulu(call.now());
    call.state.edit(Kind::ImageMember, doc.text("id"), |doc| {
        doc.set("status", status);
        doc.set("updated_at", now);
    });
    let doc = member(call)?;
    Ok(Reply::ok(Value::Object(view(&doc))))
}

/// Returns the [`Doc`] of the member in the path, visible to the owner of the image and to the member.
fn member(call: &Call<'_>) -> Result<std::sync::Arc<Doc>, Fault> {
    let image = find(call)?;
    let member = call.parameter("member");
    call.state
        .get(Kind::ImageMember, &key(image.text("id"), member))
        .filter(|_| call.owns_image(&image) || member == call.who.project_id)
        .ok_or_else(|| {
            Fault::missing(format!(
                "{member} not found in the member list of the image {}.",
                image.text("id")
            ))
        })
}

fn key(image: &str, member: &str) -> String {
    format!("{image}/{member}")
}

fn view(doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    out.remove("id");
    out.set("schema", "/v2/schemas/member");
    out
}
