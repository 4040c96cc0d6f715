//! Volume types and availability zones.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

/// The name of the default type.
const DEFAULT: &str = "__DEFAULT__";

/// The operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/types", |call| {
            let all: Vec<Value> = call
                .state
                .all(Kind::VolumeType)
                .map(|doc| Value::Object(public_fields(doc)))
                .collect();
            Ok(Reply::ok(json!({"volume_types": all})))
        })
        .get("/v3/{project}/types/{id}", |call| {
            let id = match call.parameter("id") {
                "default" => DEFAULT,
                id => id,
            };
            let mut doc = public_fields(&*resolve(call, id)?);
            if call.parameter("id") == "default" {
                doc.remove("os-volume-type-access:is_public");
            }
            Ok(Reply::ok(json!({"volume_type": doc})))
        })
        .on(Method::POST, "/v3/{project}/types", Access::Admin, create)
        .on(
            Method::DELETE,
            "/v3/{project}/types/{id}",
            Access::Admin,
            |call| {
                let doc = resolve(call, call.parameter("id"))?;
                call.state.remove(Kind::VolumeType, doc.text("id"));
                Ok(Reply::empty(202))
            },
        )
        .get("/v3/{project}/extensions", |_| {
            Ok(Reply::ok(json!({"extensions": extensions()})))
        })
        .get("/v3/{project}/os-availability-zone", |call| {
            let all: Vec<Value> = call
                .settings
                .zones
                .iter()
                .map(|zone| json!({"zoneName": zone, "zoneState": {"available": true}}))
                .collect();
            Ok(Reply::ok(json!({"availabilityZoneInfo": all})))
        });
}

/// Creates the default type, and the types of the real cloud in docs/real-openstack.md; volumes of the type `shared`
/// can be attached to several servers.
pub(crate) fn seed(state: &mut State) {
    for (name, specs) in [
        (DEFAULT, json!({})),
        ("standard", json!({})),
        ("fast", json!({})),
        ("shared", json!({"multiattach": "<is> True"})),
    ] {
        let id = state.new_id();
        state.put(Kind::VolumeType, volume_type(&id, name, specs));
    }
}

/// A type by id or name; the default one for the empty name.
pub(crate) fn resolve(call: &Call<'_>, wanted: &str) -> Result<Arc<Doc>, Fault> {
    let wanted = if wanted.is_empty() { DEFAULT } else { wanted };
    call.state
        .get(Kind::VolumeType, wanted)
        .or_else(|| {
            call.state
                .by(Kind::VolumeType, "name", wanted)
                .into_iter()
                .next()
        })
        .ok_or_else(|| Fault::missing(format!("Volume type {wanted} could not be found.")))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("volume_type")?;
    let name = given.text("name");
    if name.is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute name. Value: . '' is too short",
        ));
    }
    if !call.state.by(Kind::VolumeType, "name", name).is_empty() {
        return Err(Fault::conflict(format!(
            "Volume Type {name} already exists."
        )));
    }
    let id = call.state.new_id();
    let specs = given
        .get("extra_specs")
        .cloned()
        .unwrap_or_else(|| json!({}));
    let mut doc = volume_type(&id, name, specs);
    doc.set(
        "description",
        given.get("description").cloned().unwrap_or_default(),
    );
    call.state.put(Kind::VolumeType, doc.clone());
    Ok(Reply::ok(json!({"volume_type": public_fields(&doc)})))
}

fn volume_type(id: &str, name: &str, specs: Value) -> Doc {
    to_doc(
        json!({"id": id, "name": name, "description": null, "is_public": true,
        "os-volume-type-access:is_public": true, "extra_specs": specs}),
    )
}

/// Cinder's extensions: alias, name, description and date of each.
fn extensions() -> Vec<Value> {
    let all: Vec<[String; 4]> =
        serde_json::from_str(include_str!("extensions.json")).unwrap_or_default();
    let extension = |[alias, name, description, updated]: [String; 4]| {
        json!({"alias": alias, "name": name, "description": description, "links": [],
            "updated": updated})
    };
    all.into_iter().map(extension).collect()
}
