//! Containers: named references to related secrets.

use serde_json::{Value, json};

use super::{created, find, list, reference, remove};
use crate::cloud::attribute::python_list;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

/// Registers the operations.
pub(super) fn routes(table: &mut Table<'_>) {
    table
        .get("/v1/containers", |call| {
            list(call, Kind::Container, "containers", view)
        })
        .post("/v1/containers", create)
        .get("/v1/containers/{id}", |call| {
            let doc = find(call, Kind::Container, "container")?;
            Ok(Reply::ok(Value::Object(view(call, &doc))))
        })
        .delete("/v1/containers/{id}", |call| {
            remove(call, Kind::Container, "container")
        });
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.body.as_object().cloned().unwrap_or_default();
    let kind = given.text("type");
    let names: &[&str] = match kind {
        "generic" => &[],
        "certificate" => &[
            "certificate",
            "private_key",
            "private_key_passphrase",
            "intermediates",
        ],
        "rsa" => &["public_key", "private_key", "private_key_passphrase"],
        _ => {
            return Err(schema(&format!(
                "'{kind}' is not one of ['generic', 'rsa', 'certificate']."
            )));
        }
    };
    let references = given.list("secret_refs");
    for one in references.iter().map(|one| to_doc(one.clone())) {
        let name = one.text("name");
        if !names.is_empty() && !names.contains(&name) {
            return Err(schema(&format!(
                "only {} reference names are allowed for {kind} type",
                python_list(names)
            )));
        }
        let wanted = one.text("secret_ref");
        let id = wanted.rsplit('/').next().unwrap_or_default();
        if call.accessible(Kind::Secret, id).is_none() {
            return Err(Fault::missing(
                "Secret provided for '".to_owned() + name + "' doesn't exist.",
            ));
        }
    }
    let has = |name: &str| {
        let mut all = references.iter();
        all.any(|one| one.get("name").and_then(Value::as_str) == Some(name))
    };
    if kind == "certificate" && !has("certificate") {
        return Err(schema(
            "The minimum required reference name is 'certificate' for Certificate type",
        ));
    }
    let id = call.state.new_id();
    let now = naive_micros(call.now());
    let doc = to_doc(json!({"id": id, "project_id": call.who.project_id,
        "creator_id": call.who.user_id, "type": kind, "status": "ACTIVE", "created": now,
        "updated": now, "secret_refs": references, "consumers": [],
        "name": given.get("name").cloned().unwrap_or_default()}));
    call.state.put(Kind::Container, doc);
    created(call, "container", &id)
}

fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    out.remove("project_id");
    out.remove("id");
    out.set(
        "container_ref",
        reference(call, "container", doc.text("id")),
    );
    out
}

fn schema(problem: &str) -> Fault {
    Fault::bad(format!(
        "Provided object does not match schema 'Container': {problem} Invalid property: 'type'"
    ))
}
