//! Barbican v1: secrets and containers, the key manager for encrypted volumes and TLS listeners.
//!
//! Payloads are stored as sent; a real Barbican encrypts them. The log contains paths, never bodies.

mod certificate;
mod containers;
mod payload;

use std::sync::Arc;

use serde_json::{Value, json};

pub(crate) use self::certificate::{Certificate, certificate};
use self::payload::Payload;
use super::attribute::python_list;
use super::call::{Answer, Call, Reply};
use super::clock::naive_micros;
use super::document::{Doc, Fields, doc as to_doc, public_fields};
use super::fault::Fault;
use super::kind::Kind;
use super::route::Routes;
use super::service::Service;

/// Registers Barbican's operations.
pub(crate) fn routes(routes: &mut Routes) {
    let mut table = routes.of(Service::Secrets);
    table
        .get("/v1/secrets", |call| {
            list(call, Kind::Secret, "secrets", view)
        })
        .post("/v1/secrets", create)
        .get("/v1/secrets/{id}", show)
        .get("/v1/secrets/{id}/payload", |call| {
            let doc = find(call, Kind::Secret, "secret")?;
            payload::of(&doc)?.reply(call)
        })
        .put("/v1/secrets/{id}", store)
        .delete("/v1/secrets/{id}", |call| {
            remove(call, Kind::Secret, "secret")
        });
    containers::routes(&mut table);
}

/// Returns the metadata; or the payload, if another type is accepted, as Barbican's first clients expect.
fn show(call: &mut Call<'_>) -> Answer {
    let doc = find(call, Kind::Secret, "secret")?;
    let accept = call.headers.get("accept").and_then(|it| it.to_str().ok());
    if accept.is_some_and(|accept| accept == "application/octet-stream" || accept == "text/plain") {
        return payload::of(&doc)?.reply(call);
    }
    Ok(Reply::ok(Value::Object(view(call, &doc))))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.body.as_object().cloned().unwrap_or_default();
    let kind = match given.text("secret_type") {
        "" => "opaque",
        kind => kind,
    };
    let known = [
        "opaque",
        "symmetric",
        "public",
        "private",
        "passphrase",
        "certificate",
    ];
    if !known.contains(&kind) {
        return Err(Fault::bad(format!(
            "Provided object does not match schema 'Secret': '{kind}' is not one of {}. \
             Invalid property: 'secret_type'",
            python_list(&known)
        )));
    }
    let payload = Payload::given(&given)?;
    let id = call.state.new_id();
    let now = naive_micros(call.now());
    let mut doc = to_doc(json!({"id": id, "project_id": call.who.project_id,
        "creator_id": call.who.user_id, "secret_type": kind, "created": now, "updated": now,
        "status": "ACTIVE"}));
    for (field, default) in [
        ("name", json!(id)),
        ("algorithm", Value::Null),
        ("bit_length", Value::Null),
        ("mode", Value::Null),
        ("expiration", Value::Null),
    ] {
        let value = given.get(field).filter(|value| !value.is_null());
        doc.set(field, value.cloned().unwrap_or(default));
    }
    if let Some(payload) = payload {
        payload.keep(&mut doc);
    }
    call.state.put(Kind::Secret, doc);
    created(call, "secret", &id)
}

/// PUT of the payload of a secret created without one.
fn store(call: &mut Call<'_>) -> Answer {
    let doc = find(call, Kind::Secret, "secret")?;
    if doc.given("_payload") {
        return Err(Fault::conflict(
            "Secret already has data, cannot modify it.",
        ));
    }
    let payload = Payload::raw(call)?;
    call.state
        .edit(Kind::Secret, doc.text("id"), |doc| payload.keep(doc));
    Ok(Reply::empty(204))
}

/// Returns a page of a list, with Barbican's links.
fn list(call: &mut Call<'_>, kind: Kind, name: &str, view: fn(&Call<'_>, &Doc) -> Doc) -> Answer {
    let number = |name: &str, default: usize| {
        let given = call.query.get(name);
        given.and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (limit, offset) = (number("limit", 10).clamp(1, 100), number("offset", 0));
    let wanted = call.query.get("name");
    let mut found = call.state.by(kind, "project_id", &call.who.project_id);
    found.retain(|doc| wanted.is_none_or(|name| doc.text("name") == name));
    found.sort_by(|a, b| a.text("created").cmp(b.text("created")));
    let page: Vec<Doc> = found
        .iter()
        .skip(offset)
        .take(limit)
        .map(|doc| view(call, doc))
        .collect();
    let total = found.len();
    let link = |offset: usize| format!("{}/v1/{name}?limit={limit}&offset={offset}", call.root());
    let mut body = json!({"total": total});
    if offset > 0 {
        body["previous"] = json!(link(offset.saturating_sub(limit)));
    }
    if offset.saturating_add(limit) < total {
        body["next"] = json!(link(offset + limit));
    }
    body[name] = json!(page);
    Ok(Reply::ok(body))
}

fn remove(call: &mut Call<'_>, kind: Kind, name: &str) -> Answer {
    let doc = find(call, kind, name)?;
    call.state.remove(kind, doc.text("id"));
    Ok(Reply::empty(204))
}

fn created(call: &Call<'_>, name: &str, id: &str) -> Answer {
    let url = reference(call, name, id);
    let mut body = Doc::new();
    body.set(&format!("{name}_ref"), url.clone());
    Ok(Reply::with(201, Value::Object(body)).header("location", url))
}

/// Returns the [`Doc`] of a secret or container. One of another project does not exist for the caller, with Barbican's
/// message.
fn find(call: &Call<'_>, kind: Kind, name: &str) -> Result<Arc<Doc>, Fault> {
    call.accessible(kind, call.parameter("id")).ok_or_else(|| {
        Fault::missing(format!(
            "Not Found. Sorry but your {name} is in another castle."
        ))
    })
}

fn reference(call: &Call<'_>, name: &str, id: &str) -> String {
    format!("{}/v1/{name}s/{id}", call.root())
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    out.remove("project_id");
    let id = out.remove("id").unwrap_or_default();
    let id = id.as_str().unwrap_or_default();
    out.set("secret_ref", reference(call, "secret", id));
    if doc.given("_content_type") {
        out.set(
            "content_types",
            json!({"default": doc.text("_content_type")}),
        );
    }
    out
}
