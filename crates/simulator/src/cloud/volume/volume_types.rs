//! Volume types and availability zones.

use std::sync::Arc;

use http::Method;
use serde_json::{Value, json};

use super::body;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc, public_fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::query;
use crate::cloud::route::{Access, Table};
use crate::cloud::state::State;

/// Name of the default type.
const DEFAULT: &str = "__DEFAULT__";

/// Spec with the zones of a type.
const ZONES: &str = "RESKEY:availability_zones";
/// Specs visible to everybody.
const VISIBLE: [&str; 3] = [ZONES, "multiattach", "replication_enabled"];

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v3/{project}/types", list)
        .get("/v3/{project}/types/{id}", |call| {
            let id = match call.parameter("id") {
                "default" => DEFAULT,
                id => id,
            };
            let mut doc = view(call, &*resolve(call, id)?);
            if call.parameter("id") == "default" {
                doc.remove("os-volume-type-access:is_public");
            }
            Ok(Reply::ok(json!({"volume_type": doc})))
        })
        .on(Method::POST, "/v3/{project}/types", Access::Admin, create)
        .on(
            Method::PUT,
            "/v3/{project}/types/{id}",
            Access::Admin,
            update,
        )
        .on(
            Method::DELETE,
            "/v3/{project}/types/{id}",
            Access::Admin,
            |call| {
                let doc = resolve(call, call.parameter("id"))?;
                check_unused(call, &doc, "Target volume type is still in use.")?;
                if doc.text("name") == DEFAULT {
                    return Err(Fault::bad(format!(
                        "The volume type {} is a default volume type and cannot be deleted.",
                        doc.text("id")
                    )));
                }
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
                .volume_zones
                .iter()
                .map(|zone| json!({"zoneName": zone, "zoneState": {"available": true}}))
                .collect();
            Ok(Reply::ok(json!({"availabilityZoneInfo": all})))
        });
}

/// Creates the default type, and the types of the real cloud in docs/project/test-cloud.md; volumes of the type `shared`
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

/// Returns the [`Doc`] of a type by id or name that the caller may use; the default type for an empty name.
pub(crate) fn resolve(call: &Call<'_>, wanted: &str) -> Result<Arc<Doc>, Fault> {
    let found = any(call, wanted)?;
    match usable(call, &found) {
        true => Ok(found),
        false => Err(missing(wanted)),
    }
}

/// Returns the [`Doc`] of a type by id or name, whoever may use the type.
pub(super) fn any(call: &Call<'_>, wanted: &str) -> Result<Arc<Doc>, Fault> {
    let wanted = if wanted.is_empty() { DEFAULT } else { wanted };
    let named = || {
        call.state
            .by(Kind::VolumeType, "name", wanted)
            .into_iter()
            .next()
    };
    call.state
        .get(Kind::VolumeType, wanted)
        .or_else(named)
        .ok_or_else(|| missing(wanted))
}

fn missing(wanted: &str) -> Fault {
    Fault::missing(format!("Volume type {wanted} could not be found."))
}

fn usable(call: &Call<'_>, doc: &Doc) -> bool {
    let project = &call.who.project_id;
    let allowed = || doc.texts("_projects").any(|allowed| allowed == project);
    call.who.admin() || doc.get("is_public") != Some(&Value::Bool(false)) || allowed()
}

/// True if volumes of a type can be attached to several servers.
pub(super) fn is_multiattach(kind: &Doc) -> bool {
    kind.object("extra_specs").text("multiattach") == "<is> True"
}

/// Returns the zones of a type; empty for all.
pub(super) fn zones(kind: &Doc) -> Vec<String> {
    let zones = kind.object("extra_specs");
    let zones = zones.text(ZONES).split(',').map(str::trim);
    zones
        .filter(|zone| !zone.is_empty())
        .map(str::to_owned)
        .collect()
}

/// True if a volume can change between the types without a move: same back end and same encryption.
pub(super) fn may_become(before: &Doc, after: &Doc) -> bool {
    before.get("_encryption") == after.get("_encryption") && back_end(before) == back_end(after)
}

/// Returns the name of the back end of a type's volumes; empty for any.
pub(super) fn back_end(kind: &Doc) -> String {
    let specs = kind.object("extra_specs");
    specs.text("volume_backend_name").to_owned()
}

/// Returns a [`Fault`] with the message `why` for a type with volumes.
pub(super) fn check_unused(call: &Call<'_>, kind: &Doc, why: &str) -> Result<(), Fault> {
    let has = |volume: &Arc<Doc>| volume.text("volume_type") == kind.text("name");
    match call.state.all(Kind::Volume).any(has) {
        true => Err(Fault::bad(why)),
        false => Ok(()),
    }
}

