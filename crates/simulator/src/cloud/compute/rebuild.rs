//! `rebuild`: a server gets the disk of an image, and keeps its id, host, ports and addresses.
//!
//! As in Nova, image, user data, metadata and the task are stored together when the request is accepted: whoever finds
//! the metadata of a rebuild knows that the rebuild has begun.

use serde_json::{Value, json};

use super::attachments::image;
use super::condition::allowed;
use super::create::{check_user_data, wrong_type};
use super::servers;
use super::view;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::{naive_micros, zulu};
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;
use crate::cloud::settings::Settings;
use crate::cloud::state::State;

/// Fields of the request, each with the first and the last microversion that has the field.
const FIELDS: [(&str, u32, u32); 13] = [
    ("imageRef", 1, u32::MAX),
    ("name", 1, u32::MAX),
    ("adminPass", 1, u32::MAX),
    ("metadata", 1, u32::MAX),
    ("preserve_ephemeral", 1, u32::MAX),
    ("OS-DCF:diskConfig", 1, u32::MAX),
    ("accessIPv4", 1, u32::MAX),
    ("accessIPv6", 1, u32::MAX),
    ("personality", 1, 56),
    ("description", 19, u32::MAX),
    ("key_name", 54, u32::MAX),
    ("user_data", USER_DATA, u32::MAX),
    ("hostname", 90, u32::MAX),
];
/// Microversion since which a rebuild may change the user data.
const USER_DATA: u32 = 57;
/// Microversion since which the image of a root volume may be another one.
const ROOT_VOLUMES: u32 = 93;
/// Nova's limit for the pairs of metadata.
const PAIRS: usize = 128;

/// Accepts a rebuild.
pub(super) fn begin(call: &mut Call<'_>, doc: &Doc, argument: &Value) -> Answer {
    let id = doc.text("id");
    let given = shape(call, argument)?;
    allowed(doc, "rebuild", &["ACTIVE", "SHUTOFF", "ERROR"])?;
    let key = given.text("key_name");
    let known = format!("{}/{key}", call.who.user_id);
    if !key.is_empty() && call.state.get(Kind::Keypair, &known).is_none() {
        return Err(Fault::bad("Invalid key_name provided."));
    }
    let new = image(call, given.text("imageRef"))
        .map_err(|_| Fault::bad("Cannot find image for rebuild"))?;
    if new.text("status") != "active" {
        let id = new.text("id");
        return Err(Fault::bad(format!("Image {id} is not active.")));
    }
    fits(call, doc, &new)?;
    store(call, doc, &given, &new);
    let delay = call.settings.latency.transition(Transition::ServerCreate);
    call.state.schedule(delay, "rebuilt", Kind::Server, id);
    let now = servers::find(call)?;
    let mut body = json!({"server": view::detail(call, &now)});
    if call.version >= USER_DATA {
        let user_data = Some(now.text("_user_data")).filter(|text| !text.is_empty());
        body["server"]["user_data"] = json!(user_data);
    }
    body["server"]["adminPass"] = json!(super::create::password(&format!("{id}{}", call.now())));
    let location = format!("{}/v2.1/servers/{id}", call.root());
    Ok(Reply::with(202, body).header("location", location))
}

/// Fields of the request, checked as by Nova's schemas.
fn shape(call: &Call<'_>, argument: &Value) -> Result<Doc, Fault> {
    let given = argument.as_object().cloned().unwrap_or_default();
    let version = call.version;
    let is_known = |name: &str| {
        let mut fields = FIELDS.iter();
        fields.any(|(field, first, last)| *field == name && (*first..=*last).contains(&version))
    };
    if let Some(name) = given.keys().find(|name| !is_known(name)) {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute rebuild. Additional properties are not allowed ('{name}' was unexpected)"
        )));
    }
    let Some(Value::String(image)) = given.get("imageRef") else {
        return Err(Fault::bad(
            "Invalid input for field/attribute rebuild. 'imageRef' is a required property",
        ));
    };
    if uuid::Uuid::parse_str(image).is_err() {
        return Err(Fault::bad(format!(
            "Invalid input for field/attribute imageRef. Value: {image}. '{image}' is not a 'uuid'"
        )));
    }
    if let Some(metadata) = given.get("metadata") {
        check_metadata(metadata)?;
    }
    check_user_data(&given)?;
    Ok(given)
}

