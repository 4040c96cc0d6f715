//! Types of volume groups (microversion 3.11), created by administrators.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::{body, since};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Version with group types.
const SINCE: u32 = 11;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (one, specs, spec) = (
        "/v3/{project}/group_types/{id}",
        "/v3/{project}/group_types/{id}/group_specs",
        "/v3/{project}/group_types/{id}/group_specs/{key}",
    );
    table
        .get("/v3/{project}/group_types", list)
        .get(one, |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"group_type": view(call, &doc)})))
        })
        .on(
            Method::POST,
            "/v3/{project}/group_types",
            Access::Admin,
            create,
        )
        .on(Method::PUT, one, Access::Admin, update)
        .on(Method::DELETE, one, Access::Admin, |call| {
            let doc = find(call)?;
            let id = doc.text("id");
            let in_use = call
                .state
                .all(Kind::VolumeGroup)
                .any(|group| group.text("group_type") == id);
            if in_use {
                return Err(Fault::bad("Target group type is still in use."));
            }
            call.state.remove(Kind::GroupType, id);
            Ok(Reply::empty(202))
        })
        .on(Method::GET, specs, Access::Admin, |call| {
            let doc = find(call)?;
            Ok(Reply::ok(json!({"group_specs": doc.object("group_specs")})))
        })
        .on(Method::POST, specs, Access::Admin, |call| {
            let doc = find(call)?;
            let given = call.wrapped("group_specs")?;
            let mut all = doc.object("group_specs");
            all.extend(given.clone());
            call.state.edit(Kind::GroupType, doc.text("id"), |doc| {
                doc.set("group_specs", all);
            });
            Ok(Reply::with(202, json!({"group_specs": given})))
        })
        .on(Method::DELETE, spec, Access::Admin, |call| {
            let doc = find(call)?;
            let key = call.parameter("key");
            let mut all = doc.object("group_specs");
            if all.remove(key).is_none() {
                return Err(Fault::missing(format!(
                    "Group Type {} has no specs with key {key}.",
                    doc.text("id")
                )));
            }
            call.state.edit(Kind::GroupType, doc.text("id"), |doc| {
                doc.set("group_specs", all);
            });
            Ok(Reply::empty(202))
        });
}

/// Returns the [`Doc`] of a group type by id or name.
pub(super) fn resolve(call: &Call<'_>, wanted: &str) -> Result<Arc<Doc>, Fault> {
    let named = || {
        call.state
            .by(Kind::GroupType, "name", wanted)
            .into_iter()
            .next()
    };
    call.state
        .get(Kind::GroupType, wanted)
        .or_else(named)
        .filter(|doc| call.who.admin() || doc.flag("is_public"))
        .ok_or_else(|| Fault::missing(format!("Group type {wanted} could not be found.")))
}

fn find(call: &Call<'_>) -> Result<Arc<Doc>, Fault> {
    since(call, SINCE)?;
    match call.parameter("id") {
        "default" => Err(Fault::missing("Default group type can not be found.")),
        id => resolve(call, id),
    }
}

/// Returns the view of a group type. The specs are for administrators.
fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = doc.clone();
    if !call.who.admin() {
        out.remove("group_specs");
    }
    out
}

fn list(call: &mut Call<'_>) -> Answer {
    since(call, SINCE)?;
    let visible = |doc: &&Arc<Doc>| call.who.admin() || doc.flag("is_public");
    let all: Vec<Value> = call
        .state
        .all(Kind::GroupType)
        .filter(visible)
        .map(|doc| Value::Object(view(call, doc)))
        .collect();
    Ok(Reply::ok(json!({"group_types": all})))
}

fn create(call: &mut Call<'_>) -> Answer {
    since(call, SINCE)?;
    let given = call.wrapped("group_type")?;
    let fields = ["name", "description", "is_public", "group_specs"];
    body::strict("group_type", &given, &fields)?;
    body::texts(&given, &fields[..2])?;
    let public = body::boolean(&given, "is_public")?;
    let name = body::trimmed(&given, "name");
    if name.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute name. Value: . '' is too short",
        ));
    }
    if !call.state.by(Kind::GroupType, "name", name).is_empty() {
        return Err(Fault::conflict(format!(
            "Group Type {name} already exists."
        )));
    }
    let doc = to_doc(json!({"id": call.state.new_id(), "name": name,
        "description": given.get("description").cloned().unwrap_or_default(),
        "is_public": public.unwrap_or(true), "group_specs": given.object("group_specs")}));
    call.state.put(Kind::GroupType, doc.clone());
    Ok(Reply::with(202, json!({"group_type": view(call, &doc)})))
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    let given = call.wrapped("group_type")?;
    let fields = ["name", "description", "is_public"];
    body::strict("group_type", &given, &fields)?;
    body::texts(&given, &fields[..2])?;
    let public = body::boolean(&given, "is_public")?;
    if !fields.iter().any(|field| given.given(field)) {
        return Err(Fault::bad(
            "Specify group type name, description or a combination thereof.",
        ));
    }
    let id = doc.text("id");
    call.state.edit(Kind::GroupType, id, |doc| {
        for field in &fields[..2] {
            if given.given(field) {
                doc.set(field, body::trimmed(&given, field));
            }
        }
        if let Some(public) = public {
            doc.set("is_public", public);
        }
    });
    let doc = find(call)?;
    Ok(Reply::ok(json!({"group_type": view(call, &doc)})))
}