/// Returns the caller's view of a type, with [`specs_of`] the type.
pub(super) fn view(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut out = public_fields(doc);
    out.set("extra_specs", specs_of(call, doc));
    out
}

/// Returns the specs visible to the caller.
pub(super) fn specs_of(call: &Call<'_>, doc: &Doc) -> Doc {
    let mut specs = doc.object("extra_specs");
    if !call.who.admin() {
        specs.retain(|name, _| VISIBLE.contains(&name.as_str()));
    }
    specs
}

/// Lists types. Administrators choose by `is_public`, `None` for all; the default is the public types.
fn list(call: &mut Call<'_>) -> Answer {
    let wanted = match call.query.get("is_public") {
        _ if !call.who.admin() => None,
        None => Some(true),
        Some(text) => query::truth(text),
    };
    let fits = |doc: &&Arc<Doc>| {
        let public = doc.get("is_public") != Some(&Value::Bool(false));
        usable(call, doc) && wanted.is_none_or(|wanted| wanted == public)
    };
    let all: Vec<Value> = call
        .state
        .all(Kind::VolumeType)
        .filter(fits)
        .map(|doc| Value::Object(view(call, doc)))
        .collect();
    Ok(Reply::ok(json!({"volume_types": all})))
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("volume_type")?;
    let fields = [
        "name",
        "description",
        "extra_specs",
        "os-volume-type-access:is_public",
    ];
    body::strict("volume_type", &given, &fields)?;
    body::texts(&given, &fields[..2])?;
    let public = body::boolean(&given, "os-volume-type-access:is_public")?;
    let name = body::trimmed(&given, "name");
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
    let specs = given.object("extra_specs");
    let mut doc = volume_type(&id, name, Value::Object(specs));
    doc.set(
        "description",
        given.get("description").cloned().unwrap_or_default(),
    );
    set_public(&mut doc, public.unwrap_or(true));
    call.state.put(Kind::VolumeType, doc.clone());
    Ok(Reply::ok(json!({"volume_type": view(call, &doc)})))
}

fn update(call: &mut Call<'_>) -> Answer {
    let doc = resolve(call, call.parameter("id"))?;
    let given = call.wrapped("volume_type")?;
    let fields = ["name", "description", "is_public"];
    body::strict("volume_type", &given, &fields)?;
    body::texts(&given, &fields[..2])?;
    let public = body::boolean(&given, "is_public")?;
    let name = body::trimmed(&given, "name");
    if given.contains_key("name") && name.is_empty() {
        return Err(Fault::bad("Volume type name can not be empty."));
    }
    let taken = call.state.by(Kind::VolumeType, "name", name);
    if !name.is_empty() && name != doc.text("name") && !taken.is_empty() {
        return Err(Fault::conflict(format!(
            "Volume Type {name} already exists."
        )));
    }
    // Volumes refer to their type by name here.
    let before = doc.text("name");
    if !name.is_empty() && name != before {
        let volumes: Vec<Arc<Doc>> = call.state.all(Kind::Volume).cloned().collect();
        for volume in volumes
            .iter()
            .filter(|one| one.text("volume_type") == before)
        {
            call.state.edit(Kind::Volume, volume.text("id"), |volume| {
                volume.set("volume_type", name);
            });
        }
    }
    let id = doc.text("id");
    call.state.edit(Kind::VolumeType, id, |doc| {
        if !name.is_empty() {
            doc.set("name", name);
        }
        if let Some(description) = given.get("description") {
            doc.set("description", description.clone());
        }
        if let Some(public) = public {
            set_public(doc, public);
        }
    });
    let doc = any(call, id)?;
    Ok(Reply::ok(json!({"volume_type": view(call, &doc)})))
}

fn set_public(doc: &mut Doc, public: bool) {
    doc.set("is_public", public);
    doc.set("os-volume-type-access:is_public", public);
}

fn volume_type(id: &str, name: &str, specs: Value) -> Doc {
    to_doc(
        json!({"id": id, "name": name, "description": null, "is_public": true,
        "os-volume-type-access:is_public": true, "extra_specs": specs}),
    )
}

/// Returns alias, name, description and date of each of Cinder's extensions.
fn extensions() -> Vec<Value> {
    let all: Vec<[String; 4]> =
        serde_json::from_str(include_str!("extensions.json")).unwrap_or_default();
    let extension = |[alias, name, description, updated]: [String; 4]| {
        json!({"alias": alias, "name": name, "description": description, "links": [],
            "updated": updated})
    };
    all.into_iter().map(extension).collect()
}
