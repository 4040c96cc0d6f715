//! Extra specs and encryption of volume types.

use http::Method;
use serde_json::{Value, json};

use super::volume_types::{check_unused, resolve, specs_of};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (specs, spec) = (
        "/v3/{project}/types/{id}/extra_specs",
        "/v3/{project}/types/{id}/extra_specs/{key}",
    );
    table
        .get(specs, |call| {
            let doc = resolve(call, call.parameter("id"))?;
            Ok(Reply::ok(json!({"extra_specs": specs_of(call, &doc)})))
        })
        .get(spec, |call| {
            let doc = resolve(call, call.parameter("id"))?;
            let key = call.parameter("key");
            let value = specs_of(call, &doc).remove(key);
            let value = value.ok_or_else(|| no_spec(&doc, key))?;
            Ok(Reply::ok(json!({key: value})))
        })
        .on(Method::POST, specs, Access::Admin, |call| {
            let given = call.wrapped("extra_specs")?;
            change(call, given.clone())?;
            Ok(Reply::ok(json!({"extra_specs": given})))
        })
        .on(Method::PUT, spec, Access::Admin, |call| {
            let given = to_doc(call.body.clone());
            if !given.contains_key(call.parameter("key")) {
                return Err(Fault::bad("Request body and URI mismatch"));
            }
            change(call, given.clone())?;
            Ok(Reply::ok(Value::Object(given)))
        })
        .on(Method::DELETE, spec, Access::Admin, remove);
    encryption(table);
}

fn no_spec(doc: &Doc, key: &str) -> Fault {
    Fault::missing(format!(
        "Volume Type {} has no extra specs with key {key}.",
        doc.text("id")
    ))
}

/// Changes specs of a type without volumes.
fn change(call: &mut Call<'_>, given: Doc) -> Result<(), Fault> {
    let doc = resolve(call, call.parameter("id"))?;
    check_unused(call, &doc, "Volume Type is currently in use.")?;
    if let Some((key, value)) = given.iter().find(|(_, value)| !value.is_string()) {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute {key}. Value: {value}. {value} is not of type 'string'"
        )));
    }
    let mut specs = doc.object("extra_specs");
    specs.extend(given);
    call.state.edit(Kind::VolumeType, doc.text("id"), |doc| {
        doc.set("extra_specs", specs);
    });
    Ok(())
}

fn remove(call: &mut Call<'_>) -> Answer {
    let doc = resolve(call, call.parameter("id"))?;
    check_unused(call, &doc, "Volume Type is currently in use.")?;
    let key = call.parameter("key");
    let mut specs = doc.object("extra_specs");
    specs.remove(key).ok_or_else(|| no_spec(&doc, key))?;
    call.state.edit(Kind::VolumeType, doc.text("id"), |doc| {
        doc.set("extra_specs", specs);
    });
    Ok(Reply::empty(202))
}

/// Routes of the encryption of a type, visible to administrators only; everybody sees that a volume is encrypted.
fn encryption(table: &mut Table<'_>) {
    let (all, one) = (
        "/v3/{project}/types/{id}/encryption",
        "/v3/{project}/types/{id}/encryption/{encryption}",
    );
    table
        .on(Method::GET, all, Access::Admin, |call| {
            let doc = resolve(call, call.parameter("id"))?;
            Ok(Reply::ok(Value::Object(doc.object("_encryption"))))
        })
        .on(Method::POST, all, Access::Admin, |call| {
            let doc = resolve(call, call.parameter("id"))?;
            let why = "Cannot create encryption specs. Volume type in use.";
            check_unused(call, &doc, why)?;
            if doc.given("_encryption") {
                return Err(Fault::bad(format!(
                    "Volume type encryption for type {} already exists.",
                    doc.text("id")
                )));
            }
            let mut given = settings(&call.wrapped("encryption")?)?;
            given.set("encryption_id", call.state.new_id());
            given.set("volume_type_id", doc.text("id"));
            call.state.edit(Kind::VolumeType, doc.text("id"), |doc| {
                doc.set("_encryption", given.clone());
            });
            Ok(Reply::ok(json!({"encryption": given})))
        })
        .on(Method::DELETE, one, Access::Admin, |call| {
            let doc = resolve(call, call.parameter("id"))?;
            let why = "Cannot delete encryption specs. Volume type in use.";
            check_unused(call, &doc, why)?;
            if !doc.given("_encryption") {
                return Err(Fault::missing(format!(
                    "Volume type encryption for type {} does not exist.",
                    doc.text("id")
                )));
            }
            call.state.edit(Kind::VolumeType, doc.text("id"), |doc| {
                doc.remove("_encryption");
            });
            Ok(Reply::empty(202))
        });
}

fn settings(given: &Doc) -> Result<Doc, Fault> {
    if given.text("provider").is_empty() {
        return Err(Fault::bad(
            "Invalid input for field/attribute encryption. 'provider' is a required property",
        ));
    }
    let location = given.text("control_location");
    if !matches!(location, "front-end" | "back-end") {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute control_location. Value: {location}. '{location}' is not one of \
             ['front-end', 'back-end']"
        )));
    }
    let field = |name: &str| given.get(name).cloned().unwrap_or_default();
    Ok(to_doc(
        json!({"provider": given.text("provider"), "control_location": location,
        "cipher": field("cipher"), "key_size": field("key_size")}),
    ))
}