fn check_metadata(metadata: &Value) -> Result<(), Fault> {
    let Some(pairs) = metadata.as_object() else {
        return Err(wrong_type("metadata", metadata));
    };
    let of_key = |c: char| c.is_ascii_alphanumeric() || "-_:. ".contains(c);
    for (key, value) in pairs {
        let fits = value.as_str().is_some_and(|text| text.len() <= 255);
        if !fits || key.is_empty() || key.len() > 255 || !key.chars().all(of_key) {
            return Err(wrong_type(key, value));
        }
    }
    if pairs.len() > PAIRS {
        return Err(Fault::forbidden(format!(
            "Maximum number of metadata items exceeds {PAIRS}"
        )));
    }
    Ok(())
}

/// Rejects an image that does not fit the flavor, and another image for a root volume of an old microversion.
fn fits(call: &Call<'_>, doc: &Doc, image: &Doc) -> Result<(), Fault> {
    let volumes = doc.list("_volumes");
    let states = volumes.iter().filter_map(|volume| {
        let id = volume["id"].as_str().unwrap_or_default();
        call.state.get(Kind::Volume, id)
    });
    let states: Vec<_> = states.collect();
    if let Some(other) = states.iter().find(|it| it.text("status") != "in-use") {
        return Err(Fault::bad(format!(
            "Invalid volume: volume {} status must be 'in-use'. Currently in '{}' status",
            other.text("id"),
            other.text("status")
        )));
    }
    if doc.text("_image").is_empty() {
        let root = states.first();
        let before = root.and_then(|root| root.get("volume_image_metadata"));
        let same = before.is_some_and(|before| before["image_id"] == image["id"]);
        if !same && call.version < ROOT_VOLUMES {
            return Err(Fault::bad(format!(
                "Image {} is unacceptable: Unable to rebuild with a different image for a volume-backed server.",
                image.text("id")
            )));
        }
        return Ok(());
    }
    if doc.number("_ram") < image.number("min_ram") {
        return Err(Fault::bad(
            "Flavor's memory is too small for requested image.",
        ));
    }
    if doc.number("_disk") > 0 && doc.number("_disk") < image.number("min_disk") {
        return Err(Fault::bad(
            "Flavor's disk is smaller than the minimum size specified in image metadata.",
        ));
    }
    Ok(())
}

/// Stores everything that the request changes, together with the task.
fn store(call: &mut Call<'_>, doc: &Doc, given: &Doc, image: &Doc) {
    let id = doc.text("id");
    if doc.text("_image").is_empty() {
        let root = doc.list("_volumes").first();
        let root = root.and_then(|it| it["id"].as_str()).unwrap_or_default();
        let metadata = json!({"image_id": image.text("id"), "image_name": image.text("name")});
        call.state.edit(Kind::Volume, root, |volume| {
            volume.set("volume_image_metadata", metadata);
        });
    }
    servers::change(call, id, |doc| {
        doc.set("_before", doc.text("status").to_owned());
        doc.set("status", "REBUILD");
        doc.set("_task", "rebuilding");
        if !doc.text("_image").is_empty() {
            doc.set("_image", image.text("id"));
        }
        doc.set("_image_name", image.text("name"));
        for name in [
            "name",
            "metadata",
            "accessIPv4",
            "accessIPv6",
            "description",
        ] {
            if let Some(value) = given.get(name) {
                doc.set(name, value.clone());
            }
        }
        if let Some(data) = given.get("user_data") {
            doc.set("_user_data", data.as_str().unwrap_or_default());
        }
        if let Some(key) = given.get("key_name") {
            doc.set("_key_name", key.as_str().unwrap_or_default());
        }
        if let Some(name) = given.get("hostname") {
            doc.set("_hostname", name.clone());
        }
    });
}

/// Ends a rebuild: the server boots from the new disk, or is in ERROR. A server that was stopped stops again.
pub(super) fn end(state: &mut State, settings: &Settings, id: &str) {
    let Some(doc) = state.get(Kind::Server, id) else {
        return;
    };
    if doc.text("status") != "REBUILD" || doc.text("_task") == "deleting" {
        return;
    }
    if let Some(message) = settings.server_fault(doc.text("name")) {
        super::history::fail(state, id, "rebuild", &message);
        super::lifecycle::fail(state, id, 500, &message);
        return;
    }
    let (now, launched) = (zulu(state.now()), naive_micros(state.now()));
    state.edit(Kind::Server, id, |doc| {
        let was_stopped = doc.text("_before") == "SHUTOFF";
        doc.set("status", if was_stopped { "SHUTOFF" } else { "ACTIVE" });
        doc.set("_task", "");
        doc.set("_disks", doc.number("_disks") + 1);
        doc.set("_boot", doc.number("_boot") + 1);
        doc.set("_launched_at", launched);
        doc.set("updated", now);
        doc.remove("fault");
    });
}
